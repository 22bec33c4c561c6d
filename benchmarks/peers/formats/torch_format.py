"""A float source graph as a PyTorch module, from which TorchScript, ONNX and ncnn's files are made.

What a careful user would run: batch normalization folded into convolutions, dense layers as matrix
products, any memory format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.peers.formats.source_graphs import (
    covers_map,
    fold_batch_norm,
    single_step,
    unsupported,
)
from phonebit.converter import ops
from phonebit.converter.ir import Graph, Node, Shape, Window
from phonebit.converter.ops.epilogue import AddTensor, Clamp, PRelu


class FloatNetwork(nn.Module):
    """The float form of a network with one input and one output, from a graph without signs."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        graph = fold_batch_norm(graph)
        nodes = [node for node in graph.nodes if not isinstance(node.op, ops.Input)]
        self.layers = nn.ModuleList(_layer(node, graph) for node in nodes)
        self.wiring = [(node.inputs, node.outputs[0]) for node in nodes]
        self.names = [node.name for node in nodes]
        self.image, self.result = graph.inputs[0], graph.outputs[0]
        last_reader = {name: index for index, node in enumerate(nodes) for name in node.inputs}
        self.dead = [
            [name for name in set(node.inputs) if last_reader[name] == index]
            for index, node in enumerate(nodes)
        ]

    def forward(self, image: Tensor) -> Tensor:
        """(N, Cin, H, W), values of -1..1, to (N, C, H, W), or (N, C) after a dense layer."""
        values = {self.image: image}
        for layer, (inputs, output), dead in zip(self.layers, self.wiring, self.dead, strict=True):
            values[output] = layer(*(values[name] for name in inputs))
            for name in dead:
                del values[name]
        return values[self.result]


def save_torchscript(graph: Graph, path: Path) -> None:
    """Writes the network as a TorchScript program; any batch size."""
    with torch.inference_mode():
        torch.jit.trace(FloatNetwork(graph).eval(), _example(graph)).save(str(path))


def save_module(graph: Graph, path: Path) -> None:
    """Writes the network as a whole module, for a GPU that runs it as a CUDA graph."""
    torch.save(FloatNetwork(graph).eval(), path)


def save_onnx(graph: Graph, path: Path) -> None:
    """Writes the network as ONNX for any batch size.

    Nodes and their results are called as the graph's layers: engines that rewrite a node name the
    new one after either.
    """
    module = FloatNetwork(graph).eval()
    exported = torch.onnx.export(
        module,
        (_example(graph),),
        input_names=graph.inputs,
        output_names=graph.outputs,
        dynamic_shapes=({0: "batch"},),
        verbose=False,
    )
    assert exported is not None, "a program is returned where no file is named"
    for index, node in enumerate(exported.model.graph):
        scopes = node.metadata_props["pkg.torch.onnx.name_scopes"]
        layer = re.search(r"layers\.(\d+)", scopes)
        if layer:
            node.name = f"{module.names[int(layer[1])]}/{index}"
            if node.outputs[0].name not in graph.outputs:
                node.outputs[0].name = node.name
    exported.save(path)


def _example(graph: Graph) -> Tensor:
    height, width, channels = graph.types[graph.inputs[0]].shape
    return torch.zeros(1, channels, height, width)


class Dense(nn.Module):
    """A convolution whose window is the whole map, as a matrix product."""

    def __init__(self, weights: NDArray[np.float32], bias: NDArray[np.float32] | None) -> None:
        super().__init__()
        flat = weights.transpose(0, 3, 1, 2).reshape(len(weights), -1)
        self.product = nn.Linear(*flat.shape[::-1], bias is not None, device="meta")
        _set(self.product, flat, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) or (N, C) to (N, units)."""
        return self.product(x.flatten(1))


class BatchNorm(nn.BatchNorm2d):
    """For maps, and for what dense layers give."""

    def _check_input_dim(self, input: Tensor) -> None:
        pass


class Sum(nn.Module):
    """Of two tensors."""

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Of the tensors' shape."""
        return first + second


def _layer(node: Node, graph: Graph) -> nn.Module:
    op = node.op
    if isinstance(op, ops.Conv2D):
        return _convolution(op, graph.types[node.inputs[0]].shape)
    if isinstance(op, ops.MaxPool2D):
        window = op.window
        pads = window.pads[:2] if _is_even(window.pads) else 0
        pool = nn.MaxPool2d(window.kernel, window.strides, pads, window.dilation)
        # Pixels repeat that are in the window anyway: quantizers have no scale for -inf.
        return pool if pads else _padded(window, nn.ReplicationPad2d, pool)
    if isinstance(op, ops.AveragePool2D) and _is_even(op.window.pads):
        window = op.window
        return nn.AvgPool2d(window.kernel, window.strides, window.pads[:2], count_include_pad=False)
    if isinstance(op, ops.BatchNorm):
        layer = BatchNorm(len(op.gamma), op.epsilon)
        layer.weight.data, layer.bias.data = _tensor(op.gamma), _tensor(op.beta)
        layer.running_mean, layer.running_var = _tensor(op.mean), _tensor(op.variance)
        return layer.eval()
    if isinstance(op, ops.Elementwise):
        step = single_step(op)
        if isinstance(step, AddTensor):
            return Sum()
        if isinstance(step, Clamp) and (step.low, step.high) == (0.0, float("inf")):
            return nn.ReLU(inplace=False)
        if isinstance(step, PRelu) and step.positive is None and np.ptp(step.slope) == 0:
            return nn.LeakyReLU(float(step.slope.flat[0]))
    raise unsupported(node, "PyTorch", op)


def _convolution(op: ops.Conv2D, shape: Shape) -> nn.Module:
    window = op.window
    if covers_map(op, shape):
        return Dense(op.weights, op.bias)
    even = _is_even(window.pads)
    layer = nn.Conv2d(
        op.weights.shape[3] * op.groups,
        len(op.weights),
        window.kernel,
        window.strides,
        window.pads[:2] if even else 0,
        window.dilation,
        op.groups,
        op.bias is not None,
        device="meta",  # no memory: the weights come below
    )
    _set(layer, op.weights.transpose(0, 3, 1, 2), op.bias)
    return layer if even else _padded(window, nn.ZeroPad2d, layer)


def _padded(window: Window, pad: Callable[..., nn.Module], layer: nn.Module) -> nn.Module:
    if not any(window.pads):
        return layer
    top, left, bottom, right = window.pads
    return nn.Sequential(pad((left, right, top, bottom)), layer)


def _is_even(pads: tuple[int, int, int, int]) -> bool:
    return pads[:2] == pads[2:]


def _set(
    layer: nn.Conv2d | nn.Linear, weights: NDArray[np.float32], bias: NDArray[np.float32] | None
) -> None:
    layer.weight = nn.Parameter(_tensor(weights), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(_tensor(bias), requires_grad=False)


def _tensor(values: NDArray[np.floating]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))
