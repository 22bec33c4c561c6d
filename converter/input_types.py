"""Networks that were trained on floats made to read the bytes of a picture."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from phonebit.converter.ir import Dequantize, Graph, Input, Node, TensorType
from phonebit.converter.passes.base import copy_graph, fresh_value, index_of, rename_uses
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

LEVELS: Final = 255
"""A byte's largest level, which means the upper end of the input's range."""
MAX_INTEGER: Final = 1 << 20
"""Larger factors than this mean that the range is no simple fraction; then floats are used."""


def rational_range(low: float, high: float) -> tuple[int, int, int] | None:
    """The range low..high of a byte as integers (mul, add, divisor).

    low + level * (high - low) / 255 = (mul * level + add) / divisor for every level.

    Returns:
        None if the range's ends are not exactly representable by small integers.
    """
    ends = [Fraction(end).limit_denominator(1 << 12) for end in (low, high)]
    if [float(end) for end in ends] != [low, high]:
        return None
    slope = (ends[1] - ends[0]) / LEVELS
    divisor = math.lcm(slope.denominator, ends[0].denominator)
    mul, add = int(slope * divisor), int(ends[0] * divisor)
    return (mul, add, divisor) if max(abs(mul), abs(add)) <= MAX_INTEGER else None


def read_bytes(graph: Graph, input_range: tuple[float, float]) -> Graph:
    """Lets every float input read u8 levels.

    Given an input x of floats, the result reads x as bytes and computes "x/real" = low + x *
    (high - low) / 255, which x's readers read from then on. Inputs that are bytes already stay.

    Args:
        graph: Source graph; it is not changed.
        input_range: What the levels 0 and 255 mean to the network.

    Raises:
        ConversionError: The range is empty or not finite, or an input is also an output.
    """
    low, high = (float(end) for end in input_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConversionError(
            "input_range", expected="two finite numbers, low < high", got=(low, high)
        )
    result = copy_graph(graph)
    for node in [node for node in result.nodes if isinstance(node.op, Input)]:
        name = node.outputs[0]
        kind = result.types[name]
        if kind.dtype != DataType.F32:
            continue
        if name in result.outputs:
            raise ConversionError("is both input and output: cannot read bytes", where=name)
        real = fresh_value(result, f"{name}/real")
        rename_uses(result, name, real)
        channels = kind.shape[2]
        op = Dequantize(
            np.full(channels, (high - low) / LEVELS, np.float32),
            np.full(channels, low, np.float32),
            rational_range(low, high),
        )
        index = index_of(result, node)
        result.nodes.insert(index + 1, Node(f"{name}/dequantize", op, [name], value=real))
        result.types[name] = TensorType(kind.shape, DataType.U8)
        result.types[real] = kind
    return result
