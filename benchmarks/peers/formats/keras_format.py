"""A source graph as a Keras model: with Larq's layers if it is binary, else with plain ones.

Larq Compute Engine's converter reads the former, TensorFlow Lite's the latter. Signs have no layer
of their own: they are the ``input_quantizer`` of the convolutions that read them, which is what the
former looks for. A max-pool of signs becomes one of the values before: sign is monotone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from benchmarks.peers.formats.source_graphs import covers_map, same_pads, single_step, unsupported
from phonebit.converter import ops
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops.epilogue import AddTensor, Clamp, PRelu

Tensor = Any
Model = Any
Windowed = ops.Conv2D | ops.MaxPool2D | ops.AveragePool2D
LOWEST_HALF: Final = -65504.0


def to_keras(graph: Graph, mirrored: bool = True) -> Model:
    """The network for batch size 1, with TensorFlow's legacy Keras (``TF_USE_LEGACY_KERAS=1``).

    ``mirrored``: pixels repeat in a max-pool's pads that Keras has no name for; int8 networks need
    that. GPUs know no such pads, but those with a constant.
    """
    return _Exporter(graph, mirrored).model()


@dataclass
class _Exporter:
    graph: Graph
    mirrored: bool
    values: dict[str, Tensor] = field(default_factory=dict)
    signs: set[str] = field(default_factory=set)
    """Values that stand for their signs in ``values``."""

    def model(self) -> Model:
        import tensorflow as tf

        for node in self.graph.nodes:
            self.values[node.outputs[0]] = self._export(tf, node)
        inputs = [self.values[name] for name in self.graph.inputs]
        outputs = [self.values[name] for name in self.graph.outputs]
        return tf.keras.Model(inputs, outputs, name=self.graph.name)

    def _export(self, tf: Any, node: Node) -> Tensor:
        op, layers = node.op, tf.keras.layers
        if isinstance(op, ops.Input):
            shape = self.graph.types[node.outputs[0]].shape
            return layers.Input(shape, batch_size=1, name=node.name)
        operands = [self.values[name] for name in node.inputs]
        if isinstance(op, ops.Sign) and op.threshold == 0:
            self.signs.add(node.outputs[0])
            return operands[0]
        if isinstance(op, ops.MaxPool2D):
            if node.inputs[0] in self.signs:
                self.signs.add(node.outputs[0])
            x, padding = self._padded(tf, node, op)
            pool = layers.MaxPool2D(op.window.kernel, op.window.strides, padding, name=node.name)
            return pool(x)
        if isinstance(op, ops.Conv2D):
            return self._convolution(tf, node, op)
        if self.signs.intersection(node.inputs):
            raise unsupported(node, "Keras", op)
        if isinstance(op, ops.AveragePool2D):
            x, padding = self._padded(tf, node, op)
            return layers.AveragePooling2D(op.window.kernel, op.window.strides, padding)(x)
        return _simple(tf, node, operands)

    def _padded(self, tf: Any, node: Node, op: Windowed) -> tuple[Tensor, str]:
        """The operand and the name of the padding that is left.

        Around max-pools, pads that Keras has no name for are mirrored pixels that are in the window
        anyway, or a number that half floats have and that is never the maximum.
        """
        x, window = self.values[node.inputs[0]], op.window
        height, width, _ = self.graph.types[node.inputs[0]].shape
        if not any(window.pads):
            return x, "valid"
        if window.pads == same_pads(window, height, width):
            return x, "same"
        top, left, bottom, right = window.pads
        pads = [[0, 0], [top, bottom], [left, right], [0, 0]]
        if isinstance(op, ops.MaxPool2D):
            if not self.mirrored:
                return tf.pad(x, pads, constant_values=LOWEST_HALF), "valid"
            if 2 * max(window.pads) <= min(window.kernel):
                return tf.pad(x, pads, "SYMMETRIC"), "valid"
        if isinstance(op, ops.Conv2D) and op.pad_value == 0 and node.inputs[0] not in self.signs:
            return tf.keras.layers.ZeroPadding2D(((top, bottom), (left, right)))(x), "valid"
        raise unsupported(node, "Keras", f"pads {window.pads}")

    def _convolution(self, tf: Any, node: Node, op: ops.Conv2D) -> Tensor:
        x, window = self.values[node.inputs[0]], op.window
        of_signs = node.inputs[0] in self.signs
        weights = op.weights.transpose(1, 2, 3, 0)  # HWIO
        settings = {"use_bias": op.bias is not None, "name": node.name}
        bias = [] if op.bias is None else [op.bias]
        if covers_map(op, self.graph.types[node.inputs[0]].shape) and not of_signs:
            layer = tf.keras.layers.Dense(len(op.weights), **settings)
            flat = x if len(x.shape) == 2 else tf.keras.layers.Flatten()(x)
            return _with_weights(layer, flat, [weights.reshape(-1, len(op.weights)), *bias])
        x, padding = self._padded(tf, node, op)
        settings |= {"strides": window.strides, "padding": padding}
        settings |= {"dilation_rate": window.dilation}
        if of_signs:
            layer = _sign_convolution(op, settings)
        elif op.groups == 1:
            layer = tf.keras.layers.Conv2D(len(op.weights), window.kernel, **settings)
        elif op.groups == len(op.weights) == self.graph.types[node.inputs[0]].shape[2]:
            layer = tf.keras.layers.DepthwiseConv2D(window.kernel, **settings)
            weights = op.weights.transpose(1, 2, 0, 3)
        else:
            raise unsupported(node, "Keras", f"groups {op.groups}")
        return _with_weights(layer, x, [weights, *bias])


def _sign_convolution(op: ops.Conv2D, settings: dict[str, Any]) -> Any:
    import larq

    is_binary = op.groups == 1 and bool(np.all(np.abs(op.weights) == 1))
    return larq.layers.QuantConv2D(
        len(op.weights),
        op.window.kernel,
        input_quantizer="ste_sign",
        kernel_quantizer="ste_sign" if is_binary else None,
        pad_values=op.pad_value,
        **settings,
    )


def _simple(tf: Any, node: Node, operands: list[Tensor]) -> Tensor:
    op, layers = node.op, tf.keras.layers
    if isinstance(op, ops.BatchNorm):
        layer = layers.BatchNormalization(epsilon=op.epsilon, name=node.name)
        return _with_weights(layer, operands[0], [op.gamma, op.beta, op.mean, op.variance])
    if isinstance(op, ops.Elementwise):
        step = single_step(op)
        if isinstance(step, AddTensor):
            return layers.Add(name=node.name)(operands)
        if isinstance(step, Clamp) and (step.low, step.high) == (0, np.inf):
            return layers.ReLU(name=node.name)(operands[0])
        if isinstance(step, PRelu) and step.positive is None and np.ptp(step.slope) == 0:
            return layers.LeakyReLU(float(step.slope.flat[0]), name=node.name)(operands[0])
        raise unsupported(node, "Keras", step)
    raise unsupported(node, "Keras", op)


def _with_weights(layer: Any, x: Tensor, weights: list[np.ndarray]) -> Tensor:
    result = layer(x)
    layer.set_weights(weights)
    return result
