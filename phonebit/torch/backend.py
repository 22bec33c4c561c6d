"""``torch.compile(module, backend="phonebit")``. PyTorch finds it by the package's entry points."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import torch

from phonebit.errors import ConversionError, PhoneBitWarning
from phonebit.torch.conversion import converted

STATIC: Final = "_dynamo_static_input_type"
"""PyTorch's mark of tensors that are a module's state."""


class _Bound(torch.nn.Module):
    """A graph as a module of its inputs alone: state is its own, sizes are those of the example."""

    def __init__(self, graph: Any, values: Sequence[Any], free: Sequence[int]) -> None:
        super().__init__()
        self.graph, self.free = graph, free
        self.others = [None if i in free else value for i, value in enumerate(values)]

    def forward(self, *tensors: Any) -> Any:
        values = list(self.others)
        for index, tensor in zip(self.free, tensors, strict=True):
            values[index] = tensor
        return self.graph(*values)


def backend(graph: Any, examples: Sequence[Any]) -> Any:
    """Compiles a graph: on PhoneBit where all of it converts, else as PyTorch runs it.

    Args:
        graph: A ``torch.fx.GraphModule`` of PyTorch's Dynamo; parameters are among its inputs.
        examples: Its inputs.

    Returns:
        What runs in its place; it converts again when parameters have changed in place.
    """
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    free: list[int] = []
    state: list[int] = []
    for index, (node, value) in enumerate(zip(nodes, examples, strict=True)):
        if isinstance(value, torch.Tensor):
            is_state = STATIC in node.meta.get("tensor_dict", {})
            (state if is_state or isinstance(value, torch.nn.Parameter) else free).append(index)
    if torch.is_grad_enabled() and any(examples[i].requires_grad for i in (*free, *state)):
        return _unchanged(graph, "gradients are wanted; use torch.no_grad() or inference_mode()")
    for index in free:
        for size in nodes[index].meta["example_value"].shape[1:]:
            int(size)  # a file has fixed shapes: for others PyTorch compiles again
    network: Any = None
    known: list[int] = []

    def run(*given: Any) -> Any:
        """Converts at the first call, since PyTorch has no values to trace with before."""
        nonlocal network, known
        tensors = tuple(given[index] for index in free)
        versions = [given[index]._version for index in state]
        if network is None or versions != known:
            network, known = _converted(graph, given, free), versions
        return graph(*given) if network is graph else network(*tensors)

    return run


def _converted(graph: Any, given: Sequence[Any], free: Sequence[int]) -> Any:
    example = tuple(given[index].detach() for index in free)
    try:
        return converted("", _Bound(graph, given, free).eval(), example, "auto")[0]
    except ConversionError as error:
        return _unchanged(graph, str(error))


def _unchanged(graph: Any, reason: str) -> Any:
    text = f"torch.compile: a graph stays in PyTorch: {reason}"
    warnings.warn(text, PhoneBitWarning, stacklevel=2)
    return graph
