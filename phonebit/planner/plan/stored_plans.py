"""The plans inside a ``.pbit`` file: sections to plans, and a plan into a file's sections."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.records import MAX_NAME_BYTES, PLAN, PLAN_PART
from phonebit.format.strings import StringPool
from phonebit.planner.plan.execution_plan import ExecutionPlan, Shape


def stored_plans(contents: FileContents) -> tuple[ExecutionPlan, ...]:
    """The plans of a file, at most one per device, in the order in which they are stored.

    Args:
        contents: What ``phonebit.format.reader.read_contents`` gives.
    """
    return tuple(_plan(contents, record) for record in contents.plans)


def with_plan(contents: FileContents, plan: ExecutionPlan) -> FileContents:
    """The same file with this plan in place of the one for the same device, if there was one.

    Nothing else changes: names are only appended to, and every other section keeps its bytes.
    ``phonebit.format.writer.file_bytes`` and ``phonebit.output_files.write_output`` put the result
    on disk.

    Args:
        contents: A file's sections; they are left as they are.
        plan: A plan that ``phonebit.planner.verify_plan`` accepts for it.

    Raises:
        InputError: The device's key or the method is empty, too long or holds a zero character, or
            the predicted time is negative or not finite.
    """
    if not (math.isfinite(plan.predicted_ms) and plan.predicted_ms >= 0):
        raise InputError("plan: predicted_ms", expected="0 or more", got=plan.predicted_ms)
    names = StringPool(contents.strings)
    plans = {stored.device: stored for stored in stored_plans(contents)} | {plan.device: plan}
    records = np.zeros(len(plans), PLAN)
    begin = 0
    for record, stored in zip(records, plans.values(), strict=True):
        record["device_offset"] = names.add(_checked(stored.device, "device"))
        record["method_offset"] = names.add(_checked(stored.method, "method"))
        record["part_begin"], record["part_count"] = begin, len(stored.parts)
        record["predicted_ms"] = stored.predicted_ms
        begin += len(stored.parts)
    parts = [(*numbers, 0) for stored in plans.values() for numbers in stored.as_tuple()[-1]]
    table = np.array(parts, PLAN_PART)
    return replace(contents, strings=names.content(), plans=records, plan_parts=table)


def layer_outputs(contents: FileContents) -> list[tuple[str, Shape]]:
    """Name and output shape of each layer, as ``ExecutionPlan.stage_texts`` wants them."""
    return [
        (contents.name(int(op["name_offset"])), contents.output_shape(op)) for op in contents.ops
    ]


def _plan(contents: FileContents, record: np.void) -> ExecutionPlan:
    begin, count = int(record["part_begin"]), int(record["part_count"])
    device, method = (contents.name(int(record[f"{of}_offset"])) for of in ("device", "method"))
    numbers = [part[:-1] for part in contents.plan_parts[begin : begin + count].tolist()]
    return ExecutionPlan.from_tuple((device, method, float(record["predicted_ms"]), numbers))


def _checked(name: str, what: str) -> str:
    if not name or "\0" in name or len(name.encode()) > MAX_NAME_BYTES:
        expected = f"1 to {MAX_NAME_BYTES} bytes of UTF-8 without a zero"
        raise InputError(f"plan: {what}", expected=expected, got=repr(name))
    return name
