"""Small PyTorch modules made exact, and comparison of their source graphs with PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from phonebit.converter.importers.torch.importer import TorchSource, open_torch
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph

Shape = tuple[int, ...]


class Lambda(nn.Module):
    """A function of parts and inputs, as a module; ``parts`` are its modules and parameters."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module | Tensor) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            is_module = isinstance(part, nn.Module)
            setattr(self, name, part if is_module else nn.Parameter(part))
        exact_(self)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


def exact_(module: nn.Module) -> None:
    """Makes float32 arithmetic on small integers exact: parameters become multiples of 1/8."""
    rng = np.random.default_rng(7)
    with torch.no_grad():
        for name, tensor in module.named_parameters():
            values = rng.integers(-8, 9, tuple(tensor.shape)) / 8
            tensor.copy_(torch.from_numpy(values.astype(np.float32)))
            if name.endswith("weight") and tensor.ndim == 1:
                tensor.copy_(tensor.abs() + 0.5)
        for layer in module.modules():
            if (
                isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
                and layer.running_mean is not None
            ):
                layer.running_mean.copy_(torch.arange(layer.num_features) % 5 - 2)
                layer.running_var.fill_(1 - 2.0**-10)
                layer.eps = 2.0**-10


def images(graph: Graph, count: int = 3, seed: int = 5) -> dict[str, np.ndarray]:
    """Multiples of 1/2 from -4 to 4, zeros among them."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.integers(-8, 9, (count, *graph.types[name].shape)) / 2).astype(np.float32)
        for name in graph.inputs
    }


def imported(module: nn.Module, *shapes: Shape) -> TorchSource:
    """A module, imported with inputs of these shapes."""
    return open_torch(module, example_input=tuple(torch.zeros(shape) for shape in shapes))


def assert_equal_to_pytorch(
    source: TorchSource, inputs: dict[str, np.ndarray] | None = None, tolerance: float = 0.0
) -> dict[str, np.ndarray]:
    """The interpreter's values are PyTorch's, for every value of the graph that PyTorch has.

    Returns:
        PyTorch's values.
    """
    graph = source.graph
    inputs = inputs or images(graph)
    expected = source.activations(inputs)
    values = run(graph, inputs, list(graph.types))
    assert set(graph.inputs) < set(expected)
    for name, array in expected.items():
        assert values[name].dtype == array.dtype, name
        np.testing.assert_allclose(values[name], array, rtol=0, atol=tolerance, err_msg=name)
    return expected


def kinds(graph: Graph) -> list[str]:
    """The operators' names, in order, without the inputs."""
    return [type(node.op).__name__ for node in graph.nodes if node.inputs]


def found(graph: Graph, kind: type[Any]) -> list[Any]:
    """The operators of a kind, in order."""
    return [node.op for node in graph.nodes if isinstance(node.op, kind)]


def step_names(graph: Graph) -> Sequence[str]:
    """The steps of the element-wise nodes."""
    return [
        type(step).__name__
        for node in graph.nodes
        for step in getattr(getattr(node.op, "epilogue", None), "steps", [])
    ]


def assert_same_results(module: nn.Module, *inputs: Tensor, tolerance: float = 0.0) -> Graph:
    """The outputs of the imported graph are what the module itself returns, in its order.

    Returns:
        The graph.
    """
    with torch.no_grad():
        expected = module(*(x.clone() for x in inputs))
    graph = open_torch(module.eval(), example_input=inputs).graph
    arrays = [_as_value(x) for x in inputs]
    given = {
        name: array.reshape(-1, *graph.types[name].shape)
        for name, array in zip(graph.inputs, arrays, strict=True)
    }
    values = run(graph, given, graph.outputs)
    wanted = expected if isinstance(expected, list | tuple) else [expected]
    for name, tensor in zip(graph.outputs, wanted, strict=True):
        array = _as_value(tensor)
        got = values[name].reshape(array.shape)
        np.testing.assert_allclose(got, array, rtol=tolerance, atol=tolerance, err_msg=name)
    return graph


def _as_value(tensor: Tensor) -> np.ndarray:
    """A tensor as ``Network.forward`` has it: maps with their channels last."""
    array = tensor.detach().numpy()
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
