"""What a detector's output means: the facts that decoding needs and the weights do not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.format.records import BOX_NUMBERS, DETECTION, MAX_ANCHORS, MAX_SIDE, HeadKind
from phonebit.text_files import DAMAGED, read_toml

__all__ = ["DetectionHead", "HeadKind", "read_head"]

KEYS: Final = ("kind", "anchors")


@dataclass(frozen=True)
class DetectionHead:
    """One output's facts.

    Attributes:
        anchors: (width, height) of each box prior, in cells of the output map; rounded to float32.
        kind: how the channels of the output are arranged; docs/detection.md.

    Raises:
        InputError: if there are no anchors or too many, or a side is not above 0.
    """

    anchors: tuple[tuple[float, float], ...]
    kind: HeadKind = HeadKind.YOLOV2

    def __post_init__(self) -> None:
        try:
            pairs = [(float(np.float32(w)), float(np.float32(h))) for w, h in self.anchors]
        except DAMAGED:
            raise _wrong("anchors", "pairs of numbers: width, height", self.anchors) from None
        if not 1 <= len(pairs) <= MAX_ANCHORS:
            raise _wrong("number of anchors", f"1 to {MAX_ANCHORS}", len(pairs))
        if not all(0 < side <= MAX_SIDE for pair in pairs for side in pair):
            raise _wrong("anchors", f"sides above 0 and up to {MAX_SIDE} cells", self.anchors)
        object.__setattr__(self, "anchors", tuple(pairs))

    def classes(self, channels: int) -> int:
        """How many classes an output of so many channels tells apart.

        Raises:
            InputError: if it is no whole number above 0.
        """
        each, rest = divmod(channels, len(self.anchors))
        if rest or each <= BOX_NUMBERS:
            count = len(self.anchors)
            raise InputError(
                "the output does not fit the anchors",
                where="detection",
                expected=f"{count} x ({BOX_NUMBERS} + classes) channels for {count} anchors",
                got=channels,
            )
        return each - BOX_NUMBERS

    def to_record(self, output: int) -> NDArray[np.void]:
        """The file's record about output number ``output``."""
        record = np.zeros((), DETECTION)
        record["output"], record["kind"] = output, self.kind
        record["anchor_count"] = len(self.anchors)
        record["anchors"][: len(self.anchors)] = self.anchors
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | np.void) -> DetectionHead:
        """The inverse, of a checked record (or the runtime's dict of it)."""
        pairs = record["anchors"][: int(record["anchor_count"])]
        return cls(tuple((float(w), float(h)) for w, h in pairs), HeadKind(int(record["kind"])))


def read_head(path: str | Path) -> DetectionHead:
    """Read the facts from a TOML file.

    Its keys are ``anchors`` ([[width, height], ...], in cells) and ``kind`` ("yolov2", the
    default), at the top or in a table ``[detection]``.

    Raises:
        InputError: if the file is no TOML, or has unknown, missing or wrong keys.
        OSError: if it cannot be read.
    """
    table = read_toml(Path(path))
    table = table.get("detection", table)
    if not isinstance(table, dict):
        raise InputError("detection", where=str(path), expected="a table", got=repr(table))
    if unknown := [key for key in table if key not in KEYS]:
        expected = ", ".join(KEYS)
        raise InputError(f"unknown key {', '.join(unknown)}", where=str(path), expected=expected)
    if "anchors" not in table:
        raise InputError(
            "no anchors in it",
            where=str(path),
            expected="anchors = [[width, height], ...] in cells",
        )
    kinds = {kind.name.lower(): kind for kind in HeadKind}
    kind = kinds.get(str(table.get("kind", "yolov2")))
    if kind is None:
        raise InputError(
            "unknown kind", where=str(path), expected=" or ".join(kinds), got=repr(table["kind"])
        )
    if not isinstance(table["anchors"], list):
        raise InputError("anchors", where=str(path), expected="a list", got=repr(table["anchors"]))
    return DetectionHead(tuple(map(_pair, table["anchors"])), kind)


def _pair(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2 or any(isinstance(x, bool) for x in value):
        raise _wrong("anchors", "pairs [width, height]", repr(value))
    return (value[0], value[1])


def _wrong(what: str, expected: str, got: object) -> InputError:
    return InputError(what, where="detection", expected=expected, got=got)
