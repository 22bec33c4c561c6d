"""Random inputs, for verifying and measuring a network without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.layer_info import TensorInfo


def random_inputs(
    inputs: Sequence[TensorInfo],
    count: int,
    seed: int = 0,
    value_range: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, NDArray[Any]]:
    """One batch for each input.

    Args:
        inputs: the network's inputs.
        count: inputs in the batch.
        seed: equal seeds give equal batches.
        value_range: lowest and highest value of real-valued inputs.

    Returns:
        (count, height, width, channels) by input name: uint8 of all levels, or uniform float32.
    """
    random = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for info in inputs:
        shape = (count, *info.shape)
        if info.dtype == "u8":
            arrays[info.name] = random.integers(0, 256, shape, np.uint8)
        else:
            arrays[info.name] = random.uniform(*value_range, shape).astype(np.float32)
    return arrays
