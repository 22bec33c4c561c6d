"""A float source graph as the two files of an ncnn network.

They are as ``ncnnoptimize`` would leave them: batch normalization is folded into convolutions,
activations are part of the layer in front of them, weights are half floats, the rest floats.

Source: ncnn's wiki, "param and model file structure" and "operation param weight table".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.peers.formats.folding import fold_batch_norm
from benchmarks.peers.formats.steps import covers_map, single_step, unsupported
from phonebit.converter import ops
from phonebit.converter.ir import FloatArray, Graph, Node, Shape, Window
from phonebit.converter.ops.epilogue import (
    AddTensor,
    Clamp,
    EpilogueOp,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.passes.base import only_consumer

MAGIC: Final = 7767517
HALF_FLOATS: Final = struct.pack("<I", 0x01306B47)
FLOATS: Final = struct.pack("<I", 0)
"""What stands in front of a weight array that may be stored in several ways."""

Parameters = dict[int, int | float]
"""By ncnn's numbers of a layer's parameters."""


@dataclass
class Layer:
    """One line of the ``.param`` file, and what belongs to it in the ``.bin`` file."""

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    parameters: Parameters = field(default_factory=dict)
    arrays: dict[int, list[float]] = field(default_factory=dict)
    weights: list[bytes] = field(default_factory=list)

    def line(self) -> str:
        """``Convolution conv1 1 1 picture conv1 0=96 1=11 ...``."""
        parts = [self.kind, self.name, str(len(self.inputs)), str(len(self.outputs))]
        parts += [*self.inputs, *self.outputs]
        parts += [f"{key}={value}" for key, value in self.parameters.items()]
        for key, values in self.arrays.items():
            parts.append(
                f"{-23300 - key}={','.join(str(value) for value in [len(values), *values])}"
            )
        return " ".join(parts)


def write_ncnn(graph: Graph, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes a network.

    Args:
        graph: source graph without signs, one input.
        folder: where the files are put.
        name: of the files, without ending.

    Returns:
        The paths of the ``.param`` and the ``.bin`` file; blobs are called as the graph's values.

    Raises:
        ConversionError: if the graph has an operator that a float twin has not.
    """
    layers = _with_splits(_layers(fold_batch_norm(graph)))
    blobs = sum(len(layer.outputs) for layer in layers)
    lines = [str(MAGIC), f"{len(layers)} {blobs}", *(layer.line() for layer in layers)]
    parameters, weights = folder / f"{name}.param", folder / f"{name}.bin"
    parameters.write_text("\n".join(lines) + "\n")
    with weights.open("wb") as file:
        for layer in layers:
            file.writelines(layer.weights)
    return parameters, weights


def _layers(graph: Graph) -> list[Layer]:
    layers: list[Layer] = []
    fused: set[str] = set()
    for node in graph.nodes:
        if node.name in fused:
            continue
        layer = _layer(node, graph)
        if isinstance(node.op, ops.Conv2D):
            follower = only_consumer(graph, node.outputs[0])
            activation = _activation(follower)
            if follower is not None and activation is not None:
                layer.parameters[9], layer.arrays = activation
                layer.outputs = list(follower.outputs)
                fused.add(follower.name)
        layers.append(layer)
    return layers


def _layer(node: Node, graph: Graph) -> Layer:
    op = node.op
    layer = Layer(_KINDS.get(type(op), ""), node.name, node.inputs, node.outputs)
    height, width, channels = graph.types[(node.inputs or node.outputs)[0]].shape
    match op:
        case ops.Input():
            layer.parameters = {0: width, 1: height, 2: channels}
        case ops.Conv2D():
            _set_convolution(layer, op, (height, width, channels))
        case ops.MaxPool2D(window=window):
            layer.parameters = {0: 0, **_pool(window), 5: 1}
        case ops.AveragePool2D(window=window) if window.kernel == (height, width):
            layer.parameters = {0: 1, 4: 1}
        case ops.AveragePool2D(window=window):
            layer.parameters = {0: 1, **_pool(window), 5: 1, 6: 0}
        case ops.BatchNorm():
            layer.parameters = {0: channels, 1: op.epsilon}
            layer.weights = [_floats(x) for x in (op.gamma, op.mean, op.variance, op.beta)]
        case ops.Softmax(log=False):
            layer.parameters = {0: 0, 1: 1}
        case ops.Elementwise():
            _set_step(layer, single_step(op))
    if not layer.kind:
        raise unsupported(node, "ncnn", op)
    return layer


_KINDS: Final[dict[type, str]] = {
    ops.Input: "Input",
    ops.Conv2D: "Convolution",
    ops.MaxPool2D: "Pooling",
    ops.AveragePool2D: "Pooling",
    ops.BatchNorm: "BatchNorm",
    ops.Concat: "Concat",
    ops.Softmax: "Softmax",
}


def _set_convolution(layer: Layer, op: ops.Conv2D, shape: Shape) -> None:
    filters, window = len(op.weights), op.window
    layer.parameters = {0: filters, 1: int(op.bias is not None), 2: op.weights.size}
    if covers_map(op, shape):
        layer.kind = "InnerProduct"
    else:
        top, left, bottom, right = window.pads
        layer.parameters = {
            **{0: filters, 1: window.kernel[1], 11: window.kernel[0]},
            **{2: window.dilation[1], 12: window.dilation[0]},
            **{3: window.strides[1], 13: window.strides[0]},
            **{4: left, 14: top, 15: right, 16: bottom, 18: op.pad_value},
            **{5: int(op.bias is not None), 6: op.weights.size},
        }
        if op.groups > 1:
            layer.kind = "ConvolutionDepthWise"
            layer.parameters[7] = op.groups
    layer.weights = [_half_floats(op.weights.transpose(0, 3, 1, 2))]
    if op.bias is not None:
        layer.weights.append(_floats(op.bias))


def _set_scale(layer: Layer, scale: FloatArray, offset: FloatArray) -> None:
    layer.kind = "Scale"
    layer.parameters = {0: len(scale), 1: 1}
    layer.weights = [_floats(scale), _floats(offset)]


def _set_step(layer: Layer, step: EpilogueOp) -> None:
    match step:
        case AddTensor():
            layer.kind, layer.parameters = "BinaryOp", {0: 0}
        case MultiplyTensor():
            layer.kind, layer.parameters = "BinaryOp", {0: 2}
        case ScaleBias():
            _set_scale(layer, step.scale, step.bias)
        case Clamp() if _is_relu(step):
            layer.kind = "ReLU"
        case Clamp():
            layer.kind, layer.parameters = "Clip", {0: step.low, 1: step.high}
        case PRelu(positive=None) if _is_uniform(step.slope):
            layer.kind, layer.parameters = "ReLU", {0: float(step.slope[0])}
        case PRelu(positive=None):
            layer.kind, layer.parameters = "PReLU", {0: len(step.slope)}
            layer.weights = [_floats(step.slope)]


def _activation(node: Node | None) -> tuple[int, dict[int, list[float]]] | None:
    """Kind and parameters of an activation that ncnn computes with the layer in front of it."""
    if node is None or not isinstance(node.op, ops.Elementwise):
        return None
    match single_step(node.op):
        case Clamp() as step:
            return (1, {}) if _is_relu(step) else (3, {10: [step.low, step.high]})
        case PRelu(positive=None, slope=slope) if _is_uniform(slope):
            return 2, {10: [float(slope[0])]}
    return None


def _with_splits(layers: list[Layer]) -> list[Layer]:
    """Each blob may have one reader: a Split makes names for the others."""
    readers: dict[str, int] = {}
    for layer in layers:
        for name in layer.inputs:
            readers[name] = readers.get(name, 0) + 1
    result: list[Layer] = []
    names: dict[str, list[str]] = {}
    for layer in layers:
        layer.inputs = [names[name].pop(0) if name in names else name for name in layer.inputs]
        result.append(layer)
        for name in layer.outputs:
            if readers.get(name, 0) > 1:
                names[name] = [f"{name}_reader{index}" for index in range(readers[name])]
                result.append(Layer("Split", f"{name}_split", [name], list(names[name])))
    return result


def _pool(window: Window) -> Parameters:
    top, left, bottom, right = window.pads
    return {
        **{1: window.kernel[1], 11: window.kernel[0], 2: window.strides[1], 12: window.strides[0]},
        **{3: left, 13: top, 14: right, 15: bottom},
    }


def _is_relu(step: Clamp) -> bool:
    return (step.low, step.high) == (0.0, float("inf"))


def _is_uniform(slopes: FloatArray) -> bool:
    return bool(np.all(slopes == slopes[0]))


def _half_floats(values: FloatArray) -> bytes:
    data = np.ascontiguousarray(values, "<f2").tobytes()
    return HALF_FLOATS + data + bytes(-len(data) % 4)


def _floats(values: FloatArray) -> bytes:
    return np.ascontiguousarray(values, "<f4").tobytes()
