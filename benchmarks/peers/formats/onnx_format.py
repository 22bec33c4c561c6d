"""A float source graph as ONNX, for ONNX Runtime and OpenVINO."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.peers.formats.folding import fold_batch_norm
from benchmarks.peers.formats.steps import covers_map, single_step, unsupported
from phonebit.converter import ops
from phonebit.converter.ir import Graph, Node, Window
from phonebit.converter.ops.epilogue import AddTensor, Clamp, MultiplyTensor, PRelu

OPSET: Final = 17
IR_VERSION: Final = 10
"""The newest that the runtimes of the last two years read."""
BATCH: Final = "batch"


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """The network with channels first, a free batch size, and folded batch normalizations.

    Args:
        graph: float source graph with one input and one output.

    Returns:
        Input (batch, Cin, H, W), output (batch, C, H, W), or (batch, C) behind a dense layer.

    Raises:
        UnsupportedLayerError: An operator that float networks of ``models/networks`` do not have.
    """
    return _Exporter(fold_batch_norm(graph)).model()


def save_onnx(graph: Graph, path: Path) -> None:
    """Writes ``to_onnx(graph)``; files stay below the 2 GB that protobuf allows."""
    onnx.save(to_onnx(graph), path)


@dataclass
class _Exporter:
    graph: Graph
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    flat: set[str] = field(default_factory=set)
    """Values of rank 2, (batch, C): results of dense layers and of what follows them."""

    def model(self) -> onnx.ModelProto:
        for node in self.graph.nodes:
            self._export(node)
        body = helper.make_graph(
            self.nodes,
            self.graph.name,
            [self._info(name) for name in self.graph.inputs],
            [self._info(name) for name in self.graph.outputs],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION)

    def _export(self, node: Node) -> None:
        op = node.op
        if isinstance(op, ops.Input):
            return
        if isinstance(op, ops.Conv2D):
            self._convolution(node, op)
        elif isinstance(op, ops.MaxPool2D | ops.AveragePool2D):
            kind = "MaxPool" if isinstance(op, ops.MaxPool2D) else "AveragePool"
            self._emit(kind, node, **_geometry(op.window))
        elif isinstance(op, ops.BatchNorm):
            constants = {"gamma": op.gamma, "beta": op.beta, "mean": op.mean, "var": op.variance}
            names = [self._constant(f"{node.name}.{key}", constants[key]) for key in constants]
            self._emit("BatchNormalization", node, *names, epsilon=op.epsilon)
        elif isinstance(op, ops.Concat):
            self._emit("Concat", node, axis=1)
        elif isinstance(op, ops.Softmax) and not op.log:
            self._emit("Softmax", node, axis=1)
        elif isinstance(op, ops.Elementwise):
            self._elementwise(node, op)
        else:
            raise unsupported(node, "ONNX", op)

    def _convolution(self, node: Node, op: ops.Conv2D) -> None:
        weights = op.weights.transpose(0, 3, 1, 2)  # OIHW
        if covers_map(op, self.graph.types[node.inputs[0]].shape):
            self._dense(node, op, weights.reshape(len(weights), -1))
            return
        extra = [self._constant(f"{node.name}.weight", weights)]
        if op.bias is not None:
            extra.append(self._constant(f"{node.name}.bias", op.bias))
        geometry = {**_geometry(op.window), "dilations": op.window.dilation}
        self._emit("Conv", node, *extra, group=op.groups, **geometry)

    def _dense(self, node: Node, op: ops.Conv2D, weights: np.ndarray) -> None:
        source = node.inputs[0]
        if source not in self.flat:
            source = f"{node.name}.flat"
            self.nodes.append(helper.make_node("Flatten", node.inputs, [source], source))
        bias = np.zeros(len(weights), np.float32) if op.bias is None else op.bias
        inputs = [
            source,
            self._constant(f"{node.name}.weight", weights),
            self._constant(f"{node.name}.bias", bias),
        ]
        self.nodes.append(helper.make_node("Gemm", inputs, node.outputs, node.name, transB=1))
        self.flat.add(node.outputs[0])

    def _elementwise(self, node: Node, op: ops.Elementwise) -> None:
        step = single_step(op)
        if isinstance(step, Clamp) and (step.low, step.high) == (0, np.inf):
            self._emit("Relu", node)
        elif isinstance(step, PRelu) and step.positive is None and np.ptp(step.slope) == 0:
            self._emit("LeakyRelu", node, alpha=float(step.slope.flat[0]))
        elif isinstance(step, AddTensor | MultiplyTensor):
            self._emit("Add" if isinstance(step, AddTensor) else "Mul", node)
        else:
            raise unsupported(node, "ONNX", step)

    def _emit(self, kind: str, node: Node, *constants: str, **attributes: Any) -> None:
        if node.inputs[0] in self.flat:
            self.flat.add(node.outputs[0])
        inputs = [*node.inputs, *constants]
        self.nodes.append(helper.make_node(kind, inputs, node.outputs, node.name, **attributes))

    def _constant(self, name: str, array: np.ndarray) -> str:
        self.constants.append(
            numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
        )
        return name

    def _info(self, name: str) -> onnx.ValueInfoProto:
        height, width, channels = self.graph.types[name].shape
        shape = [BATCH, channels] if name in self.flat else [BATCH, channels, height, width]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _geometry(window: Window) -> dict[str, Any]:
    """ONNX's pads are (top, left, bottom, right), too."""
    return {"kernel_shape": window.kernel, "strides": window.strides, "pads": window.pads}
