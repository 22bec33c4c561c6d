"""Kernels on layers on GPUs: which combinations there are, compiled, as rows of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mobile_isa.compiler import Failure, Gpu, compile_programs
from benchmarks.mobile_isa.layers import LAYERS, TRIED, Layer, Parameters, fitted, serves
from benchmarks.mobile_isa.machine_code import RATES, MachineCode, Statistics, trip_counts
from benchmarks.mobile_isa.tuning import Entry, choices
from benchmarks.mobile_isa.work import work
from phonebit.bnn_kernels.sources import assemble

# One of a kind: Mesa's name on Adreno and Mali, and how many of them it takes.
ANCHORS = {
    ("qualcomm", "popcount"): (r"cbits", 2),
    ("qualcomm", "multiply_add"): (r"mad\.f", 1),
    ("arm", "popcount"): (r"POPCOUNT", 1),
    ("arm", "multiply_add"): (r"FMA\.", 1),
}


@dataclass(frozen=True)
class Case:
    """A kernel with parameters on a layer.

    Attributes:
        role: "chosen" for what tuning.table gives this GPU, "default" for the @tune defaults,
            "" for what is tried besides.
    """

    layer: Layer
    kernel: str
    parameters: Parameters
    role: str


@dataclass(frozen=True)
class Row:
    """What a case became on a GPU.

    Attributes:
        statistics: None when it did not compile; then `problem` says why.
        unit: "word" (32 binary MACs), "MAC" or "result".
        instructions: executed per unit; Adreno without nops, Bifrost tuples. None: no estimate.
        cycles: of the busiest arithmetic unit, per unit of work; Adreno issue slots.
        bound: that unit's name.
        messages: loads, stores and texture fetches per unit of work.
    """

    gpu: str
    case: Case
    statistics: Statistics | None
    unit: str
    instructions: float | None = None
    cycles: float | None = None
    bound: str = ""
    messages: float | None = None
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Did not compile, spills, or keeps an array in private memory."""
        one = self.statistics
        return one is None or bool(one.spills or one.fills or one.scratch)


def cases(gpu: Gpu, table: Sequence[Entry]) -> list[Case]:
    """All cases of a GPU without repetition; the first role of a combination is the one it has."""
    found: dict[tuple[str, str, Parameters], Case] = {}
    for layer in LAYERS:
        for kernel, values, role in _combinations(gpu, layer, table):
            parameters = fitted(layer, kernel, values)
            if serves(layer, kernel, parameters):
                found.setdefault(
                    (layer.name, kernel, parameters), Case(layer, kernel, parameters, role)
                )
    return list(found.values())


def _combinations(
    gpu: Gpu, layer: Layer, table: Sequence[Entry]
) -> Iterable[tuple[str, dict[str, int], str]]:
    for entry in choices(table, layer.op, layer.shape, gpu.vendor, gpu.family):
        values = dict(entry.parameters)
        if serves(layer, entry.kernel, fitted(layer, entry.kernel, values)):
            yield entry.kernel, values, "chosen"
            break
    for kernel in layer.kernels:
        yield kernel, {}, "default"
    for kernel in layer.kernels:
        for values in TRIED.get(kernel, []):
            yield kernel, values, ""


def compile_rows(folder: Path, gpu: Gpu, wanted: Sequence[Case], log: Path | None) -> list[Row]:
    """Compiles cases for a GPU.

    Raises:
        RuntimeError: the compiler cannot be run.
    """
    texts = {
        str(index): assemble(case.kernel, case.layer.defines | dict(case.parameters))
        for index, case in enumerate(wanted)
    }
    results = compile_programs(folder, gpu, texts, log)
    return [_row(gpu, case, results[str(index)]) for index, case in enumerate(wanted)]


def _row(gpu: Gpu, case: Case, result: MachineCode | Failure) -> Row:
    task = work(case.layer, case.kernel, case.parameters)
    if isinstance(result, Failure):
        return Row(gpu.name, case, None, task.unit, problem=result.message)
    anchor = None
    if task.anchor is not None:
        pattern, factor = ANCHORS[gpu.vendor, task.anchor[0]]
        anchor = (pattern, task.anchor[1] * factor)
    trips = trip_counts(result, task.extents, anchor, task.idle)
    if trips is None:
        return Row(gpu.name, case, result.statistics, task.unit)
    executed = result.executed(trips)
    rates = RATES[gpu.core]
    messages = sum(executed.pop(unit) * rates[unit] for unit in ("ldst", "texture"))
    bound = max(executed, key=lambda unit: executed[unit])
    slots = zip(result.weights(trips), result.instructions, strict=True)
    return Row(
        gpu.name,
        case,
        result.statistics,
        task.unit,
        instructions=sum(weight * one.slots for weight, one in slots) / task.per_item,
        cycles=executed[bound] / task.per_item,
        bound=bound,
        messages=messages / task.per_item,
    )


def best(rows: Sequence[Row]) -> Row | None:
    """The fewest cycles among rows that neither spill nor use scratch memory."""
    good = [row for row in rows if not row.is_bad and row.cycles is not None]
    return min(good, key=lambda row: row.cycles or math.inf, default=None)
