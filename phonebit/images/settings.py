"""Preprocessing as people write and read it: a TOML file, the flags of a command, a line of text.

A setting has the same name and the same text everywhere: ``range``, ``mean``, ``std``, ``color``,
``resize`` ("stretch", "shorter:256", "letterbox", "letterbox:114") and ``interpolation``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from phonebit import text_files
from phonebit.errors import InputError
from phonebit.format.records import ColorOrder, Interpolation, Resize
from phonebit.images.labels import check_labels, read_labels

Choice = TypeVar("Choice", bound=IntEnum)
Fields = dict[str, Any]
"""Some of Preprocessing's attributes by name."""

RESIZE_NAMES: Final = {
    "stretch": Resize.STRETCH,
    "shorter": Resize.SHORTER_SIDE,
    "letterbox": Resize.LETTERBOX,
}
MAX_DIGITS: Final = 9
RESIZE_FORMS: Final = "stretch, shorter:PIXELS, letterbox or letterbox:LEVEL"
PRESETS: Final[dict[str, dict[str, object]]] = {
    "imagenet": {
        "range": "0,1",
        "mean": "0.485,0.456,0.406",
        "std": "0.229,0.224,0.225",
        "color": "rgb",
        "resize": "shorter:256",
    },
}
"""Settings that can be named in place of a file. imagenet: what torchvision's weights were trained
with (https://pytorch.org/vision/stable/models.html)."""


@dataclass(frozen=True)
class PreprocessingFile:
    """What a TOML file says.

    Attributes:
        fields: the attributes of Preprocessing that it sets; flags may override or complete them.
        labels: class names, or None.
        labels_file: where they stand, if not in the TOML file itself.
    """

    fields: Fields = field(default_factory=dict)
    labels: list[str] | None = None
    labels_file: Path | None = None


def read_toml(path: Path) -> PreprocessingFile:
    """Read a TOML file, docs/preprocessing.md lists its keys; or one of ``PRESETS`` by its name.

    Raises:
        InputError: if it is no TOML, or has unknown or wrong keys.
        OSError: if it, or the ``labels_file`` that it names, cannot be read.
    """
    preset = PRESETS.get(str(path))
    table = text_files.read_toml(path) if preset is None else preset
    known = (*SETTINGS, "labels", "labels_file")
    if unknown := [key for key in table if key not in known]:
        raise InputError(
            f"unknown key {', '.join(unknown)}", where=str(path), expected=", ".join(known)
        )
    if "labels" in table and "labels_file" in table:
        raise InputError("labels and labels_file", where=str(path), hint="give one of them")
    labels, labels_file = None, None
    if "labels_file" in table:
        labels_file = path.parent / _text(table["labels_file"], f"{path}: labels_file")
        labels = read_labels(labels_file)
    elif "labels" in table:
        labels = check_labels(table["labels"], f"{path}: labels")
    fields: Fields = {}
    for key, parse in SETTINGS.items():
        if key in table:
            fields |= parse(table[key], f"{path}: {key}")
    return PreprocessingFile(fields, labels, labels_file)


# --- one setting each: what is written -> attributes ---


def range_setting(value: object, where: str) -> Fields:
    """``"-1,1"`` or ``[-1, 1]``."""
    numbers = _numbers(value, where, "LOW,HIGH, e.g. -1,1")
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise InputError("not a range", where=where, expected="LOW,HIGH, e.g. -1,1", got=value)
    return {"range": numbers}


def mean_setting(value: object, where: str) -> Fields:
    """``"0.5"``, ``"0.485,0.456,0.406"``, a number or numbers."""
    return {"mean": _numbers(value, where, "one number, or one a channel: M or M,M,M")}


def std_setting(value: object, where: str) -> Fields:
    """As the mean."""
    numbers = _numbers(value, where, "one number, or one a channel: S or S,S,S")
    if min(numbers) <= 0:
        raise InputError("deviations", where=where, expected="numbers above 0", got=value)
    return {"std": numbers}


def color_setting(value: object, where: str) -> Fields:
    """``"rgb"``, ``"bgr"``, ``"gray"``, ``"rgba"``, or ``"none"``: no image."""
    return {"color": _choice(ColorOrder, value, where)}


def interpolation_setting(value: object, where: str) -> Fields:
    """``"nearest"``, ``"bilinear"`` or ``"bicubic"``."""
    return {"interpolation": _choice(Interpolation, value, where)}


def resize_setting(value: object, where: str) -> Fields:
    """``"stretch"``, ``"shorter:256"``, ``"letterbox"`` or ``"letterbox:114"``."""
    name, colon, number = _text(value, where).partition(":")
    resize = RESIZE_NAMES.get(name)
    is_number = number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS
    fits = {
        Resize.STRETCH: not colon,
        Resize.SHORTER_SIDE: is_number,
        Resize.LETTERBOX: is_number or not colon,
    }
    if resize is None or not fits[resize]:
        raise InputError("not a way to resize", where=where, expected=RESIZE_FORMS, got=repr(value))
    fields: Fields = {"resize": resize, "resize_to": 0, "fill_level": 0}
    if is_number:
        fields["resize_to" if resize is Resize.SHORTER_SIDE else "fill_level"] = int(number)
    return fields


SETTINGS: Final[dict[str, Callable[[object, str], Fields]]] = {
    "range": range_setting,
    "mean": mean_setting,
    "std": std_setting,
    "color": color_setting,
    "resize": resize_setting,
    "interpolation": interpolation_setting,
}
"""Each setting by its name in a TOML file."""


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError("wrong type", where=where, expected="a text", got=repr(value))
    return value


def _numbers(value: object, where: str, expected: str) -> tuple[float, ...]:
    items: Any = value.split(",") if isinstance(value, str) else value
    items = items if isinstance(items, list) else [items]
    try:
        if any(isinstance(item, bool) for item in items):
            raise ValueError
        numbers = tuple(float(item) for item in items)
        if not numbers or not all(abs(number) < float("inf") for number in numbers):
            raise ValueError
    except text_files.DAMAGED:
        raise InputError("not numbers", where=where, expected=expected, got=repr(value)) from None
    return numbers


def _choice(kinds: type[Choice], value: object, where: str) -> Choice:
    names = {kind.name.lower(): kind for kind in kinds}
    text = _text(value, where)
    if text not in names:
        raise InputError("unknown", where=where, expected=" or ".join(names), got=repr(text))
    return names[text]
