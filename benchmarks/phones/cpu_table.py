#!/usr/bin/env python3
"""The table from which `phonebit estimate` takes cycles of layers on Arm cores.

Takes layers of networks, some of each kernel, as files of one layer; counts what they execute under
qemu-user and weighs it with llvm-mca's model of each core (benchmarks.phones.count), then fits a
number for each term of phonebit/estimate/cpu.py by kernel and core.

    python -m benchmarks.phones.cpu_table --networks *.pbit

Prints for each kernel how far the fit is from the counts. Needs what benchmarks.phones.count needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.command_line import parser_of
from benchmarks.layer_shapes import sign_layer, temporary_file
from benchmarks.markdown import markdown_table
from benchmarks.phones.blocks import blocks_of_an_inference
from benchmarks.phones.cores import CORES, Core
from benchmarks.phones.count import PROGRAM, bench_command
from benchmarks.phones.cycles import Weigher
from benchmarks.records import write_results
from phonebit.estimate.cpu import TABLE, TERMS, kernel_name, terms
from phonebit.format.reader import read_contents
from phonebit.planner.predict.kernels import CpuFacts
from phonebit.planner.predict.layer_shape import LayerShape

LAYERS_OF_A_KERNEL = 14
PASSES = 21
"""Of a layer. The program prints times at its end, and how long that takes depends on their digits:
some thousand cycles, as many as a small layer has."""
INPUT_CHECK = "check_finite"
"""The function that looks for NaN in a file's inputs: a layer alone reads what would be another
layer's result."""
SIGNS = ((56, 64), (14, 256), (7, 512), (1, 4096))
"""Sides and channels of what makes the bits that a file's layer reads."""
Weights = list[float]
Numbers = NDArray[np.float64]


def main() -> None:
    """Writes the table and prints how well it fits."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", type=Path, nargs="+", required=True)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="phonebit_bench for AArch64")
    parser.add_argument("--cores", nargs="+", choices=CORES, default=list(CORES))
    parser.add_argument("-o", "--output", type=Path, default=TABLE)
    arguments = parser.parse_args()
    layers = {
        LayerShape.of(contents, index)
        for contents in map(read_contents, arguments.networks)
        for index in range(len(contents.ops))
    } | {sign_layer(side, side, channels) for side, channels in SIGNS}
    variants: dict[tuple[str, CpuFacts], dict[str, Core]] = defaultdict(dict)
    for name in arguments.cores:
        core = CORES[name]
        facts = CpuFacts(core.isa, 1)
        variants[core.emulated, facts][name] = core
    cycles: dict[str, dict[str, Weights]] = defaultdict(dict)
    for (cpu, facts), cores in variants.items():
        for kernel, fits in fitted(arguments.program, cpu, facts, cores, layers).items():
            cycles[kernel] |= fits
    known = {name: {"isa": CORES[name].isa, "model": CORES[name].model} for name in arguments.cores}
    write_results(arguments.output, {"terms": TERMS, "cores": known, "cycles": cycles})


def fitted(
    program: Path, cpu: str, facts: CpuFacts, cores: dict[str, Core], layers: Iterable[LayerShape]
) -> dict[str, dict[str, Weights]]:
    """A number a term, by kernel and core, of the cores that one emulated CPU stands for."""
    weigher = Weigher(core.model for core in cores.values())
    count = lru_cache(maxsize=None)(partial(_cycles, program, cpu, weigher))
    samples: dict[str, list[LayerShape]] = defaultdict(list)
    for layer in sorted(layers, key=_order):
        samples[kernel_name(layer, facts)].append(layer)
    found: dict[str, dict[str, Weights]] = {}
    rows = []
    for kernel in sorted(samples):
        chosen = _spread(samples[kernel])
        counts = np.array([count(layer) for layer in chosen])
        matrix = np.array([terms(layer, facts) for layer in chosen])
        for row, layer in zip(counts, chosen, strict=True):
            if layer.input == "bit":  # a file's first layers make bits of floats
                row -= sum(count(sign_layer(*size)) for size in layer.operand_sizes)
        found[kernel] = {}
        for column, core in enumerate(cores):
            weights = nnls(matrix / counts[:, column, None], np.ones(len(chosen)))[0]
            error = np.abs(matrix @ weights / counts[:, column] - 1)
            rows.append(
                [kernel, core, str(len(chosen)), f"{error.mean():.0%}", f"{error.max():.0%}"]
            )
            found[kernel][core] = [float(f"{weight:.4g}") for weight in weights]
    head = ["kernel", "core", "layers", "mean error", "largest"]
    print(f"\nemulated {cpu}\n\n{markdown_table(head, rows, texts=2)}", flush=True)
    return found


def _order(layer: LayerShape) -> tuple[int, ...]:
    """Of layers of a kernel: by what they write, then by size."""
    epilogue = (layer.thresholds, layer.values, layer.bits, layer.step_tensors)
    return (*map(int, epilogue), layer.operations(layer.whole), layer.in_h, layer.in_c)


def _spread(layers: Sequence[LayerShape]) -> list[LayerShape]:
    """Some of many, evenly."""
    places = np.linspace(0, len(layers) - 1, min(len(layers), LAYERS_OF_A_KERNEL)).round()
    return [layers[int(place)] for place in places]


def _cycles(program: Path, cpu: str, weigher: Weigher, layer: LayerShape) -> Numbers:
    """Of an inference of a file with this layer, by core."""
    with temporary_file(layer) as file:
        blocks = blocks_of_an_inference(bench_command(program, file), cpu, long_passes=PASSES)
    found = weigher.by_function(blocks)
    rows = [row for function, row in found.items() if INPUT_CHECK not in function]
    return np.array([sum(column) for column in zip(*rows, strict=True)][2:])


if __name__ == "__main__":
    main()
