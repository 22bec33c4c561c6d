"""What Mesa's compilers print about one kernel: its instructions, their loops, and statistics.

Mesa compiles a kernel twice, with and without a global offset; the last print is the one without.
Counts of Mesa are static, each loop body once. `MachineCode.executed` weights them with trip
counts: a backward branch spans a loop, and `trip_counts` finds how often each loop runs from the
layer's own loop extents, checked by an operation whose number per work-item is known (a popcount a
word, a multiply-add a MAC). Both sides of an if count, so the weighted numbers are upper bounds.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

# Operations per cycle by unit, the weights of Mesa's own cycle counts. Adreno: issue slots.
RATES = {
    "adreno": {"issue": 1, "ldst": 1, "texture": 1},
    "bifrost": {"arith": 24, "ldst": 1, "texture": 2},
    "valhall": {"fma": 64, "cvt": 64, "sfu": 16, "ldst": 1, "texture": 4},
    "valhall-half": {"fma": 32, "cvt": 32, "sfu": 8, "ldst": 1, "texture": 4},
}
MAX_EXCESS = 0.15
_VALHALL_SFU = re.compile(
    r"IMUL|IMULD|[LRA]+SHIFT|LROT|RROT|POPCOUNT|MUX|BITREV|CLZ|FRCP|FRSQ|FEXP|FLOG|FSIN|FCOS|"
    r"FATAN|FROUND_NOT|IDP"
)
_VALHALL_FMA = re.compile(r"FMA\.|FADD|FMA_RSCALE|FMIN|FMAX|FMUL")
_MESSAGE = re.compile(r"LOAD|STORE|ATOM|LD_|ST_|AXCHG|ACMPXCHG")
_ADRENO_MESSAGE = re.compile(r"(ld|st)[glp]w?\.|atomic|(ld|st)ib")
_ADRENO_TEXTURE = re.compile(r"i?sam")
_TEXTURE = re.compile(r"TEX")


@dataclass(frozen=True)
class Instruction:
    """One instruction, on Bifrost one tuple of two."""

    names: tuple[str, ...]  # mnemonics
    slots: int = 1  # how often it issues (Adreno repeats; waiting takes none)


Loop = tuple[int, int]
"""Indices of a loop's first and last instruction."""


STATISTICS = {
    "instructions": "static; Adreno without nops, Bifrost tuples",
    "registers": "Adreno vec4 registers, Mali 32-bit registers",
    "occupancy": "Adreno waves of at most 16; Mali 2 (full) or 1 (half the threads)",
    "spills": "registers stored to memory",
    "fills": "registers read back",
    "scratch": "instructions that touch private memory, those of spills among them",
}
"""What a compiler says of a kernel on one GPU."""


@dataclass(frozen=True)
class MachineCode:
    """A kernel for a core (a key of RATES): instructions, loops (outer ones first), statistics."""

    core: str
    instructions: tuple[Instruction, ...]
    loops: tuple[Loop, ...]
    statistics: dict[str, int]  # by name in STATISTICS

    def weights(self, trips: Sequence[float]) -> list[float]:
        """How often each instruction runs when loop i runs trips[i] times an entry."""
        weights = [1.0] * len(self.instructions)
        for (first, last), count in zip(self.loops, trips, strict=True):
            for index in range(first, last + 1):
                weights[index] *= count
        return weights

    def find(self, names: str) -> Counter[tuple[int, ...]]:
        """Operations that a regular expression names, by the loops around them (indices)."""
        pattern = re.compile(names)
        found: Counter[tuple[int, ...]] = Counter()
        for index, one in enumerate(self.instructions):
            number = one.slots * sum(1 for name in one.names if pattern.match(name))
            if number:
                around = (i for i, (first, last) in enumerate(self.loops) if first <= index <= last)
                found[tuple(around)] += number
        return found

    def executed(self, trips: Sequence[float]) -> dict[str, float]:
        """Cycles per work-item by unit when loop i runs trips[i] times; Adreno: issue slots."""
        totals: defaultdict[str, float] = defaultdict(float)
        for weight, instruction in zip(self.weights(trips), self.instructions, strict=True):
            for unit, number in _units(self.core, instruction).items():
                totals[unit] += weight * number
        return {unit: totals[unit] / rate for unit, rate in RATES[self.core].items()}


def _units(core: str, instruction: Instruction) -> Counter[str]:
    units: Counter[str] = Counter()
    if core == "adreno":
        units["issue"] = instruction.slots
        units["ldst"] = sum(1 for name in instruction.names if _ADRENO_MESSAGE.match(name))
        units["texture"] = sum(1 for name in instruction.names if _ADRENO_TEXTURE.match(name))
        return units
    for name in instruction.names:
        if _TEXTURE.match(name):
            units["texture"] += 1
        elif _MESSAGE.match(name):
            units["ldst"] += 1
        elif core == "bifrost":
            units["arith"] = 1
        elif _VALHALL_SFU.match(name):
            units["sfu"] += 1
        elif _VALHALL_FMA.match(name):
            units["fma"] += 1
        else:
            units["cvt"] += 2 if ".s64" in name else 1
    return units


def trip_counts(
    code: MachineCode, extents: Sequence[float], anchor: tuple[str, float], idle: int = 1
) -> tuple[float, ...] | None:
    """How often each loop runs.

    A compiler unrolls some of the source's loops completely, innermost first as a rule. So each
    remaining loop runs as often as a product of neighbouring extents says.

    Args:
        code: the kernel.
        extents: the source loops' trip counts, outermost first.
        anchor: a pattern of operations and their minimum per work-item; None is returned
            where no assignment comes near it.
        idle: trips of a loop that has no such operation.
    """
    extents = [extent for extent in extents if extent > 1]
    pattern, wanted = anchor
    products = {
        math.prod(extents[first:last])
        for first in range(len(extents))
        for last in range(first + 1, len(extents) + 1)
    }
    found = code.find(pattern)
    holds = [any(index in around for around in found) for index in range(len(code.loops))]
    best: tuple[float, tuple[float, ...]] | None = None
    for trips in itertools.product(*(sorted(products | {1}) if has else [idle] for has in holds)):
        # An epilogue may hold some of these operations too.
        executed = sum(n * math.prod(trips[i] for i in around) for around, n in found.items())
        excess = executed / wanted - 1
        if -1e-6 <= excess <= MAX_EXCESS and (best is None or excess < best[0]):
            best = (excess, trips)
    return best[1] if best else None


def parse(core: str, log: str) -> MachineCode:
    """Reads a compiler's output for one kernel; a ValueError where there is no code in it."""
    return _parse_adreno(log) if core == "adreno" else _parse_mali(core, log)


def _pairs(text: str) -> dict[str, float]:
    """`5 nops, 0.5 fma` as a dictionary."""
    found = re.findall(r"(\d+(?:\.\d+)?) \(?([A-Za-z][\w\-/ ]*)", text)
    return {name.strip(): float(number) for number, name in found}


def _parse_adreno(log: str) -> MachineCode:
    start = log.rfind("Native code for ")
    if start < 0 or "; CL prog" not in log[start:]:
        raise ValueError("the compiler printed no Adreno code")
    lines = log[start:].splitlines()
    numbers: dict[str, float] = {}
    for line in lines:
        if line.startswith("; CL prog"):
            numbers |= _pairs(line.partition(": ")[2])
    body = [line.strip() for line in lines if line and not line.startswith((";", "@", "Native"))]
    ends = [index for index, line in enumerate(body) if line == "end"]
    body = body[: ends[-1]] if ends else body
    preamble = [index for index, line in enumerate(body) if line.endswith("shpe")]
    body = body[preamble[-1] + 1 :] if preamble else body

    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    loops: dict[int, int] = {}
    for line in body:
        if label := re.fullmatch(r"(l\d+):", line):
            labels[label[1]] = len(instructions)
            continue
        flags = re.match(r"(?:\([a-z]+\d*\)\s*)*", line)
        assert flags is not None
        name = re.match(r"[a-z][\w.]*", line[flags.end() :])
        if name is None:
            continue
        repeat = re.search(r"\(rpt(\d)\)", flags[0])
        slots = 1 + (int(repeat[1]) if repeat else 0)
        if name[0] == "nop":
            instructions.append(Instruction(("nop",), 0))
            continue
        target = re.search(r"#(l\d+)$", line)
        if target and target[1] in labels:
            first = labels[target[1]]
            loops[first] = max(loops.get(first, 0), len(instructions))
        instructions.append(Instruction((name[0],), slots))
    scratch = sum(1 for one in instructions if re.match(r"stp|ldp", one.names[0]))
    statistics = {
        "instructions": int(numbers["non-nops"]),
        "registers": math.ceil(numbers["full"]),
        "occupancy": int(numbers["max_waves"]),
        "spills": 0,
        "fills": 0,
        "scratch": scratch,
    }
    return MachineCode("adreno", tuple(instructions), tuple(sorted(loops.items())), statistics)


def _parse_mali(core: str, log: str) -> MachineCode:
    found = re.findall(r"MESA_SHADER_(?:KERNEL|COMPUTE) shader: (.*)", log)
    start = log.rfind("\nblock0 {")
    if not found or start < 0:
        raise ValueError("the compiler printed no Mali code")
    numbers = _pairs(re.sub(r"\d+:\d+ spills:fills", "", found[-1]))
    moved = re.search(r"(\d+):(\d+) spills:fills", found[-1])
    assert moved is not None

    instructions: list[Instruction] = []
    begins: dict[str, int] = {}
    loops: dict[int, int] = {}
    inside = False  # what follows the last block is the same code again, as a disassembly
    for line in log[start:].splitlines():
        if block := re.match(r"(block\d+) \{", line):
            inside = True
            begins[block[1]] = len(instructions)
        elif line.startswith("}"):
            inside = False
            for name in re.findall(r"block\d+", line.partition(" from ")[0]):
                if name in begins:
                    first = begins[name]
                    loops[first] = max(loops.get(first, 0), len(instructions) - 1)
        elif inside:
            _add_mali_instruction(instructions, line)
    scratch = sum(1 for one in instructions for name in one.names if ".tl" in name)
    statistics = {
        "instructions": int(numbers["tuples" if core == "bifrost" else "instrs"]),
        "registers": int(numbers["registers used"]),
        "occupancy": int(numbers["threads"]),
        "spills": int(moved[1]),
        "fills": int(moved[2]),
        "scratch": scratch,
    }
    return MachineCode(core, tuple(instructions), tuple(sorted(loops.items())), statistics)


def _add_mali_instruction(instructions: list[Instruction], line: str) -> None:
    """Appends an instruction; the second half of a Bifrost tuple (`+`) joins the first (`*`)."""
    found = re.match(r"\s+([*+]?)\s*(?:[\w:.^]+ = |_[\w.]* = )?([A-Z][A-Z0-9_]*[\w.]*)", line)
    if found is None:
        return
    names = () if found[2] == "NOP" else (found[2],)
    if found[1] == "+":
        instructions[-1] = Instruction(instructions[-1].names + names)
    else:
        instructions.append(Instruction(names))
