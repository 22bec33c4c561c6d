"""PyTorch's own activations, named as the importer names its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from phonebit.converter.importers.torch.nodes import stored_tensors
from phonebit.converter.importers.torch.translation import Translation
from phonebit.converter.importers.torch.value_order import (
    in_tensor_order,
    in_value_order,
    run_in_groups,
)

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
    return run_in_groups(
        translation, inputs, lambda group: _run_group(exported, translation, group)
    )


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
                array = in_value_order(translation, value, _first(result))
                if array is not None:
                    results[value] = array
            return result

    tensors = stored_tensors(exported)
    placeholders = {
        n.name: n.meta.get("val") for n in exported.graph.nodes if n.op == "placeholder"
    }
    for name, array in inputs.items():
        tensor = torch.from_numpy(in_tensor_order(translation, name, array))
        tensors[name] = tensor.to(placeholders[name].dtype)  # of whole numbers, too
    with torch.no_grad():
        Recorder(exported.graph_module).run(*map(tensors.get, placeholders))
    return results


def _first(result: Any) -> Array:
    tensor = result[0] if isinstance(result, list | tuple) else result
    array: Array = tensor.detach().numpy()
    return array
