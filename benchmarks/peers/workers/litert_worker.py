"""LiteRT (TensorFlow Lite) with its XNNPACK delegate."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.worker import Array, Engine, Forward, Task


def load(task: Task) -> Engine:
    """The network of a .tflite file; XNNPACK is on by default.

    A network with int8 at its ends gets the image quantized once, outside of the measured time,
    as it would come from a camera.
    """
    import ai_edge_litert
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(task.model, num_threads=task.threads)
    given, returned = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def prepare(images: Array) -> Forward:
        interpreter.resize_tensor_input(given["index"], images.shape)
        interpreter.allocate_tensors()
        images = _quantized(images, given)

        def forward() -> Array:
            interpreter.set_tensor(given["index"], images)
            interpreter.invoke()
            return _real(interpreter.get_tensor(returned["index"]), returned)

        return forward

    return Engine(prepare, version("ai-edge-litert"), ai_edge_litert.__file__)


def _quantized(image: Array, tensor: dict[str, Any]) -> Array:
    if tensor["dtype"] is not np.int8:
        return image.astype(np.float32)
    scale, zero = tensor["quantization"]
    return np.asarray(np.clip(np.rint(image / scale) + zero, -128, 127), np.int8)


def _real(result: Array, tensor: dict[str, Any]) -> Array:
    if tensor["dtype"] is not np.int8:
        return result
    scale, zero = tensor["quantization"]
    return np.asarray((result.astype(np.float32) - zero) * scale)
