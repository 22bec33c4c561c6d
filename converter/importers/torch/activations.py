"""PyTorch's own activations, named as the importer names its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.nodes import stored_tensors
from phonebit.converter.importers.torch.translation import Translation
from phonebit.errors import InputError
from phonebit.format.records import DataType

Array = NDArray[Any]


def run_exported(
    exported: Any, translation: Translation, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Runs an exported program operator by operator.

    Straight-through estimators count as their forward value here, too: (s - c) + c is s, and not
    what rounding makes of it. The program has a fixed batch, so that images are run in groups of
    its size.

    Args:
        exported: The functional program that was translated.
        translation: What became of it.
        inputs: Arrays (N, H, W, C) by name.

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
        for name, array in _run_group(exported, translation, group).items():
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


def _run_group(
    exported: Any, translation: Translation, inputs: dict[str, Array]
) -> dict[str, Array]:
    import torch

    wanted: dict[str, list[str]] = {}
    for value, (node, _) in translation.tensors.items():
        wanted.setdefault(node, []).append(value)
    results: dict[str, Array] = {}
    estimators = translation.estimators
    kept: dict[str, Any] = dict.fromkeys(estimators.values())

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, n: Any) -> Any:
            if n.name in estimators:
                return kept[estimators[n.name]]
            result = super().run_node(n)
            if n.name in kept:
                kept[n.name] = result
            for value in wanted.get(n.name, ()):
                array = _in_value_order(translation, value, result)
                if array is not None:
                    results[value] = array
            return result

    tensors = stored_tensors(exported)
    for name, array in inputs.items():
        tensors[name] = _tensor(translation, name, array)
    placeholders = [node.name for node in exported.graph.nodes if node.op == "placeholder"]
    with torch.no_grad():
        Recorder(exported.graph_module).run(*map(tensors.get, placeholders))
    return results


def _tensor(translation: Translation, name: str, array: Array) -> Any:
    """An array (N, H, W, C) as the tensor that the program takes."""
    import torch

    view = translation.tensors[name][1]
    return torch.from_numpy(array.reshape(-1)[view.indices])


def _in_value_order(translation: Translation, value: str, result: Any) -> Array | None:
    view = translation.tensors[value][1]
    first = result[0] if isinstance(result, list | tuple) else result
    array = view.to_value_order(first.detach().numpy())
    if array is None:
        return None
    kinds = {DataType.BIT: np.int8, DataType.U8: np.uint8}
    return array.astype(kinds.get(translation.graph.types[value].dtype, np.float32))
