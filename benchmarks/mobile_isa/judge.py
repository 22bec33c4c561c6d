"""Kernels on layers on GPUs: which combinations there are, compiled, as records of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.mobile_isa.compiler import Gpu, compile_programs
from benchmarks.mobile_isa.layers import LAYERS, TRIED, Layer, Parameters, fitted, serves
from benchmarks.mobile_isa.machine_code import RATES, MachineCode, trip_counts
from benchmarks.mobile_isa.work import work
from phonebit.bnn_kernels.sources import assemble
from phonebit.compiled import load_runtime
from phonebit.devices.kernel_choice import KernelChoice

# One of a kind: Mesa's name on Adreno and Mali, and how many of them it takes.
ANCHORS = {
    ("qualcomm", "popcount"): (r"cbits", 2),
    ("qualcomm", "multiply_add"): (r"mad\.f", 1),
    ("arm", "popcount"): (r"POPCOUNT", 1),
    ("arm", "multiply_add"): (r"FMA\.", 1),
}

LOCAL_BYTES = 32768

Record = dict[str, Any]
"""A case on a GPU, as in the results file.

``unit``: "word" (32 binary MACs) or "MAC"; ``instructions_per_unit``: executed, Adreno without
nops, Bifrost tuples; ``cycles_per_unit``: of the busiest arithmetic unit, ``bound``; Adreno issue
slots; ``loads_per_unit``: loads, stores and texture fetches. None: no estimate. The others are
``machine_code.Statistics``, None where it did not compile; then ``problem`` says why.
"""


@dataclass(frozen=True)
class Case:
    """A kernel with parameters on a layer.

    Attributes:
        role: "chosen" for what the runtime takes on this GPU, "default" for the @tune defaults,
            "" for what is tried besides.
    """

    layer: Layer
    kernel: str
    parameters: Parameters
    role: str


def cases(gpu: Gpu) -> list[Case]:
    """All cases of a GPU without repetition; the first role of a combination is the one it has."""
    found: dict[tuple[str, str, Parameters], Case] = {}
    for layer in LAYERS:
        for kernel, values, role in _combinations(gpu, layer):
            parameters = fitted(layer, kernel, values)
            if serves(layer, kernel, parameters):
                found.setdefault(
                    (layer.name, kernel, parameters), Case(layer, kernel, parameters, role)
                )
    return list(found.values())


def _combinations(gpu: Gpu, layer: Layer) -> Iterable[tuple[str, dict[str, int], str]]:
    for choice in _choices(gpu, layer):
        values = dict(choice.parameters)
        if serves(layer, choice.kernel, fitted(layer, choice.kernel, values)):
            yield choice.kernel, values, "chosen"
            break
    for kernel in layer.kernels:
        yield kernel, {}, "default"
    for kernel in layer.kernels:
        for values in TRIED.get(kernel, []):
            yield kernel, values, ""


def _choices(gpu: Gpu, layer: Layer) -> list[KernelChoice]:
    """What the runtime tries on a layer, in order; nothing where nothing is chosen."""
    if not layer.op:
        return []
    runtime = load_runtime()
    table = runtime.built_in_tuning_table()
    kernels = runtime.GpuKernels("", gpu.vendor, gpu.family, LOCAL_BYTES, True, table)
    facts = {name.lower(): value for name, value in layer.defines.items()}
    is_threshold = "THRESHOLD" in layer.defines
    facts |= {"thresholds": is_threshold, "bits": is_threshold or "HAS_BITS" in layer.defines}
    facts |= {"family": layer.op, "operand_channels": [layer.defines["IN_C"]]}
    found = kernels.candidates(SimpleNamespace(**facts))
    return [KernelChoice.parse(text) for text, _ in found]


def compiled(folder: Path, gpu: Gpu, wanted: Sequence[Case], log: Path | None) -> list[Record]:
    """Compiles cases for a GPU.

    Raises:
        RuntimeError: the compiler cannot be run.
    """
    texts = {
        str(index): assemble(case.kernel, case.layer.defines | dict(case.parameters))
        for index, case in enumerate(wanted)
    }
    results = compile_programs(folder, gpu, texts, log)
    return [_record(gpu, case, results[str(index)]) for index, case in enumerate(wanted)]


def _record(gpu: Gpu, case: Case, result: MachineCode | str) -> Record:
    statistics = None if isinstance(result, str) else result.statistics
    return {
        "gpu": gpu.name,
        "layer": case.layer.name,
        "kernel": case.kernel,
        "parameters": " ".join(f"{name}={value}" for name, value in case.parameters),
        "role": case.role,
        **_estimate(gpu, case, None if isinstance(result, str) else result),
        "static_instructions": statistics and statistics.instructions,
        "registers": statistics and statistics.registers,
        "occupancy": statistics and statistics.occupancy,
        "spills": statistics and statistics.spills,
        "fills": statistics and statistics.fills,
        "scratch": statistics and statistics.scratch,
        "problem": result.strip() if isinstance(result, str) else "",
    }


def _estimate(gpu: Gpu, case: Case, code: MachineCode | None) -> Record:
    """What an execution takes for a unit of work, where a kernel's work is known."""
    task = work(case.layer, case.kernel, case.parameters)
    names = ("instructions_per_unit", "cycles_per_unit", "bound", "loads_per_unit")
    nothing = {"unit": task.unit if task else "", **dict.fromkeys(names)} | {"bound": ""}
    if task is None or code is None:
        return nothing
    pattern, factor = ANCHORS[gpu.vendor, task.operation]
    trips = trip_counts(code, task.extents, (pattern, task.operations * factor), task.idle)
    if trips is None:
        return nothing
    executed = code.executed(trips)
    messages = sum(executed.pop(unit) * RATES[gpu.core][unit] for unit in ("ldst", "texture"))
    bound = max(executed, key=lambda unit: executed[unit])
    slots = zip(code.weights(trips), code.instructions, strict=True)
    instructions = sum(weight * one.slots for weight, one in slots)
    numbers = (instructions, executed[bound], messages)
    per_unit = [round(number / task.per_item, 4) for number in numbers]
    return {"unit": task.unit, "instructions_per_unit": per_unit[0],
            "cycles_per_unit": per_unit[1], "bound": bound,
            "loads_per_unit": per_unit[2]}  # fmt: skip


def is_bad(record: Record) -> bool:
    """Whether it did not compile, spills, or keeps an array in private memory."""
    return bool(record["problem"] or record["spills"] or record["fills"] or record["scratch"])
