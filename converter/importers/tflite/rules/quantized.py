"""Integers that stand for real numbers: calls compute with the numbers that they stand for."""

from __future__ import annotations

from typing import Final

import numpy as np

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary, cast, clamp, unary
from phonebit.converter.importers.onnx.rules.quantizers import minus, plus, times
from phonebit.converter.importers.tflite.files import Tensor
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

QUANTIZING: Final = frozenset(
    {"QUANTIZE", "DEQUANTIZE", "LceQuantize", "LceDequantize", "LceBconv2d"}
)
"""Operators between real numbers, bits and integers: their roundings are expressed exactly."""
COPYING: Final = frozenset(
    {"MAX_POOL_2D", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "CONCATENATION", "SPLIT"}
    | {"SPLIT_V", "SLICE", "STRIDED_SLICE", "PAD", "GATHER", "PACK", "DEPTH_TO_SPACE"}
)
"""Operators that only copy integers, if all of their tensors have one scale and zero point."""


def quantize(builder: Builder, node: Node) -> Call:
    """QUANTIZE of real numbers."""
    result: Tensor = node.get("result")
    if node.get("operand").is_quantized:
        raise UnsupportedError("changes the scale of integers with a rounding of its own")
    scale, _ = scale_of(result)
    call = binary(builder, "div", node.operand(0), float(scale))
    return rounded(builder, call, result, True)


def dequantize(builder: Builder, node: Node) -> Call:
    """DEQUANTIZE: the numbers are real already, but for halves."""
    return cast(builder, node.operand(0), "float32")


def scale_of(tensor: Tensor) -> tuple[np.float32, int]:
    """The scale and zero point of a computed tensor.

    Raises:
        UnsupportedError: It has none, or several.
    """
    if not tensor.is_quantized or tensor.scales.size != 1 or not tensor.scales[0] > 0:
        raise UnsupportedError(f"has a result of {tensor.dtype} without one scale above 0")
    return tensor.scales[0], int(tensor.zeros[0])


def rounded(builder: Builder, call: Call, tensor: Tensor, add_zero: bool) -> Call:
    """The nearest integers of a quantized tensor, as the numbers that they stand for.

    Exactly between two it is the even one; interpreters differ there from processor to processor.
    """
    scale, zero = scale_of(tensor)
    limits = np.iinfo(np.dtype(tensor.dtype))
    # One number for each channel is no part of a quantizer: the integers are rounded as they are.
    offset = builder.parameter(np.full(call.shape[-1], zero, np.float32), f"{tensor.name}/zero")
    call = unary(builder, "round", call)
    call = plus(builder, call, offset) if add_zero else call
    call = clamp(builder, call, float(limits.min), float(limits.max))
    return times(builder, minus(builder, call, offset), builder.literal(np.array(scale)))
