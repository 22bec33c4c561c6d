"""Kernels on layers on GPUs: which combinations there are, compiled, as records of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.layer_shapes import layer_shape
from benchmarks.mobile_isa.compiler import CASES, Gpu, compile_programs
from benchmarks.mobile_isa.machine_code import RATES, STATISTICS, MachineCode, trip_counts
from benchmarks.mobile_isa.programs import Program, programs
from benchmarks.mobile_isa.work import work
from phonebit.compiled import load_runtime
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.estimate.gpu import QUANTITIES
from phonebit.planner.predict.layer_shape import LayerShape

LAYERS: Final = {name: layer_shape(**facts) for name, facts in CASES["layers"].items()}
TRIED: Final = [
    f"{kernel} {parameters}" for kernel, some in CASES["tried"].items() for parameters in some
]
"""Besides the @tune defaults and what tuning.table says, as it is written there."""
UNJUDGED: Final = ("bconv2d_lanes", "conv2d_f32_run")
"""Kernels that run where no mobile GPU takes them by default."""
# One of a kind: Mesa's name on Adreno and Mali, and how many of them it takes.
ANCHORS: Final = {
    ("qualcomm", "popcount"): (r"cbits", 2),
    ("qualcomm", "multiply_add"): (r"mad\.f", 1),
    ("qualcomm", "multiply_add_24"): (r"m(ad|ul)\.[su]24", 1),  # from A660 on sums of three follow
    ("qualcomm", "multiply_add_half"): (r"mad\.f16", 1),
    ("arm", "popcount"): (r"POPCOUNT", 1),
    ("arm", "multiply_add_24"): (r"IMUL", 1),
    ("arm", "multiply_add"): (r"FMA\.", 1),
    ("arm", "multiply_add_half"): (r"FMA\.v2f16", 0.5),  # two of them in one
}
LOCAL_BYTES: Final = 32768

Record = dict[str, Any]
"""A case on a GPU, as in the results file.

``unit``: "word" (32 binary MACs) or "MAC"; ``instructions_per_unit``: executed, Adreno without
nops, Bifrost tuples; ``cycles_per_unit``: of the busiest arithmetic unit, ``bound``; Adreno issue
slots; ``loads_per_unit``: loads, stores and texture fetches. None: no estimate. The others are
``machine_code.STATISTICS``, None where it did not compile; then ``problem`` says why.
"""


@dataclass(frozen=True)
class Case:
    """A choice for a layer."""

    layer: str  # its name in ``LAYERS``
    choice: KernelChoice
    # "chosen" for what the runtime takes on this GPU, "default" for the @tune defaults, "" for what
    # is tried besides.
    role: str


def cases(gpu: Gpu) -> list[Case]:
    """All cases of a GPU without repetition; the first role of a combination is the one it has."""
    found: dict[tuple[str, KernelChoice], Case] = {}
    table = load_runtime().built_in_tuning_table()
    for name, layer in LAYERS.items():
        chosen = _candidates(gpu, layer, table)[:1] if layer.is_convolution else []
        tried = "".join(f"{layer.family} * * * * {choice}\n" for choice in TRIED)
        for choice in (*chosen, *_candidates(gpu, layer, tried)):
            role = "default" if choice == KernelChoice.parse(choice.kernel) else ""
            role = "chosen" if choice in chosen else role
            found.setdefault((name, choice), Case(name, choice, role))
    return list(found.values())


def _candidates(gpu: Gpu, layer: LayerShape, tuning: str) -> list[KernelChoice]:
    """What can run a layer by a tuning table, in order, then every kernel's defaults."""
    kernels = load_runtime().GpuKernels("", gpu.vendor, gpu.family, LOCAL_BYTES, True, tuning)
    found = [KernelChoice.parse(text) for text, _ in kernels.candidates(layer, is_exact=False)]
    return [choice for choice in found if choice.kernel not in UNJUDGED]


def programs_of(wanted: Iterable[Case]) -> list[tuple[Case, Program]]:
    """The programs of cases; what several choices for a layer share is there once."""
    found: dict[tuple[str, Program], Case] = {}
    for case in wanted:
        for program in programs(LAYERS[case.layer], case.choice):
            found.setdefault((case.layer, program), case)
    return [(case, program) for (_, program), case in found.items()]


def compiled(
    folder: Path, gpu: Gpu, wanted: Sequence[tuple[Case, Program]], log: Path | None
) -> list[Record]:
    """Compiles programs of cases for a GPU."""
    results = compile_programs(folder, gpu, [program.text for _, program in wanted], log)
    return [_record(gpu, *each, result) for each, result in zip(wanted, results, strict=True)]


def _record(gpu: Gpu, case: Case, program: Program, result: MachineCode | str) -> Record:
    code = None if isinstance(result, str) else result
    statistics = dict.fromkeys(STATISTICS) | (code.statistics if code else {})
    return {
        "gpu": gpu.name,
        "layer": case.layer,
        "kernel": program.kernel,
        "parameters": " ".join(f"{name}={value}" for name, value in program.parameters.items()),
        "role": case.role,
        **_estimate(gpu, program, code),
        "static_instructions": statistics.pop("instructions"),
        **statistics,
        "problem": "" if code else str(result).strip(),
    }


def _estimate(gpu: Gpu, program: Program, code: MachineCode | None) -> Record:
    """What an execution takes for a unit of work, where a kernel's work is known."""
    task = work(program.kernel, program.defines)
    names = ("instructions_per_unit", "cycles_per_unit", "bound", "loads_per_unit")
    nothing = {"unit": task.unit if task else "", **dict.fromkeys(names)} | {"bound": ""}
    found = executed(gpu, program, code)
    if task is None or found is None:
        return nothing
    numbers = {f"{name}_per_unit": round(found[name] / task.per_item, 4) for name in QUANTITIES}
    return nothing | numbers | {"bound": found["bound"]}


def executed(
    gpu: Gpu, program: Program, code: MachineCode | None, static_trips: Sequence[int] = ()
) -> Record | None:
    """QUANTITIES of a work-item, and ``bound``; None where no trip counts fit the loops.

    ``static_trips`` are those of a kernel that work.py does not describe, outermost first.
    """
    if code is None:
        return None
    if task := work(program.kernel, program.defines):
        pattern, factor = ANCHORS[gpu.vendor, task.operation]
        anchor = (pattern, task.operations * factor)
        trips = trip_counts(code, task.extents, anchor, task.idle)
    else:  # a compiler has unrolled the inner ones
        trips = tuple(static_trips[: len(code.loops)])
    if trips is None or len(trips) != len(code.loops):
        return None
    units = code.executed(trips)
    loads = sum(units.pop(unit) * RATES[gpu.core][unit] for unit in ("ldst", "texture"))
    bound = max(units, key=lambda unit: units[unit])
    slots = zip(code.weights(trips), code.instructions, strict=True)
    instructions = sum(weight * one.slots for weight, one in slots)
    return {"cycles": units[bound], "instructions": instructions, "loads": loads, "bound": bound}
