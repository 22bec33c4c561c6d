"""Larq Compute Engine's operators. A bit is 1 where a number is -1; bits lie in words of 32."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary, where
from phonebit.converter.importers.onnx.rules.moving import permuted
from phonebit.converter.importers.onnx.rules.pooling import padded
from phonebit.converter.importers.onnx.rules.quantizers import plus, signs, times
from phonebit.converter.importers.onnx.rules.windows import pads_of, window_of
from phonebit.converter.importers.tflite.files import Tensor
from phonebit.converter.importers.tflite.rules.as_onnx import (
    TO_BACK,
    TO_FRONT,
    limited,
    on_map,
    window_options,
)
from phonebit.converter.importers.tflite.rules.computing import pool
from phonebit.converter.importers.tflite.rules.quantized import rounded, scale_of
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Array = NDArray[Any]
WORD_BITS: Final = 32
OPTIONS: Final = {
    "stride_height": "StrideH",
    "stride_width": "StrideW",
    "dilation_height_factor": "DilationHFactor",
    "dilation_width_factor": "DilationWFactor",
    "filter_height": "FilterHeight",
    "filter_width": "FilterWidth",
    "padding": "Padding",
}
"""What TensorFlow Lite calls the same options."""


def _quantize(builder: Builder, node: Node) -> Call:
    return signs(builder, node.operand(0))


def _dequantize(builder: Builder, node: Node) -> Call:
    """Real numbers -1 and 1, or the integers next to them."""
    call, result = node.operand(0), node.get("result")
    if not result.is_quantized:
        return call
    scale, zero = scale_of(result)
    step = int(np.floor(np.float32(1) / scale + np.float32(0.5)))
    low, high = (max(-128, zero - step) - zero, min(127, zero + step) - zero)
    mask = binary(builder, "ge", call, 0.0)
    return where(builder, mask, float(np.float32(high) * scale), float(np.float32(low) * scale))


def _max_pool(builder: Builder, node: Node) -> Call:
    return pool("MaxPool", builder, _as_builtin(node))


def _as_builtin(node: Node) -> Node:
    options = {OPTIONS.get(name, name): value for name, value in node.attributes.items()}
    return Node(node.op, "", 1, node.inputs, node.outputs, node.path, options)


def _convolution(builder: Builder, node: Node) -> Call:
    """LceBconv2d: the sum of products, an activation, a factor and an offset for each channel.

    Instead of the last three a result of bits has thresholds of the number of products that are -1.
    """
    node = _as_builtin(node)
    call, filters, result = node.operand(0), node.operand(1), node.get("result")
    if len(filters.shape) != 4 or len(call.shape) != 4 or filters.dtype != "int32":
        raise UnsupportedError(f"has filters of shape {filters.shape} on an input {call.shape}")
    channels, words = call.shape[3], -(-call.shape[3] // WORD_BITS)
    if node.get("channels_in") != channels:
        raise UnsupportedError(f"reads {node.get('channels_in')} channels of {channels}")
    out, *kernel, stored = filters.shape
    groups = words // stored if stored and words % stored == 0 else 0
    if groups < 1 or out % groups or (groups > 1 and channels % (groups * WORD_BITS)):
        raise UnsupportedError(f"has filters of shape {filters.shape} on {channels} channels")
    shape = (out, channels // groups, *kernel)
    weight = signs(
        builder,
        builder.emit("unpack", {"self": filters}, partial(_unpacked, shape[1]), shape, "float32"),
    )
    sums = _sums(builder, node, weight, groups)
    depth = shape[1] * kernel[0] * kernel[1]
    if result.dtype == "int32":
        return _thresholds(builder, sums, node.operand(4), depth)
    multiplier, bias = node.operand(2), node.operand(3)
    factors = [builder.value(each, "factors").astype(np.float64) for each in (multiplier, bias)]
    if not all(each.shape == (out,) and np.isfinite(each).all() for each in factors):
        raise UnsupportedError(f"has no finite factor and offset for each of {out} channels")
    sums = limited(builder, sums, node.get("fused_activation_function", 0))
    if result.dtype == "float32":
        return plus(builder, times(builder, sums, multiplier), bias)
    return _integers(builder, sums, factors, depth, result)


def _sums(builder: Builder, node: Node, weight: Call, groups: int) -> Call:
    """Sums of products of signs; padding counts as 0 or 1."""
    call, options = node.operand(0), window_options(node)
    value, activation = node.get("pad_values", 0), node.get("fused_activation_function", 0)
    if value not in (0, 1):
        raise UnsupportedError(f"has pad_values {value}")
    conv = Node("Conv", "", 1, [], [], "", {**options, "kernel_shape": list(weight.shape[2:])})
    size = call.shape[1:3]
    top, left, bottom, right = pads_of(conv, size, *window_of(conv))
    if any((top, left, bottom, right)):
        if value == 1:
            front = permuted(builder, call, TO_FRONT)
            front = padded(builder, front, [left, right, top, bottom], "constant", 1.0)
            call = permuted(builder, front, TO_BACK)
            options["auto_pad"] = "VALID"
        elif activation or node.get("result").dtype != "float32":
            raise UnsupportedError("pads with 0 before an activation, or to a result of bits")
    return on_map(builder, node, "Conv", [call, weight], **options, group=groups)


def _thresholds(builder: Builder, sums: Call, thresholds: Call, depth: int) -> Call:
    """-1 where more products are -1 than the threshold says, i.e. the sum is below a number."""
    limits = builder.value(thresholds, "thresholds").astype(np.int64)
    if limits.shape != sums.shape[-1:]:
        raise UnsupportedError(f"has thresholds of shape {limits.shape}")
    minimum = depth - 2 * np.clip(limits, -1, depth)
    mask = binary(builder, "ge", sums, builder.literal(minimum.astype(np.float32)))
    return where(builder, mask, 1.0, -1.0)


def _integers(
    builder: Builder, sums: Call, factors: list[Array], depth: int, result: Tensor
) -> Call:
    """Integers by the interpreter's own arithmetic, since they depend on how it rounds.

    It computes with the difference of the sum to the greatest one; factors are made in float64.
    """
    (scale, zero), (multiplier, bias) = scale_of(result), factors
    slope = -multiplier / np.float64(scale)
    offset = (bias + depth * multiplier) / np.float64(scale) + zero
    call = binary(builder, "sub", float(depth), sums)
    call = times(builder, call, builder.literal(slope.astype(np.float32)))
    call = plus(builder, call, builder.literal(offset.astype(np.float32)))
    return rounded(builder, call, result, False)


def _unpacked(channels: int, /, self: Array) -> Array:
    """Filters (Cout, KH, KW, words) as numbers (Cout, channels, KH, KW)."""
    octets = np.ascontiguousarray(self, "<i4").view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little")[..., :channels]
    return (1 - 2 * bits.astype(np.float32)).transpose(0, 3, 1, 2)


LARQ: Final = {
    "LceQuantize": _quantize,
    "LceDequantize": _dequantize,
    "LceBconv2d": _convolution,
    "LceBMaxPool2d": _max_pool,
}
