"""Image preprocessing, as in training.

A rule is stored in the ``.pbit`` file (docs/preprocessing.md). It is the one place that says which
values the levels 0..255 of an image stand for; the engine's arithmetic never depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.format.records import (
    COLOR_CHANNELS,
    MAX_FLOAT32,
    MAX_LEVEL,
    MAX_SIDE,
    PER_CHANNEL,
    PREPROCESSING,
    ColorOrder,
    Interpolation,
    Resize,
)
from phonebit.images.fitting import FittedImage, fit_image
from phonebit.images.settings import read_toml
from phonebit.layer_info import TensorInfo

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["ColorOrder", "Interpolation", "Preprocessing", "Resize"]

FloatArray = NDArray[np.float32]

USUAL_COLORS: Final = {1: ColorOrder.GRAY, 3: ColorOrder.RGB, 4: ColorOrder.RGBA}
"""What an input with so many channels reads, unless the rule says otherwise."""


@dataclass(frozen=True)
class Preprocessing:
    """One input's rule: colour order, size, and what the levels of the image stand for.

    A level u of channel c stands for the value (low + u * (high - low) / 255 - mean[c]) / std[c].
    An f32 input reads these values; a u8 input reads the levels, and its network computes the
    values itself.

    Attributes:
        range: (low, high): what levels 0 and 255 are before mean and std, e.g. (0.0, 1.0), (-1.0,
            1.0) or (0.0, 255.0).
        mean: one number for all channels, or one per channel, in the unit of ``range``.
        std: the same; above 0.
        color: what the channels are; None: gray, RGB or RGBA by their number.
        resize: how an image of another size gets the size of the input.
        resize_to: pixels of the shorter side, for ``Resize.SHORTER_SIDE``.
        fill_level: 0..255 of what is around the image, for ``Resize.LETTERBOX``.
        interpolation: how the image is resampled, as Pillow does it.

    Raises:
        InputError: if a number is out of range, or does not belong to ``resize``.
    """

    range: tuple[float, float]
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    color: ColorOrder | None = None
    resize: Resize = Resize.STRETCH
    resize_to: int = 0
    fill_level: int = 0
    interpolation: Interpolation = Interpolation.BILINEAR

    def __post_init__(self) -> None:
        for name in ("range", "mean", "std"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        low, high = self.range if len(self.range) == 2 else (math.nan, math.nan)
        if low == high or not math.isfinite(low - high):
            raise _wrong("range", "two different finite numbers: low, high", self.range)
        if not all(std > 0 for std in self.std):
            raise _wrong("std", "numbers above 0", self.std)
        counts = {len(self.mean), len(self.std)} - {1}
        if len(counts) > 1 or max(counts, default=1) > PER_CHANNEL:
            expected = f"one number, or one for each of at most {PER_CHANNEL} channels"
            raise _wrong("mean and std", expected, f"{len(self.mean)} and {len(self.std)}")
        if not np.all(np.abs(self._values_of_ends()) <= MAX_FLOAT32):
            raise _wrong("std", "values that float32 can hold", self.std)
        if self.resize is not Resize.SHORTER_SIDE and self.resize_to:
            raise _wrong("resize_to", "0 without resizing the shorter side", self.resize_to)
        if self.resize is Resize.SHORTER_SIDE and not 1 <= self.resize_to <= MAX_SIDE:
            raise _wrong("resize_to", f"1 to {MAX_SIDE} pixels", self.resize_to)
        if not 0 <= self.fill_level <= (MAX_LEVEL if self.resize is Resize.LETTERBOX else 0):
            expected = f"0 to {MAX_LEVEL}, and 0 without a letterbox"
            raise _wrong("fill_level", expected, self.fill_level)

    @classmethod
    def from_toml(cls, path: str | Path) -> Preprocessing:
        """Read a rule from a TOML file; docs/preprocessing.md lists its keys.

        The name "imagenet" in place of a path gives the rule of torchvision's ImageNet weights.

        Raises:
            InputError: if the file is no TOML, has unknown or wrong keys, or lacks the range.
            OSError: if it cannot be read.
        """
        return make_preprocessing(read_toml(Path(path)).fields, f"'range' in {path}")

    def for_input(self, info: TensorInfo) -> Preprocessing:
        """The same rule with its colour order chosen for one input.

        Raises:
            InputError: if channels or sizes do not fit the input.
        """
        height, width, channels = info.shape
        where = f"input '{info.name}'"
        color = USUAL_COLORS.get(channels, ColorOrder.NONE) if self.color is None else self.color
        needed = COLOR_CHANNELS.get(color, channels)
        if needed != channels:
            expected = f"{needed} for colour order {color.name.lower()}"
            raise InputError("number of channels", where=where, expected=expected, got=channels)
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (1, channels):
                expected = f"one number, or one for each of {channels} channels"
                raise InputError(name, where=where, expected=expected, got=len(numbers))
        if self.resize is Resize.SHORTER_SIDE and self.resize_to < max(height, width):
            raise InputError(
                "the shorter side becomes smaller than what is cut out of it",
                where=where,
                expected=f"at least {max(height, width)}",
                got=self.resize_to,
            )
        return replace(self, color=color)

    def scale(self, channels: int) -> FloatArray:
        """Of each channel: level u stands for u * scale + offset. Shape (channels,), float32."""
        low, high = self.range
        scale = (high - low) / MAX_LEVEL / np.array(self.std)
        return np.broadcast_to(scale.astype(np.float32), (channels,)).copy()

    def offset(self, channels: int) -> FloatArray:
        """What level 0 of each channel stands for. Shape (channels,), float32."""
        offset = (self.range[0] - np.array(self.mean)) / np.array(self.std)
        return np.broadcast_to(offset.astype(np.float32), (channels,)).copy()

    def values(self, levels: NDArray[np.uint8]) -> FloatArray:
        """What levels stand for.

        Args:
            levels: uint8 of shape (..., channels).

        Returns:
            float32 of the same shape: levels * scale + offset, rounded after each operation.
        """
        channels = levels.shape[-1]
        scaled = levels.astype(np.float32) * self.scale(channels)
        return np.asarray(scaled + self.offset(channels), np.float32)

    def apply(
        self, image: Image.Image | NDArray[np.uint8], info: TensorInfo
    ) -> NDArray[np.uint8] | FloatArray:
        """Make an image one input of a network.

        Args:
            image: of any size: a Pillow image, or levels (height, width) or (height, width, 3 or
                4: RGB or RGBA).
            info: the input, from ``Network.inputs``.

        Returns:
            (height, width, channels) as the input reads it: uint8 levels or float32 values.

        Raises:
            InputError: if the rule does not fit the input, or the input takes no images.
        """
        return self.fit(image, info).array

    def fit(self, image: Image.Image | NDArray[np.uint8], info: TensorInfo) -> FittedImage:
        """Make an image one of an input, as ``apply``.

        Args:
            image: as for ``apply``.
            info: the input.

        Returns:
            The image, and what was done to it.

        Raises:
            InputError: if the rule does not fit the input, or the input takes no images.
        """
        record = self.for_input(info).to_record(0, info.shape[2])
        rule = {name: record[name].tolist() for name in PREPROCESSING.names or ()}
        return fit_image(image, info, rule)

    def to_record(self, index: int, channels: int) -> NDArray[np.void]:
        """The file's record about input number ``index``; the colour order must be chosen."""
        record = np.zeros((), PREPROCESSING)
        assert self.color is not None
        record["input"], record["color_order"] = index, self.color
        record["resize"], record["resize_to"] = self.resize, self.resize_to
        record["fill_level"], record["interpolation"] = self.fill_level, self.interpolation
        record["low"], record["high"] = self.range
        record["deviation"] = 1.0
        entries = min(channels, PER_CHANNEL) if len(self.mean) + len(self.std) > 2 else PER_CHANNEL
        record["mean"][:entries], record["deviation"][:entries] = self.mean, self.std
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any] | np.void, channels: int) -> Preprocessing:
        """The inverse, of a checked record (or the runtime's dict of it) about such an input."""
        resize, entries = Resize(int(record["resize"])), channels if channels <= PER_CHANNEL else 1
        return cls(
            (float(record["low"]), float(record["high"])),
            tuple(record["mean"][:entries]),
            tuple(record["deviation"][:entries]),
            ColorOrder(int(record["color_order"])),
            resize,
            int(record["resize_to"]) if resize is Resize.SHORTER_SIDE else 0,
            int(record["fill_level"]) if resize is Resize.LETTERBOX else 0,
            Interpolation(int(record["interpolation"])),
        )

    def _values_of_ends(self) -> NDArray[np.float64]:
        """What levels 0 and 255 stand for, and the distance between them."""
        low, high = self.range
        mean, std = np.array(self.mean), np.array(self.std)
        with np.errstate(all="ignore"):
            return np.concatenate([(low - mean) / std, (high - mean) / std, (high - low) / std])


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    """A number or some as a tuple; equal means (or deviations) become one, whatever their count."""
    try:
        numbers = tuple(float(item) for item in (value if np.iterable(value) else (value,)))
    except (TypeError, ValueError, OverflowError):
        raise _wrong(name, "numbers", repr(value)) from None
    if not numbers or not all(map(math.isfinite, numbers)):
        expected = "two different finite numbers" if name == "range" else "finite numbers"
        raise _wrong(name, expected, value)
    return numbers[:1] if name != "range" and len(set(numbers)) == 1 else numbers


def _wrong(what: str, expected: str, got: object) -> InputError:
    return InputError(what, where="preprocessing", expected=expected, got=got)


def make_preprocessing(fields: Mapping[str, Any], how: str) -> Preprocessing:
    """A rule from its attributes.

    Args:
        fields: attributes by name.
        how: how the user says the range, e.g. "--input-range=LOW,HIGH".

    Raises:
        InputError: if the range is missing, or a number is out of range.
    """
    if "range" not in fields:
        raise InputError(
            "the range is missing: what the levels 0 and 255 of an image are, before mean and std",
            where="preprocessing",
            hint=f"say it with {how}, e.g. 0 and 1, -1 and 1, or 0 and 255",
        )
    return Preprocessing(**fields)
