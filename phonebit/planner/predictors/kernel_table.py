"""Which kernels a tuning table offers for a layer, as ``opencl/tuning_table.cpp`` decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from phonebit.bnn_kernels.sources import FOLDER
from phonebit.errors import InputError
from phonebit.kernel_choice import KernelChoice
from phonebit.planner.predictors.layer_shape import LayerShape

SMALL_MAP: Final = 256
LARGE_MAP: Final = 4096
"""Output pixels that part the shape classes "small", "window" and "large"."""

_DEVICE_WEIGHT, _FAMILY_WEIGHT, _VENDOR_WEIGHT = 16, 8, 4
_SIGNATURE_WEIGHT, _CLASS_WEIGHT = 2, 1


@dataclass(frozen=True)
class TableLine:
    """One line: for what, and which kernel.

    Args:
        op: As ``LayerShape.family``.
        shape: "*", a class, or a signature.
        vendor: Of the device, or "*".
        family: Likewise.
        device: Likewise, with underscores for blanks.
        choice: The kernel with its parameters.
    """

    op: str
    shape: str
    vendor: str
    family: str
    device: str
    choice: KernelChoice

    @classmethod
    def parse(cls, text: str) -> TableLine:
        """Reads a line that is neither empty nor a comment alone.

        Raises:
            InputError: It has another form.
        """
        fields = text.partition("#")[0].split(maxsplit=5)
        if len(fields) != 6:
            raise InputError(
                "not a line of a tuning table",
                where=repr(text),
                expected="op, shape, vendor, family, device, kernel and parameters",
            )
        op, shape, vendor, family, device, choice = fields
        return cls(op, shape, vendor, family, device, KernelChoice.parse(choice))

    def score(self, layer: LayerShape) -> int:
        """How specific it is; -1 if it is not for the layer. That it fits the device is known."""
        if self.op != layer.family:
            return -1
        fields = ((self.device, _DEVICE_WEIGHT), (self.family, _FAMILY_WEIGHT))
        score = sum(weight for name, weight in fields if name != "*")
        score += _VENDOR_WEIGHT if self.vendor != "*" else 0
        if self.shape == "*":
            return score
        if self.shape == signature(layer):
            return score + _SIGNATURE_WEIGHT
        return score + _CLASS_WEIGHT if self.shape == shape_class(layer) else -1


def shape_class(layer: LayerShape) -> str:
    """The class of bnn_kernels/README.md, as "dense", "small_pointwise" or "window"."""
    pixels = layer.out_h * layer.out_w
    is_pointwise = layer.kernel_h == 1 and layer.kernel_w == 1
    if pixels == 1:
        return "dense"
    if pixels <= SMALL_MAP:
        return "small_pointwise" if is_pointwise else "small"
    if is_pointwise:
        return "pointwise"
    return "large" if pixels > LARGE_MAP else "window"


def signature(layer: LayerShape) -> str:
    """``3x3s1d1g1_64c_56x56_64c``."""
    window = f"{layer.kernel_h}x{layer.kernel_w}s{layer.stride_h}d{layer.dilation_h}g{layer.groups}"
    return f"{window}_{layer.in_c}c_{layer.out_h}x{layer.out_w}_{layer.out_c}c"


def choices(lines: Iterable[TableLine], layer: LayerShape) -> list[KernelChoice]:
    """What the table offers for a layer, the most specific first.

    Args:
        lines: Those that fit the device, in the table's order.
        layer: What is to be served.
    """
    scored = [(line.score(layer), line.choice) for line in lines]
    fitting = sorted((entry for entry in scored if entry[0] >= 0), key=lambda entry: -entry[0])
    return list(dict.fromkeys(choice for _, choice in fitting))


def lines_for_device(text: str, vendor: str, family: str, device: str) -> list[str]:
    """The lines of a table that fit a device, without comments.

    Args:
        text: The table.
        vendor: As ``phonebit devices`` says it.
        family: Likewise.
        device: Its name.
    """
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    mine = ("*", vendor), ("*", family), ("*", _table_name(device))
    return [
        " ".join(fields)
        for fields in lines
        if len(fields) >= 6
        and all(field in allowed for field, allowed in zip(fields[2:5], mine, strict=True))
    ]


@cache
def built_in_table() -> str:
    """The table that comes with the kernels."""
    return (FOLDER / "tuning.table").read_text(encoding="utf-8")


def _table_name(device: str) -> str:
    name = "".join("_" if sign == "#" or sign <= " " else sign for sign in device)
    return "_" if name in ("", "*") else name
