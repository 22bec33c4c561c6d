"""Energy per frame of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phonebit.energy.choice import choose_source
from phonebit.energy.discovery import discover
from phonebit.energy.meter import EnergyMeter
from phonebit.energy.result import EnergyResult
from phonebit.errors import InputError

Array = NDArray[Any]


class RunnableNetwork(Protocol):
    """What measuring needs of a ``Network``."""

    @property
    def device(self) -> str:
        """See ``Network``."""

    def forward(self, x: Any) -> Any:
        """See ``Network``."""


def measure(
    network: RunnableNetwork,
    inputs: Array | Mapping[str, Array],
    seconds: float = 3.0,
    idle: bool = True,
    source: str = "auto",
    longest_s: float = 60.0,
) -> EnergyResult:
    """Measure the energy of a network's frames, host to host.

    Nothing else should work on the machine meanwhile: a source sees everything on its rails.

    Args:
        network: loaded.
        inputs: one batch, as for ``forward``: NumPy arrays.
        seconds: minimum length of the measurement; it grows until one step of the source is at most
            1 % of the energy.
        idle: measure the power without work before, and give the numbers above it, too.
        source: "auto": the source that sees the network's device; or a name as
            ``phonebit devices`` lists them: "rapl", "nvml:1".
        longest_s: length at which it ends in any case; the result tells its uncertainty.

    Returns:
        mW, mJ per frame and FPS/W, with the source, its rails and its resolution.

    Raises:
        NoSourceError: if there is nothing that could measure this device.
        EnergyError: if the source fails or shows nothing new.
        InputError: if the inputs are no NumPy arrays, or ``seconds`` is out of range.
    """
    arrays = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    if not arrays or not all(isinstance(array, np.ndarray) for array in arrays):
        raise InputError(
            "not a batch that can be measured",
            where="inputs",
            expected="NumPy arrays: a forward pass on device arrays returns before it is done",
            got=", ".join(type(array).__name__ for array in arrays) or "none",
        )
    found, chosen = choose_source(network.device, discover(), source)
    meter = EnergyMeter(found, seconds, max(seconds, longest_s), chosen)
    return meter.measure(lambda: network.forward(inputs), len(arrays[0]), idle)
