"""Checks of the sections that tell what a network reads and answers.

They are PREPROCESSING, DETECTION and LABELS.

They are optional and nothing is computed from them, but whoever shows a picture to a network relies
on them, so a file with nonsense in them is damaged like any other.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from phonebit.format.contents import FileContents
from phonebit.format.records import (
    MAX_ANCHORS,
    ColorOrder,
    DataType,
    HeadKind,
    Interpolation,
    Resize,
)

MAX_LABELS: Final = 1 << 16
MAX_NAME_BYTES: Final = 1024
MAX_SIDE: Final = 1 << 20
MAX_LEVEL: Final = 255
MAX_FLOAT32: Final = float(np.finfo(np.float32).max)
PER_CHANNEL: Final = 4
"""Means and deviations of a record: one a channel, or all alike for inputs with more channels."""
BOX_NUMBERS: Final = 5
"""Channels of each anchor before its classes: x, y, w, h, objectness."""
MAX_ANCHOR: Final = MAX_SIDE

COLOR_CHANNELS: Final = {
    ColorOrder.GRAY: 1,
    ColorOrder.RGB: 3,
    ColorOrder.BGR: 3,
    ColorOrder.RGBA: 4,
}
"""Channels of an input that reads pictures."""

_CHOICES: Final[dict[str, type[IntEnum]]] = {
    "color_order": ColorOrder,
    "resize": Resize,
    "interpolation": Interpolation,
}


def preprocessing_problem(contents: FileContents) -> str | None:
    """What is wrong with the PREPROCESSING section; None if nothing is.

    Args:
        contents: A file whose tensors and inputs were checked already.
    """
    described: set[int] = set()
    for number, record in enumerate(contents.preprocessing):
        index = int(record["input"])
        if index >= len(contents.inputs):
            return f"preprocessing {number}: input {index} does not exist"
        if index in described:
            return f"preprocessing {number}: input {index} is described twice"
        described.add(index)
        tensor = contents.tensors[contents.inputs[index]]
        shape = (int(tensor["height"]), int(tensor["width"]), int(tensor["channels"]))
        problem = _rule_problem(record, shape) or _values_problem(record, shape[2])
        if problem:
            return f"preprocessing of input {index}: {problem}"
    return None


def _rule_problem(record: np.void, shape: tuple[int, int, int]) -> str | None:
    """Colour order and geometry."""
    for field, kinds in _CHOICES.items():
        if int(record[field]) not in kinds._value2member_map_:
            return f"unknown {field} {record[field]}, update phonebit or convert the network again"
    channels = COLOR_CHANNELS.get(ColorOrder(int(record["color_order"])), shape[2])
    if channels != shape[2]:
        return f"its colour order has {channels} channels, the input has {shape[2]}"
    needed = max(shape[:2])
    if record["resize"] == Resize.SHORTER_SIDE and not needed <= record["resize_to"] <= MAX_SIDE:
        return f"resize_to is {record['resize_to']}, expected {needed} to {MAX_SIDE}"
    if record["fill_level"] > MAX_LEVEL:
        return f"fill_level is {record['fill_level']}, expected 0 to {MAX_LEVEL}"
    return None


def _values_problem(record: np.void, channels: int) -> str | None:
    """What levels stand for."""
    low, high, mean, deviation = (record[name] for name in ("low", "high", "mean", "deviation"))
    if not np.isfinite([low, high]).all() or low == high:
        return f"low and high are {low} and {high}, expected two different finite numbers"
    if not np.isfinite(mean).all() or not np.isfinite(deviation).all() or deviation.min() <= 0:
        return "a mean or deviation is not finite, or a deviation not above 0"
    if channels > PER_CHANNEL and (np.ptp(mean) or np.ptp(deviation)):
        return f"means or deviations differ, but the input has {channels} channels"
    with np.errstate(over="ignore"):
        ends = np.abs([(low - mean) / deviation, (high - mean) / deviation])
        span = np.abs((high - low) / deviation)
    if max(ends.max(), span.max()) > MAX_FLOAT32:
        return "levels stand for values that float32 cannot hold"
    return None


def detection_problem(contents: FileContents) -> str | None:
    """What is wrong with the DETECTION section; None if nothing is."""
    described: set[int] = set()
    for number, record in enumerate(contents.detection):
        index = int(record["output"])
        if index >= len(contents.outputs):
            return f"detection {number}: output {index} does not exist"
        if index in described:
            return f"detection {number}: output {index} is described twice"
        described.add(index)
        tensor = contents.tensors[contents.outputs[index]]
        problem = _head_problem(record, tensor)
        if problem:
            return f"detection of output {index}: {problem}"
    return None


def _head_problem(record: np.void, tensor: np.void) -> str | None:
    if int(record["kind"]) not in HeadKind._value2member_map_:
        return f"unknown kind {record['kind']}, update phonebit or convert the network again"
    count = int(record["anchor_count"])
    if not 1 <= count <= MAX_ANCHORS:
        return f"{count} anchors, expected 1 to {MAX_ANCHORS}"
    sides = record["anchors"][:count]
    if not (np.isfinite(sides).all() and sides.min() > 0 and sides.max() <= MAX_ANCHOR):
        return f"an anchor's side is not above 0 and up to {MAX_ANCHOR}"
    if int(tensor["dtype"]) != DataType.F32:
        return "the output is not real"
    channels = int(tensor["channels"])
    if channels % count or channels // count <= BOX_NUMBERS:
        return f"{count} anchors do not fit the output's {channels} channels"
    return None


def class_count(contents: FileContents) -> int:
    """Classes that the first output tells apart: its channels, or what its anchors leave of them.

    Args:
        contents: A file whose DETECTION section was checked already.
    """
    channels = int(contents.tensors[contents.outputs[0]]["channels"])
    for record in contents.detection:
        if record["output"] == 0:
            return channels // int(record["anchor_count"]) - BOX_NUMBERS
    return channels


def labels_problem(contents: FileContents) -> str | None:
    """What is wrong with the LABELS section, beyond its names; None if nothing is."""
    count = len(contents.labels)
    if count == 0:
        return None
    classes = class_count(contents)
    if count != classes:
        return f"{count} labels for {classes} classes of the first output"
    return f"{count} labels, more than {MAX_LABELS}" if count > MAX_LABELS else None
