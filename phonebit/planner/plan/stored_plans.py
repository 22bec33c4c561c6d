"""The plans inside a ``.pbit`` file: sections to plans, and a plan into a file's sections."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from phonebit.errors import InputError
from phonebit.format.contents import FileContents, Records
from phonebit.format.optional_sections import MAX_NAME_BYTES
from phonebit.format.plan_sections import output_shape
from phonebit.format.records import PLAN, PLAN_PART
from phonebit.planner.plan.execution_plan import (
    ExecutionPlan,
    OutputPart,
    PlannedPart,
    Processor,
    Shape,
)


def stored_plans(contents: FileContents) -> tuple[ExecutionPlan, ...]:
    """The plans of a file, at most one a device, in the order in which they are stored.

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
    strings = bytearray(contents.strings)
    plans = list(stored_plans(contents))
    devices = [stored.device for stored in plans]
    at = devices.index(plan.device) if plan.device in devices else len(plans)
    plans[at : at + 1] = [plan]
    records = np.zeros(len(plans), PLAN)
    begin = 0
    for record, stored in zip(records, plans, strict=True):
        record["device_offset"] = _name_offset(strings, stored.device, "device")
        record["method_offset"] = _name_offset(strings, stored.method, "method")
        record["part_begin"], record["part_count"] = begin, len(stored.parts)
        record["predicted_ms"] = stored.predicted_ms
        begin += len(stored.parts)
    parts = [_part_record(part) for stored in plans for part in stored.parts]
    table = np.array(parts, PLAN_PART) if parts else np.zeros(0, PLAN_PART)
    return replace(contents, strings=bytes(strings), plans=records, plan_parts=table)


def layer_outputs(contents: FileContents) -> list[tuple[str, Shape]]:
    """Name and output shape of each layer, as ``ExecutionPlan.stage_texts`` wants them."""
    return [
        (contents.name(int(op["name_offset"])), output_shape(contents, op)) for op in contents.ops
    ]


def _plan(contents: FileContents, record: np.void) -> ExecutionPlan:
    begin, count = int(record["part_begin"]), int(record["part_count"])
    return ExecutionPlan(
        contents.name(int(record["device_offset"])),
        contents.name(int(record["method_offset"])),
        float(record["predicted_ms"]),
        tuple(_planned_part(part) for part in contents.plan_parts[begin : begin + count]),
    )


def _planned_part(record: np.void) -> PlannedPart:
    sides = ("row_begin", "row_end", "channel_begin", "channel_end")
    return PlannedPart(
        int(record["stage"]),
        Processor(int(record["processor"])),
        int(record["layer"]),
        OutputPart(*(int(record[side]) for side in sides)),
    )


def _part_record(part: PlannedPart) -> Records:
    record: np.ndarray[Any, np.dtype[np.void]] = np.zeros((), PLAN_PART)
    record["stage"], record["processor"], record["layer"] = part.stage, part.processor, part.layer
    record["row_begin"], record["row_end"] = part.part.row_begin, part.part.row_end
    record["channel_begin"] = part.part.channel_begin
    record["channel_end"] = part.part.channel_end
    return record


def _name_offset(strings: bytearray, name: str, what: str) -> int:
    """Where the name is; it is appended where it is not there yet."""
    encoded = name.encode()
    if not encoded or b"\0" in encoded or len(encoded) > MAX_NAME_BYTES:
        expected = f"1 to {MAX_NAME_BYTES} bytes of UTF-8 without a zero"
        raise InputError(f"plan: {what}", expected=expected, got=repr(name))
    place = (b"\0" + bytes(strings)).find(b"\0" + encoded + b"\0")
    if place < 0:
        place = len(strings)
        strings.extend(encoded + b"\0")
    return place
