"""A binary source graph as an OpenVINO model with BinaryConvolution, for its CPU plugin.

A sign is a FakeQuantize of two levels, 0 and 1, which a BinaryConvolution ("xnor-popcount") reads
as -1 and +1. After a batch normalization the two become one FakeQuantize with a threshold for
each channel, the form that the plugin fuses into the convolution before. With a max-pool between
sign and convolution they stay apart: the plugin pools floats only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import Type, opset1, opset8

from benchmarks.peers.formats.source_graphs import (
    covers_map,
    scale_and_offset,
    single_step,
    unsupported,
)
from phonebit.converter import ops
from phonebit.converter.ir import Graph, Node, Window
from phonebit.converter.ops.epilogue import AddTensor, Clamp
from phonebit.format.records import DataType

Value = Any
"""A node of OpenVINO; its Python classes have no common public base with their operators."""


def to_openvino(graph: Graph) -> openvino.Model:
    """The network with channels first and batch size 1 (``Model.reshape`` changes it)."""
    return _Exporter(graph).model()


def save_openvino(graph: Graph, path: Path) -> None:
    """Writes PATH.xml and PATH.bin."""
    openvino.save_model(to_openvino(graph), path, compress_to_fp16=False)


@dataclass(frozen=True)
class _Signs:
    """Signs that are not written yet: +1 where x >= thresholds[c], or <= where not ascending[c]."""

    x: Value
    thresholds: NDArray[np.floating]
    ascending: NDArray[np.bool_]

    @cached_property
    def bits(self) -> Value:
        """0 and 1, the form that the plugin hands to BinaryConvolution as packed bits."""
        limits, high = _row(self.thresholds), _row(self.ascending)
        return opset1.fake_quantize(self.x, limits, limits, 1 - high, high, 2)

    @cached_property
    def reals(self) -> Value:
        """-1 and +1. Two levels part in the middle of a range; one of width 0 would give NaN."""
        middle, high = _row(self.thresholds), _row(self.ascending) * 2 - 1
        return opset1.fake_quantize(self.x, middle - 1, middle + 1, -high, high, 2)


@dataclass
class _Exporter:
    graph: Graph
    values: dict[str, Value | _Signs] = field(default_factory=dict)

    def model(self) -> openvino.Model:
        for node in self.graph.nodes:
            self.values[node.outputs[0]] = self._export(node)
        inputs = [self.values[name] for name in self.graph.inputs]
        outputs = [self._operand(name) for name in self.graph.outputs]
        return openvino.Model(outputs, inputs, self.graph.name)

    def _operand(self, name: str) -> Value:
        """A value as real numbers."""
        value = self.values[name]
        return value.reals if isinstance(value, _Signs) else value

    def _export(self, node: Node) -> Value | _Signs:
        op = node.op
        if isinstance(op, ops.Input):
            height, width, channels = self.graph.types[node.outputs[0]].shape
            return opset1.parameter([1, channels, height, width], np.float32, name=node.name)
        if isinstance(op, ops.Conv2D):
            return self._convolution(node, op)
        if isinstance(op, ops.Sign):
            return self._sign(node, op)
        if isinstance(op, ops.MaxPool2D):
            return self._max_pool(node, op)
        return _simple(node, [self._operand(name) for name in node.inputs])

    def _convolution(self, node: Node, op: ops.Conv2D) -> Value:
        strides, before, after, dilations = _geometry(op.window)
        weights = np.ascontiguousarray(op.weights.transpose(0, 3, 1, 2))
        of_bits = self.graph.types[node.inputs[0]].dtype == DataType.BIT
        scale = _common_magnitudes(weights)
        if of_bits and op.groups == 1 and scale is not None:
            x = opset1.binary_convolution(
                self.values[node.inputs[0]].bits,
                _bits(weights),
                strides,
                before,
                after,
                dilations,
                "xnor-popcount",
                op.pad_value,
            )
            x = x if np.all(scale == 1) else opset1.multiply(x, _row(scale))
            return x if op.bias is None else opset1.add(x, _row(op.bias))
        if op.pad_value and any(op.window.pads):
            raise unsupported(node, "OpenVINO", op)
        x = self._operand(node.inputs[0])
        if op.groups != 1:
            grouped = weights.reshape(op.groups, -1, *weights.shape[1:])
            x = opset1.group_convolution(x, grouped, strides, before, after, dilations)
        elif covers_map(op, self.graph.types[node.inputs[0]].shape):
            flat = opset1.reshape(x, np.array([0, -1]), special_zero=True)
            product = opset1.matmul(flat, weights.reshape(len(weights), -1), False, True)
            x = opset1.reshape(product, np.array([0, -1, 1, 1]), special_zero=True)
        else:
            x = opset1.convolution(x, weights, strides, before, after, dilations)
        return x if op.bias is None else opset1.add(x, _row(op.bias))

    def _sign(self, node: Node, op: ops.Sign) -> _Signs:
        """Of batch normalization: scale * x + offset >= threshold is x >= t, or <= if scale < 0."""
        source = self.graph.producer(node.inputs[0])
        if isinstance(source.op, ops.BatchNorm) and not self._is_pooled(node):
            scale, offset = scale_and_offset(source.op)
            if np.all(scale):
                x = self._operand(source.inputs[0])
                return _Signs(x, (op.threshold - offset) / scale, scale > 0)
        x = self._operand(node.inputs[0])
        channels = self.graph.types[node.inputs[0]].shape[2]
        return _Signs(x, np.full(channels, op.threshold), np.ones(channels, bool))

    def _is_pooled(self, sign: Node) -> bool:
        consumers = self.graph.consumers(sign.outputs[0])
        return any(isinstance(node.op, ops.MaxPool2D) for node in consumers)

    def _max_pool(self, node: Node, op: ops.MaxPool2D) -> Value | _Signs:
        """The maximum of signs is the sign of the maximum, since sign is monotone."""
        strides, before, after, _ = _geometry(op.window)
        source = self.values[node.inputs[0]]
        x = source.x if isinstance(source, _Signs) else source
        pooled = opset1.max_pool(x, strides, before, after, list(op.window.kernel))
        if not isinstance(source, _Signs):
            return pooled
        return _Signs(pooled, source.thresholds, source.ascending)


def _simple(node: Node, operands: list[Value]) -> Value:
    op = node.op
    if isinstance(op, ops.BatchNorm):
        scale, offset = scale_and_offset(op)
        return opset1.add(opset1.multiply(operands[0], _row(scale)), _row(offset))
    if isinstance(op, ops.AveragePool2D):
        strides, before, after, _ = _geometry(op.window)
        return opset1.avg_pool(operands[0], strides, before, after, list(op.window.kernel), True)
    if isinstance(op, ops.Softmax) and not op.log:
        return opset8.softmax(operands[0], 1)
    if isinstance(op, ops.Reshape) and op.shape[:2] == (1, 1):
        # The elements in the order of H, W, C.
        turned = opset1.transpose(operands[0], np.array([0, 2, 3, 1]))
        return opset1.reshape(turned, np.array([0, -1, 1, 1], np.int64), special_zero=True)
    if isinstance(op, ops.Elementwise):
        step = single_step(op)
        if isinstance(step, AddTensor):
            return opset1.add(*operands)
        if isinstance(step, Clamp) and (step.low, step.high) == (0, np.inf):
            return opset1.relu(operands[0])
        raise unsupported(node, "OpenVINO", step)
    raise unsupported(node, "OpenVINO", op)


def _common_magnitudes(weights: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """|w| of each filter (Cout,), if all its weights have the same: then they are signs, scaled."""
    flat = np.abs(weights.reshape(len(weights), -1))
    same = np.all(flat == flat[:, :1]) and np.all(flat > 0)
    return flat[:, 0] if same else None


def _bits(weights: NDArray[np.float32]) -> Value:
    """A constant of bits, the lowest first: so the CPU plugin reads them.

    It has memory of its own, since a tensor around an array does not keep the array alive.
    """
    tensor = openvino.Tensor(Type.u1, list(weights.shape))
    tensor.data.reshape(-1)[:] = np.packbits(weights.reshape(-1) > 0, bitorder="little")
    return openvino.op.Constant(tensor)


def _row(values: NDArray[Any]) -> NDArray[np.float32]:
    """(C,) as (1, C, 1, 1)."""
    return np.asarray(values, np.float32).reshape(1, -1, 1, 1)


def _geometry(window: Window) -> tuple[list[int], list[int], list[int], list[int]]:
    return list(window.strides), list(window.pads[:2]), list(window.pads[2:]), list(window.dilation)
