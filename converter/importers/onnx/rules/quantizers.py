"""QONNX's and FINN's quantizers, and ONNX's pair of quantization and dequantization.

QONNX: Quant, BipolarQuant and Trunc as the package qonnx executes them, step by step in float32.
FINN: MultiThreshold counts the thresholds that a value reaches, XnorPopcountMatMul equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import (
    binary,
    cast,
    clamp,
    unary,
    where,
)
from phonebit.converter.importers.onnx.rules.layers import matmul
from phonebit.converter.importers.onnx.rules.moving import reshaped
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Array = NDArray[Any]
MAX_BITS: Final = 32
PLAIN_MODES: Final = {"ROUND": "round", "HALF_EVEN": "round", "CEIL": "ceil", "FLOOR": "floor"}
ROUNDING_MODES: Final[dict[str, Callable[..., Any]]] = {
    "UP": lambda self: np.sign(self) * np.ceil(np.abs(self)),
    "DOWN": lambda self: np.trunc(self),
    "HALF_UP": lambda self: np.sign(self) * np.floor(np.abs(self) + np.float32(0.5)),
    "HALF_DOWN": lambda self: np.sign(self) * np.ceil(np.abs(self) - np.float32(0.5)),
}
LAYOUTS: Final = {2: "NC", 3: "NWC", 4: "NCHW"}
"""FINN's layouts where a node does not name one."""


def quant(builder: Builder, node: Node) -> Call:
    """Quant: (clip(round(x / scale + zero_point)) - zero_point) * scale."""
    call, scale, zero = node.operand(0), _scale(builder, node, 1), _scale(builder, node, 2)
    bits = builder.number(node.operand(3), "bit widths")
    signed, narrow = bool(node.get("signed", 1)), bool(node.get("narrow", 0))
    result = _shifted(builder, call, scale, zero)
    if bits == 1 and signed:
        result = signs(builder, result)
    else:
        low, high = _limits(bits, signed, narrow)
        result = _rounded(builder, clamp(builder, result, low, high), node)
    return _back(builder, result, scale, zero)


def bipolar(builder: Builder, node: Node) -> Call:
    """BipolarQuant: scale * (1 if x >= 0 else -1)."""
    return times(builder, signs(builder, node.operand(0)), _scale(builder, node, 1))


def trunc(builder: Builder, node: Node) -> Call:
    """Trunc: the upper bits of an integer. Its second version names a scale of the result."""
    call, scale, zero = node.operand(0), _scale(builder, node, 1), _scale(builder, node, 2)
    before = builder.number(node.operand(3), "bit widths")
    integers = unary(builder, "round", _shifted(builder, call, scale, zero))
    if len(node.inputs) == 5:
        factor = 2.0 ** (before - builder.number(node.operand(4), "bit widths"))
        mode = node.get("rounding_mode", "FLOOR")
        return _back(builder, _integers_over(builder, integers, factor, mode), scale, zero)
    bits, coarse = builder.number(node.operand(5), "bit widths"), _scale(builder, node, 4)
    step = builder.value(coarse, "scales") / builder.value(scale, "scales")
    if step.size != 1 or step.item() <= 0:
        raise UnsupportedError("has a scale for each channel; expected one")
    factor = float(2 ** np.round(np.log2(step.item())))
    low, high = _limits(bits, bool(node.get("signed", 1)), bool(node.get("narrow", 0)))
    mode = node.get("rounding_mode", "FLOOR")
    # Limits are integers, so that they may follow the rounding instead of going before it.
    result = clamp(builder, _integers_over(builder, integers, factor, mode), low, high)
    shift = builder.literal(builder.value(zero, "zero points") / np.float32(factor))
    return _back(builder, result, coarse, shift)


def _integers_over(builder: Builder, call: Call, factor: float, mode: str) -> Call:
    """round(call / factor) of integers; a shift that no integer reaches makes a floor of it."""
    if factor < 1 or factor != 2.0 ** round(np.log2(factor)):
        raise UnsupportedError(f"divides by {factor:g}; expected a power of two from 1 on")
    mode = mode.upper()
    shift = {"FLOOR": (1 - factor) / 2, "CEIL": (factor - 1) / 2, "ROUND": 0.0, "HALF_EVEN": 0.0}
    if mode not in shift:
        raise UnsupportedError(f"has rounding_mode {mode!r}; expected {', '.join(shift)}")
    if factor == 1:
        return call
    moved = binary(builder, "add", call, shift[mode]) if shift[mode] else call
    return unary(builder, "round", binary(builder, "mul", moved, 1 / factor))


def multi_threshold(builder: Builder, node: Node) -> Call:
    """MultiThreshold: out_scale * (number of thresholds t with x >= t) + out_bias."""
    call, thresholds = node.operand(0), builder.value(node.operand(1), "thresholds")
    rank = len(call.shape)
    layout = node.get("data_layout") or LAYOUTS.get(rank, "NC")
    axis = layout.index("C") if "C" in layout else 1
    if thresholds.ndim != 2 or axis >= rank or not thresholds.size:
        raise UnsupportedError(f"has thresholds of shape {thresholds.shape} on {call.shape}")
    if len(thresholds) not in (1, call.shape[axis]):
        got = f"{len(thresholds)} rows of thresholds for {call.shape[axis]} channels"
        raise UnsupportedError(f"has {got}")
    if np.isnan(thresholds).any():
        raise UnsupportedError("has thresholds that are no numbers")
    arguments = {
        "self": call,
        "thresholds": node.operand(1),
        "scale": node.get("out_scale", 1.0),
        "bias": node.get("out_bias", 0.0),
        "axis": axis,
    }
    return builder.emit("multi_threshold", arguments, None, call.shape)


def equal_bits(builder: Builder, node: Node) -> Call:
    """XnorPopcountMatMul: how many of K pairs of bits 0 and 1 are equal.

    Of P equal and N other ones, the product of the same as -1 and 1 is P - N; P = (P - N + K) / 2.
    """
    factors = [
        binary(builder, "sub", binary(builder, "mul", node.operand(index), 2.0), 1.0)
        for index in range(2)
    ]
    product = matmul(builder, replace(node, inputs=[*factors]))
    count = float(factors[0].shape[-1])
    return binary(builder, "mul", binary(builder, "add", product, count), 0.5)


def quantize(builder: Builder, node: Node) -> Call:
    """QuantizeLinear: integers, as float32 numbers unless they are constants."""
    call, scale = node.operand(0), _along(builder, node, node.operand(1))
    zero_call = node.input(2)
    dtype = np.dtype(str(zero_call.dtype) if zero_call is not None else "uint8")
    if dtype.kind not in "iu":
        raise UnsupportedError(f"quantizes to {dtype}")
    limits = np.iinfo(dtype)
    result = unary(builder, "round", _divided(builder, call, scale))
    if zero_call is not None:
        zero = cast(builder, _along(builder, node, zero_call), "float32")
        result = plus(builder, result, zero)
    return clamp(builder, result, float(limits.min), float(limits.max))


def dequantize(builder: Builder, node: Node) -> Call:
    """DequantizeLinear: (x - zero_point) * scale."""
    call, zero_call = node.operand(0), node.input(2)
    result = cast(builder, call, "float32")
    if zero_call is not None:
        zero = cast(builder, _along(builder, node, zero_call), "float32")
        result = minus(builder, result, zero)
    return times(builder, result, _along(builder, node, node.operand(1)))


def _along(builder: Builder, node: Node, call: Call) -> Call:
    """A constant of one number per channel, so that it meets the node's axis."""
    rank, axis = len(node.operand(0).shape), int(node.get("axis", 1))
    if len(call.shape) != 1 or call.shape == (1,) or not -rank <= axis < rank:
        return call
    return reshaped(builder, call, [call.shape[0] if a == axis % rank else 1 for a in range(rank)])


def _scale(builder: Builder, node: Node, index: int) -> Call:
    call = node.operand(index)
    if not call.constant:
        raise UnsupportedError("has a scale or zero point that depends on an input")
    return cast(builder, call, "float32")


def _limits(bits: float, signed: bool, narrow: bool) -> tuple[float, float]:
    if not 1 <= bits <= MAX_BITS:
        raise UnsupportedError(f"has {bits:g} bits; expected 1 to {MAX_BITS}")
    if signed:
        high = 2.0 ** (bits - 1) - 1
        return (-high if narrow else -high - 1), high
    return 0.0, 2.0**bits - 1 - narrow


def signs(builder: Builder, call: Call) -> Call:
    """1 where a call is at least 0, else -1."""
    if call.constant:
        zero = builder.literal(np.zeros((), np.float32))
        ones = [builder.literal(np.full((), one, np.float32)) for one in (1, -1)]
        return where(builder, binary(builder, "ge", call, zero), ones[0], ones[1])
    return where(builder, binary(builder, "ge", call, 0.0), 1.0, -1.0)


def _rounded(builder: Builder, call: Call, node: Node) -> Call:
    mode = str(node.get("rounding_mode", "ROUND")).upper()
    if mode in PLAIN_MODES:
        return unary(builder, PLAIN_MODES[mode], call)
    if mode not in ROUNDING_MODES:
        raise UnsupportedError(f"has rounding_mode {mode!r}")
    # Whatever it rounds to, it is a monotone step function, as ATen's fix is.
    return builder.emit("fix", {"self": call}, ROUNDING_MODES[mode], call.shape)


def _shifted(builder: Builder, call: Call, scale: Call, zero: Call) -> Call:
    return plus(builder, _divided(builder, call, scale), zero)


def _divided(builder: Builder, call: Call, scale: Call) -> Call:
    if scale.constant and not (builder.value(scale, "scales") != 0).all():
        raise UnsupportedError("has a scale of 0, by which it divides")
    return over(builder, call, scale)


def _back(builder: Builder, call: Call, scale: Call, zero: Call) -> Call:
    return times(builder, minus(builder, call, zero), scale)


def _unless(neutral: float, op: str, builder: Builder, call: Call, constant: Call) -> Call:
    """An operation with a constant, left out where it changes no number."""
    values = builder.value(constant, "scales")
    fits = np.broadcast_shapes(values.shape, call.shape) == call.shape
    return call if fits and (values == neutral).all() else binary(builder, op, call, constant)


over = partial(_unless, 1.0, "div")
times = partial(_unless, 1.0, "mul")
plus = partial(_unless, 0.0, "add")
minus = partial(_unless, 0.0, "sub")

QUANTIZERS: Final = {
    "Quant": quant,
    "IntQuant": quant,
    "BipolarQuant": bipolar,
    "Trunc": trunc,
    "MultiThreshold": multi_threshold,
    "XnorPopcountMatMul": equal_bits,
}
QDQ: Final = {"QuantizeLinear": quantize, "DequantizeLinear": dequantize}
