"""Images of one colour: the regions of real images where sums of real numbers are exactly zero.

On a black background a convolution without bias gives 0, and so does all that is linear after it:
not by an accident of rounding, but at most pixels of many images.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.format.records import DataType
from phonebit.images.preprocessing import Preprocessing

LEVELS: Final = (0, 127, 255)
"""Of inputs that are bytes."""
VALUES: Final = (0.0, -1.0, 1.0)
"""Of real inputs whose range nobody said."""


def constant_inputs(
    shape: tuple[int, int, int], dtype: DataType, rule: Preprocessing | None = None
) -> NDArray[Any]:
    """Three constant images: 0 (of bytes the middle level), the minimum and the maximum value.

    Args:
        shape: (height, width, channels) of the input.
        dtype: U8 or F32.
        rule: What the levels of an image stand for, if it is known.

    Returns:
        (3, height, width, channels), uint8 or float32.
    """
    if dtype == DataType.U8:
        return _images(np.array(LEVELS, np.uint8)[:, None], shape)
    if rule is None:
        return _images(np.array(VALUES, np.float32)[:, None], shape)
    scale, offset = rule.scale(shape[2]), rule.offset(shape[2])
    return _images(np.stack([0 * scale, offset, 255 * scale + offset]).astype(np.float32), shape)


def _images(values: NDArray[Any], shape: tuple[int, int, int]) -> NDArray[Any]:
    return np.ascontiguousarray(np.broadcast_to(values[:, None, None, :], (len(values), *shape)))
