"""LiteRT with its GPU accelerator (WebGPU on Vulkan), half floats in arithmetic."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

import numpy as np
from ai_edge_litert.compiled_model import CompiledModel, GpuOptions, HardwareAccelerator, Options

from benchmarks.peers.gpu.serving import Array, Engine, Task, serve

NOTES: Final = ("a batch is so many passes of a network with batch size 1",)


class LiteRt(Engine):
    """A .tflite file for one picture."""

    def __init__(self, task: Task) -> None:
        super().__init__(version("ai-edge-litert"), NOTES)
        self.task = task
        accelerator = HardwareAccelerator.CPU if task.device == "cpu" else HardwareAccelerator.GPU
        options = Options(
            hardware_accelerators=accelerator,
            gpu_options=GpuOptions(enforce_f32=task.precision == "f32"),
        )
        self.model = CompiledModel.from_file(task.model, options=options)
        if task.device != "cpu" and not self.model.is_fully_accelerated():
            raise RuntimeError("LiteRT's GPU accelerator does not take the whole network")
        (self.given,) = self.model.create_input_buffers(0)
        (self.returned,) = self.model.create_output_buffers(0)
        signature = next(iter(self.model.get_signature_list()))
        (details,) = self.model.get_output_tensor_details(signature).values()
        self.shape = tuple(details["shape"])

    def prepare(self, count: int) -> None:
        """One array a picture."""
        self.pictures = [row[None] for row in self.task.values(count)]

    def forward(self) -> Array:
        """One pass a picture, upload and download included."""
        return np.concatenate([self._run(picture) for picture in self.pictures])

    def _run(self, picture: Array) -> Array:
        self.given.write(picture)
        self.model.run_by_index(0, [self.given], [self.returned])
        return self.returned.read(int(np.prod(self.shape)), np.float32).reshape(self.shape)


if __name__ == "__main__":
    serve(LiteRt)
