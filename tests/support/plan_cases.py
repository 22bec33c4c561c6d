"""The cases of ``tests/plans``, which the Python and the C++ check of plans share.

``PYTHONPATH=tests python -P -m support.plan_cases > tests/plans/random.txt`` draws the random ones
anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from phonebit.errors import InputError
from phonebit.format.reader import read_contents
from phonebit.planner import ExecutionPlan, OutputPart, PlannedPart, Processor, verify_plan
from support.random_plans import damaged, random_plan

FOLDER = Path(__file__).parents[1] / "plans"
NETWORKS = Path(__file__).parents[1] / "golden" / "v1"
RANDOM_NETWORKS = (
    "binary_conv_threshold_300_9_pad0", "float_layers", "log_softmax", "pooled_bits_33",
    "residual_block_32", "selected_channels", "tiny_classifier", "u8_first_layer_1_33",
)  # fmt: skip
PLANS_A_NETWORK = 16


@dataclass
class Case:
    """A plan and the words of its refusal; none: it is valid."""

    name: str
    network: str
    plan: ExecutionPlan
    refused: str | None


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file; tests/plans/README.md has the grammar."""
    name = network = ""
    parts: list[PlannedPart] = []
    for line in path.read_text().splitlines():
        key, _, rest = line.partition(" ")
        if key == "case":
            name, parts = rest, []
        elif key == "network":
            network = rest
        elif key == "part":
            stage, number, layer, *sides = map(int, rest.split())
            processor = Processor(number) if number in (0, 1) else cast(Processor, number)
            parts.append(PlannedPart(stage, processor, layer, OutputPart(*sides)))
        elif key in ("valid", "refused"):
            plan = ExecutionPlan("any", "user", 0.0, tuple(parts))
            yield Case(name, network, plan, rest if key == "refused" else None)


def case_text(case: Case) -> str:
    """What ``read_cases`` reads."""
    lines = [f"case {case.name}", f"network {case.network}"]
    for part in case.plan.parts:
        numbers = (part.stage, int(part.processor), part.layer, *part.part)
        lines.append(f"part {' '.join(map(str, numbers))}")
    lines.append("valid" if case.refused is None else f"refused {case.refused}")
    return "\n".join(lines) + "\n"


def random_cases(count: int, seed: int) -> Iterator[Case]:
    """Valid and damaged plans in turn, with what ``verify_plan`` says, without its advice.

    Args:
        count: Of each network.
        seed: Decides everything.
    """
    for network in RANDOM_NETWORKS:
        contents = read_contents(NETWORKS / f"{network}.pbit")
        random = np.random.default_rng([seed, *network.encode()])
        for number in range(count):
            plan = random_plan(contents, random)
            if number % 2:
                plan = damaged(plan, random)
            refused = None
            try:
                verify_plan(contents, plan)
            except InputError as error:
                refused = f"{error.what} (" if error.expected else error.what
            yield Case(f"{network} {number}", network, plan, refused)


if __name__ == "__main__":
    plans, seed = map(int, sys.argv[1:] or (PLANS_A_NETWORK, 0))
    print("\n".join(case_text(case) for case in random_cases(plans, seed)), end="")
