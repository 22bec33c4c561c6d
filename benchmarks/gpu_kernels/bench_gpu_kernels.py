"""Layers of the paper's networks on a GPU: the tuned kernels, and the paper's own beside them.

Both kernel sets (`phonebit bench --kernels`) take turns on each network. Layers are timed by the
device's own clock (events), networks from array to array. Speed is 2 x MACs / time in TOPS; where
the device's popcount rate is known also as a share of what the popcount units can do: 64 operations
a counted word. Float tensors are halves, so that `dot` may serve; all bits must be equal.

    python -m benchmarks.gpu_kernels.bench_gpu_kernels      # writes results/gpu_kernels.json
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.command_line import parser_of
from benchmarks.gpu_kernels.document import kernels_section
from benchmarks.records import RESULTS, TITLES, write_results
from benchmarks.rounds import TOTAL, Times, take_turns
from benchmarks.run_context import run_context
from phonebit import Network, VerificationError
from phonebit.devices.opencl import opencl_device
from phonebit.models.networks import build
from phonebit.network.random_inputs import random_inputs

KERNELS: Final = ("tuned", "paper")
NETWORKS: Final = ("alexnet", "yolov2_tiny", "vgg16")
WHOLE_RUNS: Final = 20
POPCOUNTS_PER_CLOCK: Final = {"nvidia": 16}
"""32-bit population counts that a compute unit does in a cycle (CUDA C++ Programming Guide,
arithmetic instructions, compute capability 9.0)."""


def popcount_peak_tops(device: Any) -> float | None:
    """TOPS of the popcount units alone, where their rate is known."""
    rate = POPCOUNTS_PER_CLOCK.get(device.vendor)
    if rate is None:
        return None
    return float(device.compute_units * rate * device.clock_mhz * 1e6 * 64 / 1e12)


def check_bits(name: str, results: list[dict[str, Any]]) -> int:
    """How many tensors of bits there are.

    Raises:
        VerificationError: One is not the same in both results.
    """
    tuned, paper = ({key: x for key, x in one.items() if x.dtype == np.int8} for one in results)
    for key, bits in tuned.items():
        if not np.array_equal(bits, paper[key]):
            raise VerificationError("the kernel sets compute different bits", where=f"{name} {key}")
    return len(tuned)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A network's record: milliseconds of the whole, a row for each layer that multiplies."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.pbit"
        build(name, file)
        networks = {
            kernels: Network.load(file, options.device, precision="f16", kernels=kernels)
            for kernels in KERNELS
        }
    inputs = random_inputs(networks["tuned"].inputs, 1)
    bits = check_bits(name, [network.activations(inputs) for network in networks.values()])

    def turn(network: Network) -> Callable[[], Times]:
        def times() -> Times:
            layers = {row.name: row.latency_ms for row in network.profile(inputs, options.repeats)}
            return {**layers, TOTAL: network.bench(inputs, runs=WHOLE_RUNS).median_ms}

        return times

    rounds = take_turns({key: turn(one) for key, one in networks.items()}, options.rounds)
    times = {key: rounds.spread(key) for key in networks}
    layers = {key: {layer.name: layer for layer in one.layers} for key, one in networks.items()}
    return {
        "network": name,
        "equal_bits": bits,
        **rounds.describe(),
        "whole": {key: times[key][TOTAL] for key in KERNELS},
        "rows": [
            {
                "layer": f"{TITLES[name]} {layer}",
                "macs": found.macs,
                "choice": {key: layers[key][layer].kernel for key in KERNELS},
                "time_us": {key: 1e3 * times[key][layer]["median_ms"] for key in KERNELS},
            }
            for layer, found in layers["tuned"].items()
            if found.macs
        ],
    }


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="gpu", help="gpu or gpu:N")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5, help="passes of a turn; medians count")
    parser.add_argument("--json", type=Path, default=RESULTS / "gpu_kernels.json")
    options = parser.parse_args()
    peak = popcount_peak_tops(opencl_device(options.device))
    context = run_context(options.device)
    document: dict[str, Any] = {"context": context, "popcount_peak_tops": peak, "networks": []}
    for name in options.networks:
        document["networks"].append(measure(name, options))
        write_results(options.json, document)
    print(kernels_section(document))


if __name__ == "__main__":
    main()
