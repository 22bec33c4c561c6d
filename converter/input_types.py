"""What a network's inputs read: float values as in training, or the bytes of an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from phonebit.converter.ir import Graph, Node, TensorType
from phonebit.converter.ops import Dequantize, Input
from phonebit.converter.passes.base import copy_graph, fresh_value, index_of, rename_uses
from phonebit.errors import ConversionError, InputError
from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing
from phonebit.layer_info import TensorInfo

LEVELS: Final = 255
"""A byte's largest level, which means the upper end of the input's range."""
MAX_DENOMINATOR: Final = 1 << 14
"""Of numbers that count as simple fractions: up to four decimals."""
MAX_INTEGER: Final = 1 << 20
"""Larger integers than this mean that the values are no simple fractions; then floats are used."""


def chosen_preprocessing(
    input_range: tuple[float, float] | None, preprocessing: Preprocessing | None
) -> Preprocessing | None:
    """``input_range`` is short for ``Preprocessing(range=input_range)``; both may say the same.

    Raises:
        ConversionError: They contradict each other, or the range is none.
    """
    if input_range is None:
        return preprocessing
    try:
        short = Preprocessing(input_range)
    except InputError as error:
        raise ConversionError(f"input_range: {error}") from error
    if preprocessing is not None and preprocessing.range != short.range:
        raise ConversionError(
            "input_range and preprocessing contradict each other",
            expected=f"the range of preprocessing, {preprocessing.range}",
            got=short.range,
            hint="leave input_range out",
        )
    return preprocessing or short


def input_rules(graph: Graph, preprocessing: Preprocessing) -> dict[str, Preprocessing]:
    """The rule for each input of a source graph, by name.

    An input that is bytes in the source reads plain levels: what they stand for is the business of
    the source's own layers.

    Raises:
        ConversionError: The rule does not fit an input, or gives levels values that no input reads.
    """
    rules = {}
    for name in graph.inputs:
        kind = graph.types[name]
        try:
            rule = preprocessing.for_input(TensorInfo(name, "f32", kind.shape))
        except InputError as error:
            raise ConversionError(str(error)) from error
        is_bytes = kind.dtype == DataType.U8
        rules[name] = _plain_levels(rule) if is_bytes else rule
    if all(graph.types[name].dtype == DataType.U8 for name in rules) and any(
        (rule.range, rule.mean, rule.std)
        != (preprocessing.range, preprocessing.mean, preprocessing.std)
        for rule in rules.values()
    ):
        raise ConversionError(
            "this network reads the levels of an image already",
            where=graph.name,
            expected=f"range (0, {LEVELS}), mean 0, std 1",
            got=f"{preprocessing.range}, {preprocessing.mean}, {preprocessing.std}",
        )
    return rules


def _plain_levels(rule: Preprocessing) -> Preprocessing:
    return replace(rule, range=(0.0, float(LEVELS)), mean=(0.0,), std=(1.0,))


def rational_levels(rule: Preprocessing) -> tuple[int, int, int] | None:
    """What bytes stand for as integers (mul, add, divisor).

    (low + level * (high - low) / 255 - mean) / std = (mul * level + add) / divisor for every level.

    Returns:
        None if channels differ, or the numbers are not exactly representable by small integers.
    """
    numbers = [*rule.range, *rule.mean, *rule.std]
    fractions = [Fraction(number).limit_denominator(MAX_DENOMINATOR) for number in numbers]
    is_exact = all(float(f) == number for f, number in zip(fractions, numbers, strict=True))
    if not is_exact or len(numbers) > 4:
        return None
    low, high, mean, std = fractions
    slope, offset = (high - low) / LEVELS / std, (low - mean) / std
    divisor = math.lcm(slope.denominator, offset.denominator)
    mul, add = int(slope * divisor), int(offset * divisor)
    reach = max(abs(add), abs(LEVELS * mul + add))
    return (mul, add, divisor) if reach <= MAX_INTEGER else None


def read_bytes(graph: Graph, rules: Mapping[str, Preprocessing]) -> Graph:
    """Lets every float input read u8 levels.

    Given an input x of floats, the result reads x as bytes and computes "x/real" = level * scale +
    offset of each channel, which x's readers read from then on. Inputs that are bytes already stay.

    Args:
        graph: Source graph; it is not changed.
        rules: By input name: what levels stand for.

    Raises:
        ConversionError: An input is also an output.
    """
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
        rule, channels = rules[name], kind.shape[2]
        op = Dequantize(rule.scale(channels), rule.offset(channels), rational_levels(rule))
        index = index_of(result, node)
        result.nodes.insert(index + 1, Node(f"{name}/dequantize", op, [name], value=real))
        result.types[name] = TensorType(kind.shape, DataType.U8)
        result.types[real] = kind
    return result
