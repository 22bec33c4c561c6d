"""Checks of the sections EXECUTION_PLANS and PLAN_PARTS: every number is inside its range.

Whether a plan can be executed is for ``phonebit.planner.verify_plan`` to say, and for the runtime
when a plan is used: a file may hold plans for devices that nobody asks for.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from phonebit.format.contents import FileContents
from phonebit.format.records import NONE

MAX_PLANS: Final = 1 << 10
MAX_PLAN_PARTS: Final = 1 << 20
PROCESSORS: Final = ("cpu", "gpu")


def output_shape(contents: FileContents, op: np.void) -> tuple[int, int, int]:
    """Height, width and channels of what an op writes; its value and its bits have the same."""
    output = int(op["value_output"])
    tensor = contents.tensors[output if output != NONE else int(op["bits_output"])]
    return int(tensor["height"]), int(tensor["width"]), int(tensor["channels"])


def plans_problem(contents: FileContents) -> str | None:
    """What is wrong with the two sections, beyond names; None if nothing is.

    Args:
        contents: A file whose tensors and ops were checked already.
    """
    plans, parts = len(contents.plans), len(contents.plan_parts)
    if plans > MAX_PLANS or parts > MAX_PLAN_PARTS:
        return f"{plans} plans of {parts} parts, more than {MAX_PLANS} or {MAX_PLAN_PARTS}"
    end = 0
    for number, plan in enumerate(contents.plans):
        begin, count = int(plan["part_begin"]), int(plan["part_count"])
        if begin != end or begin + count > parts:
            return (
                f"plan {number}: {count} parts from {begin}, expected from {end} "
                f"and up to {parts} in all"
            )
        end += count
        if not (np.isfinite(plan["predicted_ms"]) and plan["predicted_ms"] >= 0):
            return f"plan {number}: predicted_ms is {plan['predicted_ms']}, expected 0 or more"
        for index in range(count):
            problem = _part_problem(contents, contents.plan_parts[begin + index], count)
            if problem:
                return f"plan {number}, part {index}: {problem}"
    return None if end == parts else f"{parts} plan parts, but the plans have {end}"


def _part_problem(contents: FileContents, part: np.void, count: int) -> str | None:
    stage, processor, layer = (int(part[name]) for name in ("stage", "processor", "layer"))
    if stage >= count:
        return f"stage {stage} of a plan of {count} parts"
    if processor >= len(PROCESSORS):
        return f"unknown processor {processor}, update phonebit or plan the network again"
    if layer >= len(contents.ops):
        return f"layer {layer} does not exist, there are {len(contents.ops)}"
    height, _, channels = output_shape(contents, contents.ops[layer])
    for side, limit in (("row", height), ("channel", channels)):
        begin, end = int(part[f"{side}_begin"]), int(part[f"{side}_end"])
        if not begin < end <= limit:
            return f"{side}s {begin}:{end} of an output of {limit}"
    return None
