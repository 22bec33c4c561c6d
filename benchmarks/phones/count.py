#!/usr/bin/env python3
"""Executed instructions and modelled cycles of a whole network on cores that are not at hand.

Runs a program for 64-bit Arm under qemu-user, counts every executed block and weighs it with
llvm-mca's model of each core: all loads in L1, no overlap between blocks, one thread. Nothing is
measured.

    cmake -S . -B build/a64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake
    cmake --build build/a64 --target phonebit_bench
    python -m benchmarks.phones.count --network quicknet.pbit --cores a53,a72,n1,kryo

--command counts another program, as another engine's benchmark: its words, with {passes} where the
number of passes stands. --bound weighs the vector operations alone, by what a core begins a cycle:
no schedule of the same operations takes fewer cycles.

Needs qemu-user (not its static form, which has no plugins), a C compiler and llvm 16 or newer.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.command_line import parser_of
from benchmarks.markdown import markdown_table
from benchmarks.phones.blocks import blocks_of_an_inference, readable
from benchmarks.phones.cores import ALIKE, CORES, Core
from benchmarks.phones.cycles import Weigher

PROGRAM = Path("build/a64/runtime/tools/phonebit_bench")
OTHER_PROGRAM = 'another program: "bench --num_runs={passes} model.tflite"'


def bench_command(program: Path, network: Path) -> Callable[[int], list[str]]:
    """The command of some passes of a network."""
    flags = ["--device", "cpu", "--threads", "1", "--warmup", "0", "--json"]
    return lambda passes: [str(program), str(network), *flags, "--runs", str(passes)]


def command_of(text: str) -> Callable[[int], list[str]]:
    """Likewise of another program, by words in which {passes} stands for their number."""
    return lambda passes: shlex.split(text.format(passes=passes))


def main() -> None:
    """Prints a table for each emulated CPU: Mcycles by function, the longest first."""
    parser = parser_of(__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--network", type=Path, help="a .pbit file")
    what.add_argument("--command", help=OTHER_PROGRAM)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="phonebit_bench for AArch64")
    parser.add_argument(
        "--cores", default="a53,a72,n1,kryo", help=f"of {','.join((*CORES, *ALIKE))}"
    )
    parser.add_argument("--functions", type=int, default=20, help="how many are shown")
    parser.add_argument("--bound", action="store_true", help="the vector operations alone")
    arguments = parser.parse_args()
    command = (
        bench_command(arguments.program, arguments.network)
        if arguments.network
        else command_of(arguments.command)
    )
    emulated: dict[str, dict[str, Core]] = defaultdict(dict)
    for name in arguments.cores.split(","):
        core = CORES[ALIKE.get(name, name)]
        emulated[core.emulated][name] = core
    for cpu, cores in emulated.items():
        weigher = Weigher((core.model for core in cores.values()), arguments.bound)
        found = weigher.by_function(blocks_of_an_inference(command, cpu))
        names = dict(zip(found, readable(list(found)), strict=True))
        rows = sorted(((names[key], row) for key, row in found.items()), key=lambda row: -row[1][0])
        _print(cpu, list(cores), rows, arguments.functions)


def _print(cpu: str, cores: list[str], rows: list[tuple[str, list[float]]], count: int) -> None:
    totals = [sum(row[place] for _, row in rows) for place in range(2 + len(cores))]
    shown = [("whole network", totals), *rows[:count]]
    head = ["function", "M instructions", "M vector", *(f"{core} Mcycles" for core in cores)]
    cells = [[name[:100], *(f"{number / 1e6:.2f}" for number in row)] for name, row in shown]
    print(
        f"\nemulated {cpu}; modelled, not measured\n\n{markdown_table(head, cells, texts=1)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
