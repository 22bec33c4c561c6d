"""An image in whatever form it comes, made one image of an input, or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.images.fitting import FittedImage
from phonebit.images.image_files import decode_image
from phonebit.images.placement import Placement
from phonebit.images.preprocessing import Preprocessing
from phonebit.layer_info import TensorInfo


def read_image(image: Any, info: TensorInfo, rule: Preprocessing | None) -> FittedImage | str:
    """Read one image of many, of which some may be broken; for threads, within ``image_warnings``.

    Args:
        image: a path; the bytes of an image file, alone or under "bytes" in a mapping; uint8 levels
            of any size; or float32 values as the input reads them.
        info: the input.
        rule: what levels become, from ``rule_for_levels``; None: there are values only.

    Returns:
        The image, or why it cannot be read.
    """
    try:
        return _fitted(image, info, rule)
    except OSError as error:
        return error.strerror or str(error)
    except InputError as error:
        return error.what if error.got is None else f"{error.what} ({error.got})"


def _fitted(image: Any, info: TensorInfo, rule: Preprocessing | None) -> FittedImage:
    if isinstance(image, Mapping):  # a column of images of Hugging Face's data sets
        image = image.get("bytes")
    if isinstance(image, np.ndarray) and image.dtype != np.uint8:
        return _values(image, info)
    assert rule is not None
    if isinstance(image, np.ndarray):
        return rule.fit(image, info)
    if isinstance(image, str | Path):
        return rule.fit(decode_image(Path(image)), info)
    if isinstance(image, bytes):
        return rule.fit(decode_image(image), info)
    raise InputError("no image", got=type(image).__name__)


def _values(image: NDArray[Any], info: TensorInfo) -> FittedImage:
    if info.dtype != "f32" or image.dtype.kind != "f" or image.shape != info.shape:
        raise InputError(f"not {info.text}", got=f"{image.dtype} of shape {image.shape}")
    if not np.isfinite(image).all():
        raise InputError("values that are not finite")
    size = (info.shape[1], info.shape[0])
    return FittedImage(image.astype(np.float32), (), Placement(size, size, (0, 0), size))
