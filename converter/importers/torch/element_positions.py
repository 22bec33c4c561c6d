"""Where the elements of a PyTorch tensor lie in a value of the graph.

PyTorch's tensors are (N, C, H, W), (N, C), (N, L, C) and whatever views make of them; the graph's
values are (height, width, channels). Instead of transposing, a ``View`` keeps the position of every
element, so that views cost nothing until an operator needs a layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from phonebit.budget import Kind, spend
from phonebit.converter.ir import Shape

Indices = NDArray[np.int64]
ZERO: Final = -1
"""Position of an element that is 0 and lies nowhere."""
MAP_AXES: Final = 3
"""Of an image's map, without the batch."""
Layout = Literal["channels_first", "channels_last"]
"""Which axis after the batch is the graph's channel axis: the first or the last."""


class UnsupportedError(Exception):
    """A call cannot be expressed; the message is its reason, without the call's name.

    Attributes:
        call: The call, where it is another one than that which needed its result.
    """

    call: Any = None


@dataclass(frozen=True)
class View:
    """A tensor as elements of a graph value.

    Attributes:
        value: The graph value.
        hwc: Its shape.
        indices: Shape of the tensor with its batch; flat positions in (batch, *hwc), or ``ZERO``.
        batch: Images in the exported program.
        quantized: Whether it is a quantized activation up to arrangement and scale.
    """

    value: str
    hwc: Shape
    indices: Indices
    batch: int
    quantized: bool = False

    @property
    def elements(self) -> int:
        """Of one image's value."""
        return int(np.prod(self.hwc))

    def sample(self) -> Indices:
        """Positions of one image, shape of the tensor without its batch.

        Raises:
            UnsupportedError: Images of one batch are mixed.
        """
        whole = self.indices
        if self.batch == 1:
            # A squeeze() without an axis removes a batch of one, too.
            return whole[0] if whole.ndim and whole.shape[0] == 1 else whole
        first: Indices = whole[0] if whole.ndim and whole.shape[0] == self.batch else whole[:0]
        shift = np.arange(self.batch).reshape(-1, *(1,) * first.ndim) * self.elements
        if first.size == 0 or not np.array_equal(
            whole, np.where(first == ZERO, ZERO, first + shift)
        ):
            raise UnsupportedError("mixes the images of a batch")
        return first

    def is_bijective(self) -> bool:
        """Whether the tensor has every element of the value exactly once."""
        sample = self.sample()
        if sample.size != self.elements:
            return False
        seen = np.zeros(self.elements, np.bool_)
        seen[sample[sample != ZERO]] = True
        return bool(seen.all())

    def with_value(self, value: str, *, quantized: bool = False) -> View:
        """The same arrangement of another value of the same shape."""
        return replace(self, value=value, quantized=quantized)

    def to_value_order(self, array: NDArray[Any]) -> NDArray[Any] | None:
        """A tensor of this view's shape as the value (batch, H, W, C) that it is a view of.

        Returns:
            None if the tensor does not have all elements of the value.
        """
        flat: NDArray[Any] = np.zeros(self.batch * self.elements, array.dtype)
        places, seen = self.indices.reshape(-1), np.zeros(flat.size, np.bool_)
        seen[places[places != ZERO]] = True
        if places.size != flat.size or not seen.all():
            return None
        flat[places] = array.reshape(-1)
        return flat.reshape(self.batch, *self.hwc)


def distance(indices: Indices, axis: int) -> int:
    """How far apart neighbours along an axis lie; 0 if there are none."""
    if indices.shape[axis] < 2:
        return 0
    first, second = (indices.take(number, axis).reshape(-1)[0] for number in range(2))
    return int(abs(second - first))


def hwc_of(shape: tuple[int, ...], layout: Layout) -> Shape:
    """(height, width, channels) of a tensor's shape without the batch.

    Of more than three axes all but the last one and the channels are the height.
    """
    height, width, channels = _to_hwc(np.empty(shape, np.bool_), layout).shape
    return height, width, channels


def _to_hwc(array: NDArray[Any], layout: Layout) -> NDArray[Any]:
    if layout == "channels_first" and array.ndim > 1:
        array = np.moveaxis(array, 0, -1)
    lead = (1,) * (3 - array.ndim) if array.ndim < 3 else (math.prod(array.shape[:-2]),)
    return array.reshape(*lead, *array.shape[-2:])


def file_layout(inner: int, channels_last: bool = False) -> Layout:
    """How an input or output lies in the file: by the number of its axes alone.

    Maps (N, C, H, W) become (N, H, W, C). All others have their elements in the source's order,
    whatever reads or writes them.

    Args:
        inner: Axes of the source's tensor without the batch.
        channels_last: Whether the source has maps (N, H, W, C).
    """
    return "channels_first" if inner == MAP_AXES and not channels_last else "channels_last"


def in_layout(sample: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """An array of one image's tensor shape, transposed to (height, width, channels)."""
    return _to_hwc(sample, layout)


def without_batch(shape: tuple[int, ...], batch: int) -> tuple[int, ...]:
    """A tensor's shape for one image; a batch of one may be missing already."""
    return shape[1:] if shape and shape[0] == batch else shape


def plain_view(value: str, shape: tuple[int, ...], batch: int, layout: Layout) -> View:
    """The view of a value that has just been computed for a tensor.

    Args:
        value: The graph value.
        shape: The tensor's shape, with the batch (a batch of one may be missing).
        batch: Images in the exported program.
        layout: Of the tensor.
    """
    inner = without_batch(shape, batch)
    return View(value, hwc_of(inner, layout), _plain_indices(shape, inner, batch, layout), batch)


@lru_cache(maxsize=64)
def _plain_indices(
    shape: tuple[int, ...], inner: tuple[int, ...], batch: int, layout: Layout
) -> Indices:
    hwc = hwc_of(inner, layout)
    spend(Kind.OPERATIONS, 4 * batch * int(np.prod(hwc)))
    maps = np.arange(batch * int(np.prod(hwc)), dtype=np.int64).reshape(batch, *hwc)
    if layout == "channels_first" and len(inner) > 1:
        maps = np.moveaxis(maps, 3, 1)
    indices: Indices = np.ascontiguousarray(maps).reshape(shape)
    indices.flags.writeable = False
    return indices
