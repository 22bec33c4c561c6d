#!/usr/bin/env python3
"""The table from which `phonebit estimate` takes instructions of OpenCL kernels on mobile GPUs.

For each GPU of phonebit/estimate/phones.toml: the kernels that the tuning table picks for layers of
networks are compiled by Mesa (benchmarks/mobile_isa), instructions are weighted by how often their
loops run, and numbers are fitted for the terms of phonebit/estimate/gpu.py.

    benchmarks/mobile_isa/setup.sh ~/mobile_isa
    python -m benchmarks.phones.gpu_table --isa ~/mobile_isa --networks *.pbit

Prints for each kernel how far the fit is from the machine code. Nothing is executed.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from scipy.optimize import nnls

from benchmarks.command_line import parser_of
from benchmarks.markdown import markdown_table
from benchmarks.mobile_isa.compiler import GPUS, Gpu, compile_programs, mesa_version
from benchmarks.mobile_isa.judge import executed
from benchmarks.mobile_isa.programs import programs
from benchmarks.mobile_isa.work import work
from benchmarks.records import write_results
from phonebit.devices.environment import commit
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.devices.kernel_presets import Kernels
from phonebit.estimate.gpu import QUANTITIES, TABLE, trips
from phonebit.estimate.phones import known_phones
from phonebit.format.reader import read_contents
from phonebit.planner.predict.layer_shape import LayerShape

COMPILED_FOR = {"adreno6xx": "adreno-630", "adreno7xx": "adreno-740",
                "valhall": "mali-g610"}  # fmt: skip
"""The GPU of Mesa's that stands for a code."""
STATIC_TRIPS: dict[str, tuple[int, ...]] = {
    "split_planes": (4, 8), "elementwise": (), "pack_thresholds": (32,),
}  # fmt: skip
"""Kernels that work.py does not describe: trips of those loops that a compiler left, outermost
first."""

Sample = tuple[tuple[float, ...], list[float]]


def main() -> None:
    """Writes the table and prints how well it fits."""
    parser = parser_of(__doc__)
    parser.add_argument("--isa", type=Path, required=True, help="folder given to setup.sh")
    parser.add_argument("--networks", type=Path, nargs="+", required=True)
    parser.add_argument("-o", "--output", type=Path, default=TABLE)
    arguments = parser.parse_args()
    layers = {
        layer
        for contents in map(read_contents, arguments.networks)
        for index in range(len(contents.ops))
        for layer in _variants(LayerShape.of(contents, index))
    }
    codes = {
        code: fitted_rows(arguments.isa, GPUS[name], sorted(set(_cases(code, layers)), key=str))
        for code, name in COMPILED_FOR.items()
    }
    facts = {
        "compiler": f"Mesa {mesa_version(arguments.isa)}", "executed": False, "commit": commit(),
        "networks": sorted(path.stem for path in arguments.networks),
        "compiled_for": COMPILED_FOR, "quantities": QUANTITIES,
    }  # fmt: skip
    write_results(arguments.output, facts | {"codes": codes})


def _variants(layer: LayerShape) -> Iterable[LayerShape]:
    """A layer, and windows and channels like it, so that there is something to fit."""
    yield layer
    if layer.family == "conv2d_u8":
        out_h, out_w = (-(-layer.in_h // layer.stride_h), -(-layer.in_w // layer.stride_w))
        for side in (7, 5):
            pad = side // 2
            square = replace(layer, kernel_h=side, kernel_w=side, out_h=out_h, out_w=out_w)
            yield replace(square, pad_top=pad, pad_left=pad)


def _cases(code: str, layers: Iterable[LayerShape]) -> Iterable[tuple[LayerShape, KernelChoice]]:
    """What the phones of a code take for layers, of the usual kernels and the paper's."""
    gpus = {phone.gpu for phone in known_phones().values() if phone.gpu is not None}
    for gpu, kernels in itertools.product(gpus, get_args(Kernels)):
        if gpu.code == code:
            facts = gpu.facts(kernels)
            for layer in layers:
                yield layer, facts.launches(layer, layer.whole)[0].choice


def fitted_rows(isa: Path, gpu: Gpu, cases: Iterable[tuple[LayerShape, KernelChoice]]) -> list[Any]:
    """Rows of the table for one GPU."""
    described = [
        (layer, program)
        for layer, choice in cases
        for program in programs(layer, choice)
        if program.kernel in STATIC_TRIPS or work(program.kernel, program.defines)
    ]
    results = compile_programs(isa, gpu, [program.text for _, program in described])
    samples: dict[tuple[str, tuple[tuple[str, int], ...]], list[Sample]] = defaultdict(list)
    unknown: dict[str, int] = defaultdict(int)
    for (layer, program), result in zip(described, results, strict=True):
        kernel, parameters = program.kernel, program.parameters
        code = None if isinstance(result, str) else result
        found = executed(gpu, program, code, STATIC_TRIPS.get(kernel, ()))
        if found is None:
            unknown[kernel] += 1
        else:
            numbers = [found[quantity] for quantity in QUANTITIES]
            sample = trips(layer, kernel, parameters), numbers
            samples[kernel, tuple(parameters.items())].append(sample)
    rows, errors = [], []
    for (kernel, fixed), own in sorted(samples.items()):
        matrix = np.array([sample[0] for sample in own])
        wanted = np.array([sample[1] for sample in own]) + 1e-9
        weights = [nnls(matrix / each[:, None], np.ones(len(own)))[0] for each in wanted.T]
        error = np.abs(matrix @ weights[0] / wanted[:, 0] - 1)
        named = {name: value for name, value in fixed if name != "GROUP_SIZE"}
        rows.append([kernel, named, *([float(f"{n:.4g}") for n in each] for each in weights)])
        text = " ".join(f"{name}={value}" for name, value in named.items())
        errors.append([kernel, text, str(len(own)), f"{error.mean():.0%}", f"{error.max():.0%}"])
    head = ["kernel", "parameters", "layers", "mean error", "largest"]
    print(f"\n{gpu.name}; without trip counts: {dict(unknown)}\n", flush=True)
    print(markdown_table(head, errors, texts=2), flush=True)
    return rows


if __name__ == "__main__":
    main()
