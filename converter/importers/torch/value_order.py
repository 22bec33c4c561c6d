"""A framework's tensors as values of the graph, and images in groups of its batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.errors import first_line, interruptible
from phonebit.converter.importers.torch.translation import Translation
from phonebit.errors import InputError, VerificationError
from phonebit.format.records import DataType

Array = NDArray[Any]


class Runner(ABC):
    """What executes a source and gives all its values.

    Attributes:
        executor: Its name in messages.
    """

    executor: str

    def __init__(self, translation: Translation) -> None:
        self._translation = translation

    def activations(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs the source; straight-through estimators count as their forward value.

        Args:
            inputs: One array (N, H, W, C) for each of the graph's inputs, by name.

        Returns:
            Arrays (N, H, W, C), by the names of the graph's values, of those that the source has.

        Raises:
            InputError: An input is missing or has the wrong shape.
            VerificationError: The source cannot be executed.
        """
        return run_in_groups(self._translation, inputs, self._group)

    @abstractmethod
    def _tensors(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """The source's tensors, by the names of the graph's values, of one group of images."""

    def _group(self, inputs: dict[str, Array]) -> dict[str, Array]:
        feeds = {
            name: in_tensor_order(self._translation, name, array) for name, array in inputs.items()
        }
        try:
            with interruptible():
                tensors = self._tensors(feeds)
        except Exception as error:  # whatever an operator stumbles over
            raise VerificationError(
                f"{self.executor} cannot execute the model: {first_line(error)}",
                hint="--interpreter compares with the converter's own reference interpreter",
            ) from error
        values = {
            value: in_value_order(self._translation, value, tensor)
            for value, tensor in tensors.items()
        }
        return {value: array for value, array in values.items() if array is not None}


def run_in_groups(
    translation: Translation,
    inputs: Mapping[str, Array],
    run: Callable[[dict[str, Array]], Mapping[str, Array]],
) -> dict[str, Array]:
    """Runs a program, which has a fixed batch, on groups of images of its size.

    Args:
        translation: What became of the program.
        inputs: Arrays (N, H, W, C) by name.
        run: The graph's values of one group.

    Returns:
        Arrays (N, H, W, C), by the names of the graph's values.

    Raises:
        InputError: An input is missing or has the wrong shape.
    """
    graph, batch = translation.graph, translation.batch
    arrays = {name: _checked(translation, name, inputs) for name in graph.inputs}
    counts = {len(array) for array in arrays.values()}
    if len(counts) != 1 or 0 in counts:
        raise InputError("inputs must hold equally many images, at least one", got=counts)
    count = counts.pop()
    groups: dict[str, list[Array]] = {}
    for begin in range(0, count, batch):
        chosen = np.minimum(np.arange(begin, begin + batch), count - 1)
        group = {name: array[chosen] for name, array in arrays.items()}
        for name, array in run(group).items():
            groups.setdefault(name, []).append(array)
    return {name: np.concatenate(parts)[:count] for name, parts in groups.items()}


def _checked(translation: Translation, name: str, inputs: Mapping[str, Array]) -> Array:
    kind = translation.graph.types[name]
    if name not in inputs:
        raise InputError("no array for this input", where=name, expected=kind.shape)
    array = np.asarray(inputs[name])
    if array.ndim != 4 or array.shape[1:] != kind.shape:
        expected = ("N", *kind.shape)
        raise InputError("wrong shape", where=name, expected=expected, got=array.shape)
    return array.astype(np.uint8 if kind.dtype == DataType.U8 else np.float32)


def in_tensor_order(translation: Translation, name: str, array: Array) -> Array:
    """An array (N, H, W, C) as the tensor that the program takes."""
    result: Array = array.reshape(-1)[translation.tensors[name][1].indices]
    return result


def in_value_order(translation: Translation, value: str, tensor: Array) -> Array | None:
    """A tensor as the value (N, H, W, C) of the graph; None if it does not have all of it.

    Raises:
        VerificationError: What runs the program computes another shape than the program says.
    """
    view = translation.tensors[value][1]
    if tensor.size != view.indices.size:
        raise VerificationError(
            "the source as it is executed here gives another number of elements",
            where=value,
            expected=view.indices.size,
            got=tensor.size,
            hint="pip install onnxruntime, whose sizes of Resize are those of PyTorch",
        )
    array = view.to_value_order(tensor)
    if array is None:
        return None
    kinds = {DataType.BIT: np.int8, DataType.U8: np.uint8}
    return array.astype(kinds.get(translation.graph.types[value].dtype, np.float32))
