#!/usr/bin/env python3
"""Cycles of the NEON kernels' inner loops on cores that are not at hand, as llvm-mca predicts them.

Compiles the kernels for AArch64, takes the loops around `// begin NAME N MAC` and `// end NAME`
out of the assembly and prints multiply-accumulates a cycle: binary ones, and those of bytes in the
kernels of first layers and 8-bit layers. These are predictions from LLVM's scheduling models with
all loads in L1; they rank loops, and stand in no column headed "measured".
Fails when a loop is under its floor on a core.

    python -m benchmarks.cpu_kernels.neon_mca

Needs aarch64-linux-gnu-g++ and llvm-mca 16 or newer: LLVM 15 and older describe Neoverse N1 by the
model of Cortex-A57, where a table lookup is three operations (on an N1 it is one).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command_line import parser_of

CPU_BACKEND = Path(__file__).resolve().parents[2] / "cpu_backend"
OLDEST_LLVM = 16
ITERATIONS = 200
MARCH_FEATURES = "+dotprod,+i8mm"
MOST_LINES_BEHIND = 40  # from a loop's last mark to its branch


@dataclass(frozen=True)
class Target:
    """A core with the least MAC/cycle of a loop; None where nothing is demanded."""

    core: str
    floor: float | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel file below cpu_backend, the flags of its folder, and the cores to predict it for."""

    source: str
    targets: tuple[Target, ...]
    flags: tuple[str, ...] = ()


KERNELS = (
    Kernel(
        "neon/binary_conv_pair_table.cpp",
        (
            Target("neoverse-n1", 80),
            Target("cortex-a55", 30),
            Target("cortex-a53", 27),
        ),
    ),
    Kernel(
        "neon/binary_conv_count.cpp",
        (Target("neoverse-n1"), Target("cortex-a55"), Target("cortex-a53")),
    ),
    Kernel(
        "neon/u8_conv.cpp",
        (
            Target("neoverse-n1", 9),
            Target("cortex-a55", 2.8),
            Target("cortex-a53", 2.7),
        ),
    ),
    Kernel(
        "neon/value_kernels.cpp",
        (Target("neoverse-n1"), Target("cortex-a55"), Target("cortex-a53")),
    ),
    Kernel(
        "neon_dotprod/byte_kernels.cpp",
        (
            Target("neoverse-n1", 28),
            Target("cortex-a76", 28),
            Target("cortex-a55", 7),
            Target("neoverse-v1", 56),
        ),
        ("-march=armv8.2-a+dotprod",),
    ),
    Kernel(
        "neon_i8mm/byte_kernels.cpp",
        (
            Target("cortex-a710", 44),
            Target("neoverse-v1", 86),
            Target("cortex-a510", 20),
        ),
        ("-march=armv8.2-a+dotprod+i8mm",),
    ),
)


@dataclass(frozen=True)
class Loop:
    """An inner loop: its instructions and the multiply-accumulates of one pass."""

    name: str
    macs: int
    assembly: str


@dataclass(frozen=True)
class Prediction:
    """MAC/cycle of a loop on a core."""

    loop: str
    target: Target
    macs_per_cycle: float

    @property
    def is_under(self) -> bool:
        """Whether the loop is slower than its floor."""
        return self.target.floor is not None and self.macs_per_cycle < self.target.floor


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


def compile_loops(compiler: str, kernel: Kernel) -> list[Loop]:
    """Compiles a kernel file as a release build does and cuts the marked loops out of its assembly.

    A loop that the compiler has copied, into several callers, is there once for each copy.
    """
    source = CPU_BACKEND / kernel.source
    with tempfile.NamedTemporaryFile(suffix=".s") as output:
        flags = [
            "-std=c++17",
            "-O2",  # and the next: cpu_backend/CMakeLists.txt
            "-fpeel-loops",
            "-fPIC",
            "-ffp-contract=off",
            "-DPHONEBIT_MCA_MARKERS",
            f"-I{CPU_BACKEND}",
            *kernel.flags,
        ]
        subprocess.run([compiler, *flags, "-S", str(source), "-o", output.name], check=True)
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
    """Returns the instructions of the loop around the marks of a pass.

    It runs from the label before the first mark to the branch back to that label, because
    compilers move instructions beyond the marks. Inline assembly has its label between the marks.
    """
    end = begin + next(i for i, line in enumerate(lines[begin:]) if f"// end {name}" in line)
    first = max(at for at in range(begin) if re.match(r"\.?\w+:", lines[at]))
    label = lines[first].split(":")[0]
    for at in range(end, min(end + MOST_LINES_BEHIND, len(lines))):
        if re.match(rf"\s*[bct]\S*\s(.*\s)?{re.escape(label)}$", lines[at]):
            begin, end = first, at + 1
            break
    body = [line for line in lines[begin:end] if not re.match(r"\s*(#|\.|//|$|\w+:)", line)]
    return "\n".join(re.sub(rf"({re.escape(label)}|3b)$", "0", line) for line in body)


def predict(llvm_mca: str, loop: Loop, target: Target) -> Prediction:
    """Runs llvm-mca over many passes of a loop."""
    command = [
        llvm_mca,
        "-mtriple=aarch64",
        f"-mcpu={target.core}",
        f"-mattr={MARCH_FEATURES}",
        f"-iterations={ITERATIONS}",
    ]
    report = subprocess.run(
        command, input=loop.assembly + "\n", capture_output=True, text=True, check=True
    ).stdout
    cycles = re.search(r"Total Cycles:\s+(\d+)", report)
    if cycles is None:
        sys.exit(f"neon_mca: {llvm_mca} printed no cycle count for {loop.name} on {target.core}")
    macs_per_cycle = round(loop.macs * ITERATIONS / int(cycles[1]), 1)
    return Prediction(loop.name, target, macs_per_cycle)


def predict_kernel(compiler: str, llvm_mca: str, kernel: Kernel) -> list[Prediction]:
    """Predicts a kernel's loop on its cores; of copies of the loop the slowest one counts."""
    loops = compile_loops(compiler, kernel)
    return [
        min((predict(llvm_mca, loop, target) for loop in loops), key=lambda row: row.macs_per_cycle)
        for target in kernel.targets
    ]


def format_row(row: Prediction) -> str:
    """Returns a line of the table."""
    floor = "-" if row.target.floor is None else f"{row.target.floor:g}"
    verdict = "   UNDER THE FLOOR" if row.is_under else ""
    return f"{row.loop:<16} {row.target.core:<12} {row.macs_per_cycle:>9} {floor:>6}{verdict}"


def main() -> int:
    """Returns 1 when a loop is under its floor."""
    parser = parser_of(__doc__)
    parser.add_argument("--compiler", default="aarch64-linux-gnu-g++")
    arguments = parser.parse_args()
    if shutil.which(arguments.compiler) is None:
        sys.exit(
            f"neon_mca: {arguments.compiler} not found; "
            "install g++-aarch64-linux-gnu or pass --compiler"
        )
    llvm_mca = find_llvm_mca()
    table = [
        row for kernel in KERNELS for row in predict_kernel(arguments.compiler, llvm_mca, kernel)
    ]
    print(
        f"{'loop':<16} {'core':<12} {'MAC/cycle':>9} {'floor':>6}   "
        f"predicted by {Path(llvm_mca).name}"
    )
    for row in table:
        print(format_row(row))
    return 1 if any(row.is_under for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
