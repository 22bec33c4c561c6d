#!/usr/bin/env python3
"""Cycles that a network waits for caches on cores that are not at hand, and its counted ones.

Runs the program under qemu-user with a plugin that models the caches of each core. Assumptions:

- least recently used lines go first (a Cortex-A53 chooses by chance); nothing else uses the caches;
- a line that follows one of the last 16 missed lines is prefetched: free from L2, its share of the
  bandwidth from memory;
- any other miss takes the latency of where the line is, over the misses that wait together: 1 on
  cores that begin instructions in order;
- stores never wait; there is no third cache, and no translation of addresses.

    python -m benchmarks.phones.misses --networks quicknet.pbit --layers 56x64x64 14x256x256

A layer (side, channels in, channels out) is a 3x3 convolution alone in a file: its weights stay in
the caches from pass to pass. --command counts another engine in exactly the same way, as of
benchmarks.phones.count. Needs what that needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile

from benchmarks.command_line import parser_of
from benchmarks.layer_shapes import binary_layer, temporary_file
from benchmarks.markdown import markdown_table
from benchmarks.phones.blocks import blocks_of_an_inference, plugin, readable, run_with_plugin
from benchmarks.phones.cores import CACHES, CORES, Caches
from benchmarks.phones.count import OTHER_PROGRAM, PROGRAM, bench_command, command_of
from benchmarks.phones.cycles import Weigher

PLUGIN_SOURCE = Path(__file__).with_name("count_misses.c")
LINE = 64


def waits_of_an_inference(
    command: Callable[[int], list[str]], cpu: str, cores: list[str]
) -> dict[str, list[float]]:
    """Cycles that one pass waits on each core, by function: three passes less one, halved."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(cores))
    for passes, sign in ((3, 0.5), (1, -0.5)):
        for function, row in _waits(command(passes), cpu, cores).items():
            found[function] = [a + sign * b for a, b in zip(found[function], row, strict=True)]
    return found


def _waits(command: list[str], cpu: str, cores: list[str]) -> dict[str, list[float]]:
    shapes = [
        f"cache={_sets(c.l1_kb, c.l1_ways)}/{c.l1_ways}/{_sets(c.l2_kb, c.l2_ways)}/{c.l2_ways}"
        for c in map(CACHES.__getitem__, cores)
    ]
    found = {}
    with NamedTemporaryFile() as counts:
        options = ",".join([str(plugin(PLUGIN_SOURCE)), f"out={counts.name}", *shapes])
        run_with_plugin(options, command, cpu)
        for line in Path(counts.name).read_text().splitlines():
            function, *numbers = line.split()
            kinds = [iter(map(int, numbers))] * 3
            found[function] = [
                _cycles(CACHES[core], *counts)
                for core, counts in zip(cores, zip(*kinds, strict=True), strict=True)
            ]
    return found


def _sets(kilobytes: int, ways: int) -> int:
    return kilobytes * 1024 // LINE // ways


def _cycles(caches: Caches, from_l2: int, from_memory: int, streamed: int) -> float:
    latency = from_l2 * caches.l2_cycles + from_memory * caches.memory_cycles
    return latency / caches.in_flight + streamed * caches.stream_cycles


def main() -> None:
    """Prints a table for each network: counted million cycles and those of waiting, by function."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", type=Path, nargs="*", default=[], help=".pbit files")
    parser.add_argument("--layers", nargs="*", default=[], help="as 56x64x64")
    parser.add_argument("--command", nargs="*", default=[], help=OTHER_PROGRAM)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="phonebit_bench for AArch64")
    parser.add_argument("--cores", nargs="+", choices=CACHES, default=list(CACHES))
    parser.add_argument("--functions", type=int, default=3, help="how many are shown")
    arguments = parser.parse_args()
    emulated: dict[str, list[str]] = defaultdict(list)
    for name in arguments.cores:
        emulated[CORES[name].emulated].append(name)
    weighers = {cpu: Weigher(CORES[name].model for name in emulated[cpu]) for cpu in emulated}
    with ExitStack() as stack:
        commands = {text: command_of(text) for text in arguments.command}
        files = {str(path): path for path in arguments.networks}
        for text in arguments.layers:
            side, channels, filters = map(int, text.split("x"))
            layer = binary_layer(side, channels, filters, kernel=3, pad=1)
            files[text] = stack.enter_context(temporary_file(layer))
        commands |= {text: bench_command(arguments.program, path) for text, path in files.items()}
        for text, command in commands.items():
            print(f"\n{text}; modelled, not measured")
            for cpu, cores in emulated.items():
                blocks = blocks_of_an_inference(command, cpu)
                cycles = weighers[cpu].by_function(blocks)
                waits = waits_of_an_inference(command, cpu, cores)
                _print(cores, cycles, waits, arguments.functions)


def _print(
    cores: list[str], cycles: dict[str, list[float]], waits: dict[str, list[float]], count: int
) -> None:
    names = list(cycles.keys() | waits.keys())
    nothing = [0.0] * (2 + len(cores))
    rows = [
        [number for pair in zip(cycles.get(name, nothing)[2:], waits.get(name, nothing[2:]),
                                strict=True) for number in pair]
        for name in names
    ]  # fmt: skip
    totals = [sum(column) for column in zip(*rows, strict=True)]
    shown = sorted(zip(readable(names), rows, strict=True), key=lambda item: -sum(item[1]))[:count]
    head = ["Mcycles", *(column for core in cores for column in (core, "waits"))]
    cells = [[name[:60], *(f"{number / 1e6:.2f}" for number in row)]
             for name, row in [("all", totals), *shown]]  # fmt: skip
    print(f"\n{markdown_table(head, cells, texts=1)}", flush=True)


if __name__ == "__main__":
    main()
