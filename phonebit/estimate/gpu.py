"""Instructions of kernel launches on mobile GPUs, from compiled machine code that ships as a table.

`python -m benchmarks.phones.gpu_table` makes the table: it compiles the kernels that the tuning
table picks for layers of networks, weighs instructions by how often their loops run, and fits
numbers for ``1``, a tap of the window, and a turn of the innermost loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import Any, Final

from phonebit.planner.predict.kernels import Launch
from phonebit.planner.predict.layer_shape import LayerShape

TABLE: Final = Path(__file__).with_name("gpu_instructions.json")
QUANTITIES: Final = ("cycles", "instructions", "loads")
"""Of a work-item: cycles of the busiest arithmetic unit, for one lane; all instructions; loads."""
WORD_BITS: Final = 32

Parameters = Mapping[str, int]


@dataclass(frozen=True)
class ItemWork:
    """What a work-item executes; see QUANTITIES."""

    cycles: float
    instructions: float
    loads: float


@lru_cache(maxsize=1)
def gpu_table() -> dict[str, Any]:
    """By code a list of rows: kernel, parameters, and three numbers for each of QUANTITIES."""
    table: dict[str, Any] = json.loads(TABLE.read_text())["codes"]
    return table


def item_work(layer: LayerShape, launch: Launch, code: str) -> ItemWork | None:
    """What a work-item of a launch executes; None: the table does not have the kernel.

    Parameters that the table does not have are those of the row most like them.
    """
    parameters = fitted_parameters(layer, dict(launch.choice.parameters))
    rows = [row for row in gpu_table()[code] if row[0] == launch.kernel]
    if not rows:
        return None

    def differences(row: list[Any]) -> int:
        return sum(parameters.get(name) != value for name, value in row[1].items())

    _, known, *numbers = min(rows, key=differences)
    found = trips(layer, launch.kernel, known | {"GROUP_SIZE": launch.group_items})
    values = [
        sum(weight * trip for weight, trip in zip(each, found, strict=True)) for each in numbers
    ]
    return ItemWork(*values)


def fitted_parameters(layer: LayerShape, parameters: Parameters) -> dict[str, int]:
    """Parameters with loads that divide a pixel's words, as the runtime shortens them."""
    values = dict(parameters)
    words = -(-layer.in_c // WORD_BITS)
    for name, unit in (("VECTOR_WORDS", 1), ("GRANULARITY", WORD_BITS)):
        if name in values:
            values[name] = gcd(values[name], unit * words)
    return values


def trips(layer: LayerShape, kernel: str, parameters: Parameters) -> tuple[float, float, float]:
    """1, taps of the window, and passes of the innermost loop of a work-item."""
    window = layer.kernel_h * layer.kernel_w
    window_words = -(-layer.taps // WORD_BITS)
    if kernel in ("elementwise", "pack_thresholds"):
        return 1, 0, 0
    if kernel == "split_planes":  # the loop's constants fold where a pixel has one word
        return 1, 0, window_words > 1
    if kernel == "conv2d_u8_planes":
        return 1, 0, window_words
    if layer.op != "binary_conv2d":
        return 1, window, layer.taps
    words = -(-layer.in_c // layer.groups // WORD_BITS)
    bits = parameters.get("GRANULARITY", WORD_BITS * parameters.get("VECTOR_WORDS", 1))
    vectors = window * words * WORD_BITS / bits
    if kernel in ("bgemv", "bconv2d_split"):
        return (
            1,
            0,
            -(-vectors // (parameters["GROUP_SIZE"] * parameters["TILE_FILTERS"] // WORD_BITS)),
        )
    return 1, window, vectors
