"""How fast a network is here, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phonebit.compiled import load_runtime
from phonebit.errors import InputError
from phonebit.network.input_checks import check_inputs

if TYPE_CHECKING:
    from phonebit.network.network import Network

MAX_NOISE = 1.15
"""A machine counts as disturbed above this ratio of the loop's 90th percentile to its minimum."""


@dataclass(frozen=True, repr=False)
class Benchmark:
    """Latencies of one network, and how steady the machine was meanwhile.

    Attributes:
        latencies_ms: one per run, in order.
        canary_ms: times of a fixed loop that has nothing to do with the network.
        batch: inputs per run.
    """

    latencies_ms: NDArray[np.float64]
    canary_ms: NDArray[np.float64]
    batch: int

    @property
    def median_ms(self) -> float:
        """Median latency of a batch."""
        return float(np.median(self.latencies_ms))

    @property
    def canary_ratio(self) -> float:
        """90th percentile over minimum of the fixed loop: 1 on an undisturbed machine."""
        return float(np.percentile(self.canary_ms, 90) / self.canary_ms.min())

    def __repr__(self) -> str:
        """One line."""
        found = self.to_dict()
        disturbed = ", on a disturbed machine" if found["canary"]["disturbed"] else ""
        return (
            f"Benchmark({found['median_ms']:.3f} ms median, {found['min_ms']:.3f} ms minimum of "
            f"{found['runs']} runs, batch {self.batch}{disturbed})"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "batch": self.batch,
            "runs": len(self.latencies_ms),
            "median_ms": self.median_ms,
            "min_ms": float(self.latencies_ms.min()),
            "p90_ms": float(np.percentile(self.latencies_ms, 90)),
            "fps": 1e3 * self.batch / self.median_ms,
            "canary": {
                "median_ms": float(np.median(self.canary_ms)),
                "p90_over_min": self.canary_ratio,
                "disturbed": self.canary_ratio > MAX_NOISE,
            },
        }


def benchmark(
    network: Network, x: Any, runs: int, warmup: int, tenth_done: Callable[[], None]
) -> Benchmark:
    """Time inferences one by one, with a fixed loop between the tenths; ``Network.bench``."""
    if runs < 1 or warmup < 0:
        raise InputError("too few", expected="runs >= 1, warmup >= 0", got=f"{runs}, {warmup}")
    arrays = check_inputs(x, network.inputs, network.preprocessing)
    inputs = dict(zip((info.name for info in network.inputs), arrays, strict=True))
    for _ in range(warmup):
        network.forward(inputs)
    while network.coexec.get("is_on_trial"):
        network.forward(inputs)
    times = load_runtime().time_runs(runs, lambda: network.forward(inputs), tenth_done)
    latencies_ms, loop_ms = map(np.array, times)
    return Benchmark(latencies_ms, loop_ms, len(next(iter(inputs.values()))))
