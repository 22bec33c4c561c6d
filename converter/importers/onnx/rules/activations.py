"""Activations that are more than one function of ATen's, or have parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary, clamp, unary
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.ops.epilogue.functions import Gelu

Array = NDArray[Any]


def _prelu(self: Array, weight: Array) -> Array:
    return np.where(self < 0, self * weight, self)


def _leaky_relu(self: Array, negative_slope: float) -> Array:
    return np.where(self < 0, self * negative_slope, self)


def _leaky(builder: Builder, node: Node) -> Call:
    call, slope = node.operand(0), float(np.float32(node.get("alpha", 0.01)))
    arguments = {"self": call, "negative_slope": slope}
    return builder.emit("leaky_relu", arguments, _leaky_relu, call.shape)


def _slopes(builder: Builder, node: Node) -> Call:
    call, weight = node.operand(0), node.operand(1)
    arguments = {"self": call, "weight": weight}
    return builder.emit("_prelu_kernel", arguments, _prelu, call.shape)


def _hard_sigmoid(builder: Builder, node: Node) -> Call:
    slope, offset = node.get("alpha", 0.2), node.get("beta", 0.5)
    return _gate(builder, node.operand(0), slope, offset)


def _gate(builder: Builder, call: Call, slope: float, offset: float) -> Call:
    scaled = binary(builder, "mul", call, float(np.float32(slope)))
    return clamp(builder, binary(builder, "add", scaled, float(np.float32(offset))), 0.0, 1.0)


def _hard_swish(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    return binary(builder, "mul", call, _gate(builder, call, 1 / 6, 0.5))


def _gelu(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    arguments = {"self": call, "approximate": node.get("approximate", "none")}
    try:
        gelu = Gelu.of_call(arguments)
    except ValueError as error:
        raise UnsupportedError(str(error)) from error
    return builder.emit("gelu", arguments, partial(_gelu_of, gelu), call.shape)


def _gelu_of(gelu: Gelu, /, self: Array, approximate: str) -> Array:
    return np.asarray(gelu.apply(self, []), self.dtype)


def _elu(builder: Builder, node: Node) -> Call:
    """Elu, Selu and Celu."""
    alpha, scale, inner = float(node.get("alpha", 1.0)), 1.0, 1.0
    if node.op == "Selu":
        alpha, scale = node.get("alpha", 1.67326319217681884765625), node.get("gamma", SELU_SCALE)
    elif node.op == "Celu":
        inner = 1 / alpha
    call = node.operand(0)
    arguments = {"self": call, "alpha": alpha, "scale": scale, "input_scale": inner}
    return builder.emit("elu", arguments, _elu_of, call.shape)


def _elu_of(self: Array, alpha: float, scale: float, input_scale: float) -> Array:
    negative = alpha * np.expm1(np.minimum(self * input_scale, 0))
    return np.asarray(np.where(self > 0, self, negative) * scale, self.dtype)


def _softsign(builder: Builder, node: Node) -> Call:
    call = node.operand(0)
    return binary(builder, "div", call, binary(builder, "add", unary(builder, "abs", call), 1.0))


SELU_SCALE: Final = 1.05070102214813232421875
ACTIVATIONS: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    "LeakyRelu": _leaky,
    "PRelu": _slopes,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Gelu": _gelu,
    **dict.fromkeys(("Elu", "Selu", "Celu"), _elu),
    "Softsign": _softsign,
}
