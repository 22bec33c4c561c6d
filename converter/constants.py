"""Weights of binary convolutions as the file stores them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.format.bits import pack_signs, unpack_signs


def weight_words(weights: NDArray[Any], depthwise: bool) -> NDArray[np.uint32]:
    """Packs -1/+1 weights (Cout, KH, KW, Cin / groups) into the file's words.

    Ordinary filters pack their input channels; depthwise ones, (C, KH, KW, 1), pack the channels
    themselves, because those are what lies side by side in the activations they meet.
    """
    return pack_signs(weights[..., 0].transpose(1, 2, 0) if depthwise else weights)


def weights_from_words(
    words: NDArray[np.uint32], shape: tuple[int, int, int, int], depthwise: bool
) -> NDArray[np.int8]:
    """The inverse of ``weight_words`` for weights of ``shape``."""
    cout, kernel_h, kernel_w, per_group = shape
    count = cout if depthwise else per_group
    rows = (kernel_h, kernel_w) if depthwise else (cout, kernel_h, kernel_w)
    signs = unpack_signs(words.reshape(*rows, -1), count)
    return signs.transpose(2, 0, 1)[..., None] if depthwise else signs
