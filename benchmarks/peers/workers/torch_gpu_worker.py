"""PyTorch: cuDNN and cuBLAS, half floats, channels last, a CUDA graph for each batch size."""

from __future__ import annotations

import time

import numpy as np
import torch

from benchmarks.peers.worker import Array, Engine, Forward, Task, milliseconds_since


class Torch:
    """A network of ``formats/torch_format.py`` in "f16" or "f32"; images arrive as levels."""

    def __init__(self, module: torch.nn.Module, device: str, precision: str) -> None:
        self.device = torch.device(device)
        self.dtype = {"f16": torch.float16, "f32": torch.float32}[precision]
        torch.backends.cudnn.benchmark = True
        self.module = module.to(self.device, self.dtype, memory_format=torch.channels_last)

    def prepare(self, images: Array) -> Forward:
        """Buffers on the device and, on a GPU, the graph that works on them."""
        self.images = torch.from_numpy(images)
        self.levels = self.images.to(self.device)
        self.replay = self._captured().replay if self.device.type == "cuda" else self._pass
        return self.forward

    def forward(self) -> Array:
        """Upload, pass, download."""
        self.levels.copy_(self.images)
        self.replay()
        return np.asarray(self.result.cpu())

    def device_ms(self, passes: int) -> float:
        """By the host's clock around passes that are enqueued without waiting."""
        self._synchronize()
        begin = time.perf_counter()
        for _ in range(passes):
            self.replay()
        self._synchronize()
        return milliseconds_since(begin) / passes

    def _pass(self) -> None:
        """From ``levels`` to ``result``."""
        with torch.inference_mode():
            x = self.levels.permute(0, 3, 1, 2).to(self.dtype) * (2 / 255) - 1
            self.result = self.module(x).float()

    def _captured(self) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()  # cuDNN chooses its kernels before the capture
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._pass()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._pass()
        return graph

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def load(task: Task) -> Engine:
    """The network of a file with a whole module."""
    module = torch.load(task.model, weights_only=False)
    network = Torch(module, task.device, task.precision)
    file, device_ms = torch.__file__, network.device_ms
    return Engine(network.prepare, torch.__version__, file, True, device_ms=device_ms)
