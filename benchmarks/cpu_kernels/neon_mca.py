#!/usr/bin/env python3
"""Cycles of the NEON kernels' inner loops on cores that are not at hand, as llvm-mca predicts them.

Compiles the kernels for AArch64, takes the loops between `// begin NAME N MAC` and `// end NAME`
out of the assembly and prints multiply-accumulates a cycle. These are predictions from LLVM's
scheduling models with all loads in L1; they rank loops, and stand in no column headed "measured".
Fails when the default loop is under a floor.

    benchmarks/cpu_kernels/neon_mca.py [--json FILE]

Needs aarch64-linux-gnu-g++ and llvm-mca 16 or newer: LLVM 15 and older describe Neoverse N1 by the
model of Cortex-A57, where a table lookup is three operations (on an N1 it is one).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

CPU_BACKEND = Path(__file__).resolve().parents[2] / "cpu_backend"
SOURCES = ("neon/binary_conv_pair_table.cpp", "neon/binary_conv_count.cpp")
DEFAULT_LOOP = "pair_table"
OLDEST_LLVM = 16
ITERATIONS = 200


@dataclass(frozen=True)
class Core:
    """A core with the least and the wanted MAC/cycle of the default loop."""

    name: str
    floor: float
    goal: float


CORES = (Core("neoverse-n1", 80, 86), Core("cortex-a55", 30, 35), Core("cortex-a53", 27, 31))


@dataclass(frozen=True)
class Loop:
    """An inner loop: its instructions and the multiply-accumulates of one pass."""

    name: str
    macs: int
    assembly: str


@dataclass(frozen=True)
class Prediction:
    """MAC/cycle of a loop on a core; floor and goal are None for loops that are not the default."""

    loop: str
    core: str
    macs_per_cycle: float
    floor: float | None
    goal: float | None


def find_llvm_mca() -> str:
    """Returns the newest llvm-mca on the path; exits if none is new enough."""
    names = [f"llvm-mca-{version}" for version in range(40, OLDEST_LLVM - 1, -1)] + ["llvm-mca"]
    for path in filter(None, map(shutil.which, names)):
        text = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True
        ).stdout
        version = re.search(r"version (\d+)", text)
        if version and int(version[1]) >= OLDEST_LLVM:
            return path
    sys.exit(
        f"neon_mca: no llvm-mca of LLVM {OLDEST_LLVM} or newer; "
        "install one, e.g. apt-get install llvm-19"
    )


def compile_loops(compiler: str, source: Path) -> list[Loop]:
    """Compiles a kernel file as a release build does and cuts the marked loops out of its assembly.

    A loop that the compiler has copied (into several callers) is taken once, as it appears first.
    """
    with tempfile.NamedTemporaryFile(suffix=".s") as output:
        flags = [
            "-std=c++17",
            "-O3",
            "-fPIC",
            "-ffp-contract=off",
            "-DPHONEBIT_MCA_MARKERS",
            f"-I{CPU_BACKEND}",
        ]
        subprocess.run([compiler, *flags, "-S", str(source), "-o", output.name], check=True)
        assembly = Path(output.name).read_text()
    loops: dict[str, Loop] = {}
    for name, macs, body in re.findall(
        r"// begin (\w+) (\d+) MAC\n(.*?)// end \1\n", assembly, re.DOTALL
    ):
        lines = [line for line in body.splitlines() if not re.match(r"\s*(#|\.|//|$|\w+:)", line)]
        loops.setdefault(
            name, Loop(name, int(macs), "\n".join(line.replace("3b", "0") for line in lines))
        )
    if not loops:
        sys.exit(f"neon_mca: {source} has no marked loop")
    return list(loops.values())


def predict(llvm_mca: str, loop: Loop, core: Core) -> Prediction:
    """Runs llvm-mca over many passes of a loop."""
    command = [llvm_mca, "-mtriple=aarch64", f"-mcpu={core.name}", f"-iterations={ITERATIONS}"]
    report = subprocess.run(
        command, input=loop.assembly + "\n", capture_output=True, text=True, check=True
    ).stdout
    cycles = re.search(r"Total Cycles:\s+(\d+)", report)
    if cycles is None:
        sys.exit(f"neon_mca: {llvm_mca} printed no cycle count for {loop.name} on {core.name}")
    limits = (core.floor, core.goal) if loop.name == DEFAULT_LOOP else (None, None)
    return Prediction(
        loop.name, core.name, round(loop.macs * ITERATIONS / int(cycles[1]), 1), *limits
    )


def main() -> int:
    """Returns 1 when the default loop is under a floor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    if shutil.which(arguments.compiler) is None:
        sys.exit(
            f"neon_mca: {arguments.compiler} not found; "
            "install g++-aarch64-linux-gnu or pass --compiler"
        )
    llvm_mca = find_llvm_mca()
    loops = [
        loop
        for source in SOURCES
        for loop in compile_loops(arguments.compiler, CPU_BACKEND / source)
    ]
    table = [predict(llvm_mca, loop, core) for loop in loops for core in CORES]
    print(
        f"{'loop':<12} {'core':<12} {'MAC/cycle':>9} {'floor':>6} {'goal':>6}   "
        f"predicted by {Path(llvm_mca).name}"
    )
    failed = False
    for row in table:
        under = row.floor is not None and row.macs_per_cycle < row.floor
        failed |= under
        limits = (
            f"{row.floor:>6g} {row.goal:>6g}" if row.floor is not None else f"{'-':>6} {'-':>6}"
        )
        verdict = "   UNDER THE FLOOR" if under else ""
        print(f"{row.loop:<12} {row.core:<12} {row.macs_per_cycle:>9} {limits}{verdict}")
    if arguments.json:
        result = {"tool": Path(llvm_mca).name, "predicted": [asdict(row) for row in table]}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
