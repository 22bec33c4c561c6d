"""What a network is verified with where nobody gives images: noise, and images of one colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from phonebit.converter.constant_inputs import constant_inputs
from phonebit.format.records import DataType
from phonebit.network.random_inputs import random_inputs

if TYPE_CHECKING:
    from phonebit.network import Network

DEFAULT_SAMPLES: Final = 8


def default_inputs(network: Network, samples: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Random inputs, the last three of which are constant: 0, the minimum and the maximum value.

    Args:
        network: the loaded file.
        samples: how many; of fewer than four none is constant. None: 8.
        seed: of the random ones.

    Returns:
        (samples, height, width, channels) by input name.
    """
    count = samples or DEFAULT_SAMPLES
    arrays = random_inputs(network.inputs, count, seed)
    if count < 4:
        return arrays
    for info in network.inputs:
        dtype = DataType.U8 if info.dtype == "u8" else DataType.F32
        rule = network.preprocessing.get(info.name)
        arrays[info.name][-3:] = constant_inputs(info.shape, dtype, rule)
    return arrays
