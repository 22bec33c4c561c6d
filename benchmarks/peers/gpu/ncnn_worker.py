"""ncnn on a Vulkan device, half floats in memory and arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import ncnn
import numpy as np

from benchmarks.peers.gpu.serving import Array, Engine, Task, serve

CPU_KIND: Final = 3
"""VK_PHYSICAL_DEVICE_TYPE_CPU as ncnn counts kinds: 0 discrete, 1 integrated, 2 virtual."""

NOTES: Final = ("a batch is so many passes: ncnn has no batches",)


class Ncnn(Engine):
    """A .param file with the .bin file beside it."""

    def __init__(self, task: Task) -> None:
        if ncnn.get_gpu_count() == 0:
            raise RuntimeError("ncnn finds no Vulkan device (is libvulkan.so.1 there, a driver?)")
        info = ncnn.get_gpu_info(ncnn.get_default_gpu_index())
        if info.type() == CPU_KIND and task.device != "cpu":
            raise RuntimeError(f"ncnn's only Vulkan device is the processor: {info.device_name()}")
        super().__init__(ncnn.__version__, NOTES)
        self.task = task
        self.net = ncnn.Net()
        options = self.net.opt
        options.use_vulkan_compute = task.device != "host"
        is_half = task.precision == "f16"
        options.use_fp16_packed = options.use_fp16_storage = is_half
        options.use_fp16_arithmetic = is_half
        for load, path in (
            (self.net.load_param, Path(task.model)),
            (self.net.load_model, Path(task.model).with_suffix(".bin")),
        ):
            if load(str(path)):
                raise RuntimeError(f"{path}: ncnn cannot load it")

    def prepare(self, count: int) -> None:
        """Planes in ncnn's own arrays, which point into ours."""
        planes = self.task.values(count).transpose(0, 3, 1, 2)
        self.planes = [np.ascontiguousarray(picture) for picture in planes]
        self.inputs = [ncnn.Mat(picture) for picture in self.planes]

    def forward(self) -> Array:
        """One pass a picture, upload and download included."""
        return np.stack([self._run(picture) for picture in self.inputs])

    def _run(self, picture: ncnn.Mat) -> Array:
        extractor = self.net.create_extractor()
        extractor.input(self.net.input_names()[0], picture)
        code, result = extractor.extract(self.task.result)
        if code:
            raise RuntimeError(f"ncnn's extract() failed with {code}")
        array = np.array(result)
        return array.transpose(1, 2, 0) if array.ndim == 3 else array.reshape(1, 1, -1)


if __name__ == "__main__":
    serve(Ncnn)
