"""Cycles of a layer on an Arm core, from counts of executed instructions that ship as a table.

`python -m benchmarks.phones.cpu_table` makes the table: it runs layers under emulation, weighs what
they execute with a model of each core, and fits one number for each of TERMS, by kernel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from phonebit.planner.predict.kernels import CHANNEL_BLOCK, CpuFacts, cpu_kernel
from phonebit.planner.predict.layer_shape import LayerShape

TABLE: Final = Path(__file__).with_name("cpu_cycles.json")
TERMS: Final = (
    "layer", "pixels", "gathered", "operations", "positions", "thresholds", "values", "bits",
    "added",
)  # fmt: skip
"""What cycles are proportional to: nothing, output pixels, elements under their windows,
multiply-accumulates with those that fill blocks of channels, outputs times the window's positions,
outputs that are compared with thresholds, outputs of a float epilogue, sign bits that it makes,
tensors that it adds."""


@dataclass(frozen=True)
class CpuWork:
    """A layer on a core.

    Args:
        kernel: Which one runs.
        cycles: None: the table does not have the kernel.
    """

    kernel: str
    cycles: float | None


def cpu_work(layer: LayerShape, core: str) -> CpuWork:
    """The kernel of a layer and its cycles on a core of the table, with all data in its caches."""
    facts = cpu_facts(core)
    name = kernel_name(layer, facts)
    weights = cpu_table()["cycles"].get(name, {}).get(core)
    if weights is None:
        return CpuWork(name, None)
    numbers = zip(weights, terms(layer, facts), strict=True)
    return CpuWork(name, sum(weight * term for weight, term in numbers))


@lru_cache(maxsize=1)
def cpu_table() -> dict[str, Any]:
    """``cores``: what is known of them; ``cycles``: by kernel and core, a number a term."""
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


def cpu_facts(core: str) -> CpuFacts:
    """A core of the table, as kernel selection sees it."""
    known = cpu_table()["cores"][core]
    return CpuFacts(known["isa"], cores=1)


def kernel_name(layer: LayerShape, cpu: CpuFacts) -> str:
    """The kernel of a layer; element-wise ones differ by what they read."""
    name = cpu_kernel(layer, layer.whole, cpu, threads=1).name
    return f"{name}_{layer.input}" if layer.op == "elementwise" else name


def terms(layer: LayerShape, cpu: CpuFacts) -> tuple[float, ...]:
    """How much of each of TERMS a layer has."""
    kernel = cpu_kernel(layer, layer.whole, cpu, threads=1)
    pixels, outputs = layer.out_h * layer.out_w, layer.outputs_of(layer.whole)
    channels = layer.out_c
    if layer.op == "binary_conv2d" and layer.groups == 1:
        channels = -(-channels // CHANNEL_BLOCK) * CHANNEL_BLOCK
    has_epilogue = not layer.thresholds
    return (
        1.0,
        pixels,
        pixels * kernel.window_operations,
        pixels * channels * kernel.window_operations,
        pixels * channels * layer.kernel_h * layer.kernel_w,
        outputs * layer.thresholds,
        outputs * has_epilogue,
        outputs * (has_epilogue and layer.bits),
        outputs * layer.step_tensors,
    )
