"""ncnn on a Vulkan device, half floats in memory and arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.peers.worker import Array, Engine, Forward, Task, planes

CPU_KIND: Final = 3
"""VK_PHYSICAL_DEVICE_TYPE_CPU as ncnn counts kinds: 0 discrete, 1 integrated, 2 virtual."""

NOTES: Final = ("a batch is so many passes: ncnn has no batches",)


def load(task: Task) -> Engine:
    """The network of a .param file with the .bin file next to it, as pnnx writes them."""
    import ncnn

    if ncnn.get_gpu_count() == 0:
        raise RuntimeError("ncnn finds no Vulkan device (is libvulkan.so.1 there, a driver?)")
    info = ncnn.get_gpu_info(ncnn.get_default_gpu_index())
    if info.type() == CPU_KIND:
        raise RuntimeError(f"ncnn's only Vulkan device is the processor: {info.device_name()}")
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = True
    files = ((net.load_param, task.model), (net.load_model, Path(task.model).with_suffix(".bin")))
    for read, path in files:
        if read(str(path)):
            raise RuntimeError(f"{path}: ncnn cannot load it")
    (source,), (target,) = net.input_names(), net.output_names()

    def run(image: object) -> Array:
        extractor = net.create_extractor()
        extractor.input(source, image)
        code, result = extractor.extract(target)
        if code:
            raise RuntimeError(f"ncnn's extract() failed with {code}")
        array = np.array(result)
        return array.transpose(1, 2, 0) if array.ndim == 3 else array.reshape(1, 1, -1)

    def prepare(images: Array) -> Forward:
        arrays = list(planes(images))  # ncnn's point into them
        inputs = [ncnn.Mat(array) for array in arrays]
        return lambda: np.stack([run(image) for image, _ in zip(inputs, arrays, strict=True)])

    return Engine(prepare, ncnn.__version__, ncnn.__file__, notes=NOTES)
