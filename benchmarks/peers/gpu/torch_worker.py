"""PyTorch: cuDNN and cuBLAS, half floats, channels last, a CUDA graph for each batch size."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.peers.formats.torch_format import FloatNetwork
from benchmarks.peers.gpu.serving import Array, Engine, Task, serve
from benchmarks.peers.worker_loop import milliseconds_since


class Torch(Engine):
    """A float twin, saved as a module; pictures arrive as levels."""

    def __init__(self, task: Task) -> None:
        super().__init__(torch.__version__)
        self.task = task
        self.device = torch.device(task.device)
        self.dtype = {"f16": torch.float16, "f32": torch.float32}[task.precision]
        torch.backends.cudnn.benchmark = True
        module: FloatNetwork = torch.load(task.model, weights_only=False)
        self.module = module.to(self.device, self.dtype, memory_format=torch.channels_last)

    @torch.inference_mode()
    def prepare(self, count: int) -> None:
        """Buffers on the device and, on a GPU, the graph that works on them."""
        self.pictures = torch.from_numpy(self.task.levels(count))
        self.levels = self.pictures.to(self.device)
        self.replay = self._pass
        if self.device.type == "cuda":
            self.replay = self._captured()

    @torch.inference_mode()
    def forward(self) -> Array:
        """Upload, pass, download."""
        self.levels.copy_(self.pictures)
        self.replay()
        return self.result.cpu().numpy()

    @torch.inference_mode()
    def device_ms(self, passes: int) -> float | None:
        """By the host's clock around passes that are enqueued without waiting."""
        self._synchronize()
        begin = time.perf_counter()
        for _ in range(passes):
            self.replay()
        self._synchronize()
        return milliseconds_since(begin) / passes

    def _pass(self) -> None:
        """From ``levels`` to ``result``."""
        x = self.levels.permute(0, 3, 1, 2).to(self.dtype) * (2 / 255) - 1
        self.result = self.module(x).permute(0, 2, 3, 1).float()

    def _captured(self) -> Callable[[], None]:
        stream = torch.cuda.Stream()  # cuDNN chooses its kernels before the capture
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._pass()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._pass()
        return graph.replay

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


if __name__ == "__main__":
    serve(Torch)
