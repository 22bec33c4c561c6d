"""A float source graph as a .tflite file, written without TensorFlow.

Where the benchmark runs there may be no TensorFlow, and the files are too large to travel. The
schema's Python classes are part of the package ``ai-edge-litert``. Batch size 1, NHWC; batch
normalization is folded into convolutions, ReLU is part of the layer in front of it.

Source: the TensorFlow Lite schema (schema.fbs), whose comments say what each operator reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl
from numpy.typing import NDArray

from benchmarks.peers.formats.folding import fold_batch_norm, scale_and_offset
from benchmarks.peers.formats.steps import covers_map, same_pads, single_step, unsupported
from phonebit.converter import ops
from phonebit.converter.ir import Graph, Node, Window
from phonebit.converter.ops.epilogue import AddTensor, Clamp, MultiplyTensor, PRelu
from phonebit.converter.passes.base import only_consumer

FILE_IDENTIFIER: Final = b"TFL3"
SCHEMA_VERSION: Final = 3
CHANNEL_AXIS: Final = 3
LOWEST_HALF: Final = -65504.0
"""What a max-pool's padded taps are: they never count, and half floats have it."""


def write_tflite(graph: Graph, path: Path) -> None:
    """Writes a network.

    Args:
        graph: source graph without signs, one input, one output.
        path: the file.

    Raises:
        ConversionError: if the graph has an operator that a float twin has not.
    """
    model = _Writer(fold_batch_norm(graph)).model()
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), FILE_IDENTIFIER)
    path.write_bytes(builder.Output())


@dataclass
class _Writer:
    graph: Graph
    codes: list[int] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=lambda: [tfl.BufferT()])
    places: dict[str, int] = field(default_factory=dict)
    """Tensors of the graph's values."""

    def model(self) -> Any:
        fused: set[str] = set()
        for node in self.graph.nodes:
            if node.name in fused:
                continue
            follower = self._fusable(node)
            if follower is not None:
                fused.add(follower.name)
            self._export(node, (follower or node).outputs[0], follower is not None)
        graph = tfl.SubGraphT()
        graph.name = self.graph.name
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs = [self.places[name] for name in self.graph.inputs]
        graph.outputs = [self.places[name] for name in self.graph.outputs]
        model = tfl.ModelT()
        model.version, model.description = SCHEMA_VERSION, "PhoneBit's benchmarks"
        model.subgraphs, model.buffers = [graph], self.buffers
        model.operatorCodes = [_operator_code(code) for code in self.codes]
        model.signatureDefs = [self._signature()]
        return model

    def _export(self, node: Node, result: str, relu: bool) -> None:
        op = node.op
        operands = [self.places[name] for name in node.inputs]
        activation = {
            "fusedActivationFunction": int(relu)
        }  # ActivationFunctionType: 0 none, 1 ReLU
        match op:
            case ops.Input():
                self._value(result)
            case ops.Conv2D() if covers_map(op, self.graph.types[node.inputs[0]].shape):
                self._dense(node, op, result, activation)
            case ops.Conv2D():
                self._convolution(node, op, result, activation)
            case ops.MaxPool2D(window=window) | ops.AveragePool2D(window=window):
                self._pool(node, window, result, activation)
            case ops.Concat():
                options = {"axis": CHANNEL_AXIS, **activation}
                self._emit("CONCATENATION", operands, result, "ConcatenationOptions", options)
            case ops.BatchNorm():
                self._batch_norm(node, op, result)
            case ops.Softmax(log=False):
                self._emit("SOFTMAX", operands, result, "SoftmaxOptions", {"beta": 1.0})
            case ops.Elementwise():
                self._elementwise(node, op, result, activation)
            case _:
                raise unsupported(node, "TensorFlow Lite", op)

    def _convolution(
        self, node: Node, op: ops.Conv2D, result: str, options: dict[str, Any]
    ) -> None:
        if op.pad_value != 0 and any(op.window.pads):
            raise unsupported(node, "TensorFlow Lite", op)
        source, padding = self._padded(node, op.window)
        options |= {**_strides(op.window), "padding": padding}
        options |= {
            "dilationHFactor": op.window.dilation[0],
            "dilationWFactor": op.window.dilation[1],
        }
        channels = self.graph.types[node.inputs[0]].shape[2]
        kind, weights = "CONV_2D", op.weights
        options_kind = "Conv2DOptions"
        if op.groups > 1 and op.groups == channels == len(weights):
            kind, options_kind = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
            weights = weights.transpose(3, 1, 2, 0)
            options["depthMultiplier"] = 1
        elif op.groups > 1:
            raise unsupported(node, "TensorFlow Lite", op)
        operands = [source, self._constant(weights), self._bias(op)]
        self._emit(kind, operands, result, options_kind, options)

    def _dense(self, node: Node, op: ops.Conv2D, result: str, options: dict[str, Any]) -> None:
        weights = op.weights.reshape(len(op.weights), -1)
        source = self.places[node.inputs[0]]
        shape = [1, weights.shape[1]]
        if list(self.tensors[source].shape) != shape:
            flat = self._tensor(f"{node.name}/flat", shape)
            target = self._constant(np.array(shape))
            self._operator("RESHAPE", [source, target], flat, "ReshapeOptions", {"newShape": shape})
            source = flat
        self.places[result] = self._tensor(result, [1, len(weights)])
        operands = [source, self._constant(weights), self._bias(op)]
        kind = "FullyConnectedOptions"
        self._operator("FULLY_CONNECTED", operands, self.places[result], kind, options)

    def _pool(self, node: Node, window: Window, result: str, options: dict[str, Any]) -> None:
        is_max = isinstance(node.op, ops.MaxPool2D)
        height, width, _ = self.graph.types[node.inputs[0]].shape
        if not is_max and any(window.pads) and window.pads != same_pads(window, height, width):
            raise unsupported(node, "TensorFlow Lite", node.op)  # its mean would count zeros
        source, padding = self._padded(node, window, LOWEST_HALF if is_max else None)
        options |= {**_strides(window), "padding": padding}
        options |= {"filterHeight": window.kernel[0], "filterWidth": window.kernel[1]}
        kind = "MAX_POOL_2D" if is_max else "AVERAGE_POOL_2D"
        self._emit(kind, [source], result, "Pool2DOptions", options)

    def _batch_norm(self, node: Node, op: ops.BatchNorm, result: str) -> None:
        scale, offset = map(self._constant, scale_and_offset(op))
        source = self.places[node.inputs[0]]
        scaled = self._tensor(f"{node.name}/scaled", list(self.tensors[source].shape))
        self._operator("MUL", [source, scale], scaled, "MulOptions", {})
        self._emit("ADD", [scaled, offset], result, "AddOptions", {})

    def _elementwise(
        self, node: Node, op: ops.Elementwise, result: str, options: dict[str, Any]
    ) -> None:
        operands = [self.places[name] for name in node.inputs]
        match single_step(op):
            case AddTensor():
                self._emit("ADD", operands, result, "AddOptions", options)
            case MultiplyTensor():
                self._emit("MUL", operands, result, "MulOptions", options)
            case Clamp() as step if _is_relu(step):
                self._emit("RELU", operands, result)
            case PRelu(positive=None, slope=slope) if np.all(slope == slope[0]):
                alpha = {"alpha": float(slope[0])}
                self._emit("LEAKY_RELU", operands, result, "LeakyReluOptions", alpha)
            case step:
                raise unsupported(node, "TensorFlow Lite", step)

    def _padded(self, node: Node, window: Window, value: float | None = None) -> tuple[int, int]:
        """The operand, behind a PAD where TensorFlow has no word for the padding; and that word."""
        source = self.places[node.inputs[0]]
        height, width, channels = self.graph.types[node.inputs[0]].shape
        if not any(window.pads):
            return source, tfl.Padding.VALID
        if window.pads == same_pads(window, height, width):
            return source, tfl.Padding.SAME
        top, left, bottom, right = window.pads
        shape = [1, height + top + bottom, width + left + right, channels]
        padded = self._tensor(f"{node.name}/padded", shape)
        pads = self._constant(np.array([[0, 0], [top, bottom], [left, right], [0, 0]]))
        if value is None:
            self._operator("PAD", [source, pads], padded, "PadOptions", {})
        else:
            constant = self._constant(np.array(value))
            self._operator("PADV2", [source, pads, constant], padded, "PadV2Options", {})
        return padded, tfl.Padding.VALID

    def _fusable(self, node: Node) -> Node | None:
        """The ReLU that can be part of a convolution, sum or product."""
        follower = only_consumer(self.graph, node.outputs[0])
        is_sum = isinstance(node.op, ops.Elementwise) and isinstance(
            single_step(node.op), AddTensor | MultiplyTensor
        )
        if follower is None or not (is_sum or isinstance(node.op, ops.Conv2D)):
            return None
        op = follower.op
        return follower if isinstance(op, ops.Elementwise) and _is_relu(single_step(op)) else None

    def _bias(self, op: ops.Conv2D) -> int:
        return self._constant(np.zeros(len(op.weights), np.float32) if op.bias is None else op.bias)

    def _value(self, name: str) -> int:
        self.places[name] = self._tensor(name, [1, *self.graph.types[name].shape])
        return self.places[name]

    def _tensor(self, name: str, shape: list[int], kind: int = 0, buffer: int = 0) -> int:
        tensor = tfl.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.buffer = name, shape, kind, buffer
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _constant(self, values: NDArray[Any]) -> int:
        is_integer = values.dtype.kind == "i"
        values = np.ascontiguousarray(values, np.int32 if is_integer else np.float32)
        buffer = tfl.BufferT()
        buffer.data = values.reshape(-1).view(np.uint8)
        self.buffers.append(buffer)
        kind = tfl.TensorType.INT32 if is_integer else tfl.TensorType.FLOAT32
        name = f"constant{len(self.buffers)}"
        return self._tensor(name, list(values.shape), kind, len(self.buffers) - 1)

    def _emit(
        self,
        kind: str,
        operands: list[int],
        result: str,
        options_kind: str = "",
        options: dict[str, Any] | None = None,
    ) -> None:
        self._operator(kind, operands, self._value(result), options_kind, options or {})

    def _operator(
        self, kind: str, operands: list[int], result: int, options_kind: str, fields: dict[str, Any]
    ) -> None:
        code = getattr(tfl.BuiltinOperator, kind)
        if code not in self.codes:
            self.codes.append(code)
        operator = tfl.OperatorT()
        operator.opcodeIndex = self.codes.index(code)
        operator.inputs, operator.outputs = operands, [result]
        if options_kind:
            operator.builtinOptionsType = getattr(tfl.BuiltinOptions, options_kind)
            operator.builtinOptions = getattr(tfl, f"{options_kind}T")()
            for name, value in fields.items():
                setattr(operator.builtinOptions, name, value)
        self.operators.append(operator)

    def _signature(self) -> Any:
        signature = tfl.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = "serving_default", 0
        signature.inputs = [self._mapped(name) for name in self.graph.inputs]
        signature.outputs = [self._mapped(name) for name in self.graph.outputs]
        return signature

    def _mapped(self, name: str) -> Any:
        entry = tfl.TensorMapT()
        entry.name, entry.tensorIndex = name, self.places[name]
        return entry


def _operator_code(code: int) -> Any:
    entry = tfl.OperatorCodeT()
    entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), 1
    return entry


def _strides(window: Window) -> dict[str, int]:
    return {"strideH": window.strides[0], "strideW": window.strides[1]}


def _is_relu(step: object) -> bool:
    return isinstance(step, Clamp) and (step.low, step.high) == (0.0, float("inf"))
