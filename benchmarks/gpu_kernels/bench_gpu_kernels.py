"""Layers of the paper's networks on a GPU: the tuned kernels, and the paper's own next to them.

Both kernel sets (`phonebit bench --kernels`) take turns on each network. Layers are timed by the
device's own clock (events), networks from array to array. Float tensors are halves, so that `dot`
may run; all bits must be equal.

    python -m benchmarks.gpu_kernels.bench_gpu_kernels      # writes results/gpu_kernels.json
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.command_line import parser_of
from benchmarks.gpu_kernels.document import kernels_section
from benchmarks.networks.per_layer import check_equal
from benchmarks.records import RESULTS, TITLES, run_context, write_results
from benchmarks.rounds import TOTAL, Times, take_turns
from phonebit import Network
from phonebit.models.networks import build
from phonebit.network.random_inputs import random_inputs

KERNELS: Final = ("tuned", "paper")
NETWORKS: Final = ("alexnet", "yolov2_tiny", "vgg16")
WHOLE_RUNS: Final = 20
ROUNDS: Final = 15
REPEATS: Final = 5
"""Passes of a turn; medians count."""


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
    equal = check_equal(networks["tuned"], networks["paper"], inputs, only_bits=True)

    def turn(network: Network) -> Times:
        layers = {row.name: row.latency_ms for row in network.profile(inputs, REPEATS)}
        return {**layers, TOTAL: network.bench(inputs, runs=WHOLE_RUNS).median_ms}

    rounds = take_turns({key: partial(turn, one) for key, one in networks.items()}, ROUNDS)
    times = {key: rounds.spread(key) for key in networks}
    layers = {key: {layer.name: layer for layer in one.layers} for key, one in networks.items()}
    return {
        "network": name,
        "equal_tensors": equal,
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
    parser.add_argument("--json", type=Path, default=RESULTS / "gpu_kernels.json")
    options = parser.parse_args()
    document: dict[str, Any] = {"context": run_context(options.device), "networks": []}
    for name in options.networks:
        document["networks"].append(measure(name, options))
        write_results(options.json, document)
    print(kernels_section(document))


if __name__ == "__main__":
    main()
