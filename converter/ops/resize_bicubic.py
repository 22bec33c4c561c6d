"""Maps of another size by bicubic interpolation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops.resize_bilinear import Resize, taken
from phonebit.format.records import OpKind


@dataclass
class ResizeBicubic(Resize):
    """By Keys' cubic of a = -0.75, as PyTorch has it, between the four nearest pixels."""

    kinds = (OpKind.RESIZE_BICUBIC, OpKind.RESIZE_BICUBIC_CORNERS)

    def _along(self, axis: int, value: FloatArray) -> FloatArray:
        places = self._places(axis, value)
        low = np.floor(places)
        share = places - low
        one = np.float32(1)
        rest = one - share
        weights = (_far(share + one), _near(share), _near(rest), _far(rest + one))
        first, *others = (
            taken(value, low + np.float32(number - 1), axis) * weight
            for number, weight in enumerate(weights)
        )
        return first + others[0] + others[1] + others[2]


def _near(x: FloatArray) -> FloatArray:
    return (np.float32(1.25) * x - np.float32(2.25)) * x * x + np.float32(1)


def _far(x: FloatArray) -> FloatArray:
    return ((np.float32(-0.75) * x + np.float32(3.75)) * x - np.float32(6)) * x + np.float32(3)
