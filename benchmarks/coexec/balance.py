"""One network on many balances of CPU and GPU, from 1:4 to 4:1 and beyond.

    python -m benchmarks.coexec.balance --budget-s 900
    python -m benchmarks.coexec.balance --testbeds g1c1-scalar,g1c1-avx512 --network googlenet

Core counts and instruction sets set the balance. Every testbed gets a profile of its own, made in
there, and shows the planned network beside either processor alone: planned execution must never be
more than 2 % slower than the better one, also where the other one is of no use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.coexec.experiment import add_run_arguments
from benchmarks.coexec.network_tables import SYSTEMS
from benchmarks.coexec.networks import NETWORKS
from benchmarks.coexec.steps import PREPARE, Step, run_steps
from benchmarks.coexec.testbed import ISAS, Testbed, all_cores, run
from benchmarks.coexec.turns import Budget
from benchmarks.command_line import parser_of
from phonebit.compiled import load_runtime

SPLITS: Final = ((1, 1), (1, 2), (2, 1), (1, 4), (4, 1), (4, 4))
"""Cores of the GPU and of the CPU; those that the machine has."""


def default_testbeds() -> Iterator[Testbed]:
    """Every instruction set on one core each, then every split with AVX2 or what there is."""
    supported = {name for name, _, runs in load_runtime().isas() if runs}
    isas = [name for name in ISAS if name in supported]
    yield from (Testbed(1, 1, isa) for isa in isas)
    middle = "avx2" if "avx2" in isas else isas[-1]
    cores = len(all_cores())
    yield from (Testbed(*split, middle) for split in SPLITS[1:] if sum(split) <= cores)


def main() -> int:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--testbeds", help="names such as g1c4-avx2, with commas between")
    parser.add_argument("--network", choices=NETWORKS, default="yolov2_tiny")
    add_run_arguments(parser, budget_s=1800)
    options = parser.parse_args()
    if options.testbeds:
        testbeds = [Testbed.named(name) for name in options.testbeds.split(",")]
    else:
        testbeds = list(default_testbeds())
    variants = ("layer_to_processor", *SYSTEMS)
    chosen = (f"--networks={options.network}", f"--variants={','.join(variants)}")
    steps = (
        Step("confinement", 0.3),
        PREPARE,
        Step("networks", 1, chosen, chosen),
    )
    budget = Budget(options.budget_s)
    failed = False
    for number, testbed in enumerate(testbeds):
        share = budget.share(len(testbeds) - number)
        folder, results = options.folder, options.json
        failed |= bool(run_steps(steps, testbed, share, folder, results, options.smoke))
    return int(failed)


if __name__ == "__main__":
    run(main)
