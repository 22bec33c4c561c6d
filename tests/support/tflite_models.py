"""Small TensorFlow Lite models as the parser gives them, without a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.importer import translated
from phonebit.converter.importers.tflite.files import Model, Operator, Tensor
from phonebit.converter.importers.tflite.reader import read_model
from phonebit.converter.ir import Graph

Array = NDArray[Any]
NONE: Array = np.zeros(0, np.float32)


def tensor(name: str, shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """A tensor that is given or computed."""
    return Tensor(name, dtype, tuple(shape), None, NONE, NONE, 0)


def constant(name: str, array: Array) -> Tensor:
    """A stored tensor."""
    content = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    return Tensor(name, array.dtype.name, array.shape, content, NONE, NONE, 0)


def operator(name: str, inputs: list[int], outputs: list[int], **options: Any) -> Operator:
    """An operator of tensors by their places."""
    return Operator(name, options, inputs, outputs)


def imported(
    tensors: list[Tensor], operators: list[Operator], outputs: list[int], inputs: int = 1
) -> Graph:
    """The source graph of a model whose first tensors are its inputs."""
    model = Model(tensors, operators, list(range(inputs)), outputs)
    return translated(read_model(model, None), "small").graph
