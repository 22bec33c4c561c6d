"""LiteRT with its GPU accelerator (WebGPU on Vulkan), half floats in arithmetic."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

import numpy as np

from benchmarks.peers.worker import Array, Engine, Forward, Task

NOTES: Final = ("a batch is so many passes of a network with batch size 1",)


def load(task: Task) -> Engine:
    """The network of a .tflite file for one image."""
    from ai_edge_litert import compiled_model as litert

    options = litert.Options(
        hardware_accelerators=litert.HardwareAccelerator.GPU,
        gpu_options=litert.GpuOptions(enforce_f32=False),
    )
    model = litert.CompiledModel.from_file(task.model, options=options)
    if not model.is_fully_accelerated():
        raise RuntimeError("LiteRT's GPU accelerator does not take the whole network")
    (given,), (returned,) = model.create_input_buffers(0), model.create_output_buffers(0)
    signature = next(iter(model.get_signature_list()))
    (details,) = model.get_output_tensor_details(signature).values()
    shape = tuple(details["shape"])

    def run(image: Array) -> Array:
        given.write(image)
        model.run_by_index(0, [given], [returned])
        return np.reshape(returned.read(int(np.prod(shape)), np.float32), shape)

    def prepare(images: Array) -> Forward:
        return lambda: np.concatenate([run(image[None]) for image in images])

    return Engine(prepare, version("ai-edge-litert"), litert.__file__, notes=NOTES)
