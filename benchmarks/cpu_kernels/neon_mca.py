"""Cycles of the NEON kernels' inner loops on cores that are not at hand, as llvm-mca predicts them.

Compiles the kernels for AArch64, takes the loops around `// begin NAME N MAC` and `// end NAME`
out of the assembly and prints multiply-accumulates per cycle: binary ones, and those of bytes in
the kernels of first layers and 8-bit layers. These are predictions from LLVM's scheduling models
with all loads in L1; they rank loops, and stand in no column headed "measured". Fails when a loop
is under its floor on a core.

    python -m benchmarks.cpu_kernels.neon_mca

Cortex-A76 has the core of Neoverse N1, Cortex-X1 that of Neoverse V1; LLVM 19 has no models of
Cortex-A78 and X1 of their own: it takes Cortex-A57's for them.

Needs aarch64-linux-gnu-g++ and llvm-mca 16 or newer: LLVM 15 and older describe Neoverse N1 by the
model of Cortex-A57, where a table lookup is three operations (on an N1 it is one).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.command_line import parser_of

OLDEST_LLVM = 16
ITERATIONS = 200
MARCH_FEATURES = "+dotprod,+i8mm"
MAX_LINES_AFTER = 40  # from a loop's last mark to its branch


KERNELS: list[dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text())
"""Kernel files below cpu_backend, the flags of their folder, and by core for which they are
predicted the minimum MAC/cycle of their loops; 0 where nothing is demanded."""
FLAGS = (
    *("-std=c++17", "-O2", "-fpeel-loops", "-fPIC", "-ffp-contract=off"),  # as in CMakeLists.txt
    "-DPHONEBIT_MCA_MARKERS",
    *(f"-I{ROOT}/{folder}" for folder in ("cpu_backend", "runtime/ops/include", "bnn_kernels")),
)


@dataclass(frozen=True)
class Loop:
    """An inner loop: its instructions and the multiply-accumulates of one pass."""

    name: str
    macs: int
    assembly: str


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
    sys.exit(f"neon_mca: no llvm-mca of LLVM {OLDEST_LLVM} or newer; apt-get install llvm-19")


def compile_loops(compiler: str, source: Path, own_flags: Sequence[str]) -> list[Loop]:
    """Compiles a kernel file as a release build does and cuts the marked loops out of its assembly.

    A loop that the compiler has copied, into several callers, is there once for each copy.
    """
    with tempfile.NamedTemporaryFile(suffix=".s") as output:
        command = [compiler, *FLAGS, *own_flags, "-S", str(source), "-o", output.name]
        subprocess.run(command, check=True)
        lines = Path(output.name).read_text().splitlines()
    loops = []
    for at, line in enumerate(lines):
        begin = re.match(r"\s*// begin (\w+) (\d+) MAC", line)
        if begin:
            loops.append(Loop(begin[1], int(begin[2]), cut_loop(lines, at, begin[1])))
    if not loops:
        sys.exit(f"neon_mca: {source} has no marked loop")
    return loops


def cut_loop(lines: list[str], begin: int, name: str) -> str:
    """Returns the instructions of the loop around the marks of a loop.

    It runs from the label before the first mark to the branch back to that label, because
    compilers move instructions beyond the marks. Inline assembly has its label between the marks.
    """
    end = begin + next(i for i, line in enumerate(lines[begin:]) if f"// end {name}" in line)
    first = max(at for at in range(begin) if re.match(r"\.?\w+:", lines[at]))
    label = lines[first].split(":")[0]
    for at in range(end, min(end + MAX_LINES_AFTER, len(lines))):
        if re.match(rf"\s*[bct]\S*\s(.*\s)?{re.escape(label)}$", lines[at]):
            begin, end = first, at + 1
            break
    body = [line for line in lines[begin:end] if not re.match(r"\s*(#|\.|//|$|\w+:)", line)]
    return "\n".join(re.sub(rf"({re.escape(label)}|3b)$", "0", line) for line in body)


def predict(llvm_mca: str, loop: Loop, core: str) -> float:
    """MAC/cycle of a loop on a core, by llvm-mca over many passes."""
    command = [llvm_mca, "-mtriple=aarch64", f"-mcpu={core}", f"-mattr={MARCH_FEATURES}",
               f"-iterations={ITERATIONS}"]  # fmt: skip
    report = subprocess.run(
        command, input=loop.assembly + "\n", capture_output=True, text=True, check=True
    ).stdout
    cycles = re.search(r"Total Cycles:\s+(\d+)", report)
    if cycles is None:
        sys.exit(f"neon_mca: {llvm_mca} printed no cycle count for {loop.name} on {core}")
    return round(loop.macs * ITERATIONS / int(cycles[1]), 1)


def main() -> int:
    """Returns 1 when a loop is under its floor."""
    parser = parser_of(__doc__)
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    arguments = parser.parse_args()
    if shutil.which(arguments.compiler) is None:
        sys.exit(f"neon_mca: no {arguments.compiler}; install g++-aarch64-linux-gnu")
    llvm_mca = find_llvm_mca()
    print(f"{'loop':<16} {'core':<12} {'MAC/cycle':>9} {'floor':>6}   by {Path(llvm_mca).name}")
    failed = False
    for kernel in KERNELS:
        source = ROOT / "cpu_backend" / kernel["file"]
        loops = compile_loops(arguments.compiler, source, kernel["flags"])
        for core, floor in kernel["floors"].items():
            slowest, name = min((predict(llvm_mca, loop, core), loop.name) for loop in loops)
            verdict = "   UNDER THE FLOOR" if slowest < floor else ""
            print(f"{name:<16} {core:<12} {slowest:>9} {floor or '-':>6}{verdict}", flush=True)
            failed |= bool(verdict)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
