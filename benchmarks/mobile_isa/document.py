"""The page on mobile GPUs, from results/mobile_isa.json: what is chosen, beside the cheapest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.records import read_results

FILE: Final = "mobile_isa.json"
LAYERS: Final = ("3x3 64@56", "3x3 256@14", "1x1 64-128@56", "dense 25088-4096")
FLOAT_LAYERS: Final = ("u8 3x3 3-64@224", "u8 7x7s2 3-64@224", "f32 3x3s2 3-16@224",
                       "f32 3x3 64@56", "f32 dense 512-1000")  # fmt: skip
HEAD: Final = ("GPU", "layer", "chosen", "instr", "cycles", "loads", "registers", "occ",
               "cheapest tried")  # fmt: skip
IMAGE_LAYERS: Final = ("3x3 256@14", "1x1 256-512@14")
IMAGE_HEAD: Final = ("GPU", "layer", "from buffers", "cycles", "occ", "from images", "cycles",
                     "occ", "texture cycles")  # fmt: skip
TEXELS: Final = {"mali-g52": 2, "mali-g76": 2, "mali-g57": 4, "mali-g610": 4}
"""Texels a cycle of at most 32 bits; those of 128 bits take twice as long at least (Arm, Mali's
texture unit). Adreno's rate is not published."""
MARKS: Final = {"VECTOR_WORDS": "v{}", "COUNT": "adders", "ACCUMULATOR": "u16"}

Record = dict[str, Any]


def section() -> str:
    """Markdown."""
    document = read_results(FILE)
    columns = document["columns"]
    records = [dict(zip(columns, row, strict=True)) for row in document["rows"]]
    rows, float_rows = (_chosen_rows(records, layers) for layers in (LAYERS, FLOAT_LAYERS))
    older = document.get("older", "")
    return f"""Machine code of the OpenCL kernels by Mesa's Adreno and Mali compilers.
Nothing here was executed or timed. `python -m benchmarks.mobile_isa.mobile_isa`;
`benchmarks/mobile_isa/README.md` explains the columns and their limits.

Compiled by {document["compiler"]}. Instructions (Bifrost: tuples), cycles of the busiest arithmetic
unit (Adreno: issue slots) and loads for 32 binary MACs. All rows:
`benchmarks/results/{FILE}`.{older}

{markdown_table(HEAD, rows, texts=3)}

## First layers and float layers

The same for a multiply-accumulate of a layer that reads pixels of 8 bits or floats. What splits
pixels into bit-planes before `conv2d_u8_planes` is not among its numbers.
A dense layer's time is the bytes of its weights: its kernel is chosen for the number of groups that
read them, and most of their lanes have no sum.

{markdown_table(HEAD, float_rows, texts=3)}

## Images

`bconv2d_image` reads map and weights as texels of 128 bits through the texture unit. The cheapest
tile of either kind, without the copy to the image; *texture cycles*: its fetches at Mali's rates.

{markdown_table(IMAGE_HEAD, _image_rows(records), texts=3)}
"""


def _chosen_rows(records: list[Record], layers: Sequence[str]) -> list[list[str]]:
    """What is chosen for some layers."""
    return [
        _cells(record, [other for other in records if _place(other) == _place(record)])
        for record in records
        if record["role"] == "chosen" and record["layer"] in layers and not record["problem"]
    ]


def _image_rows(records: list[Record]) -> list[list[str]]:
    """The cheapest kernel that reads buffers beside the cheapest that reads images."""
    rows = []
    for place in dict.fromkeys(map(_place, records)):
        gpu, layer = place
        if layer not in IMAGE_LAYERS:
            continue
        own = [record for record in records if _place(record) == place]
        buffer, image = (
            min((record for record in own if record["kernel"] == kernel), key=_cost)
            for kernel in ("bconv2d_tiled", "bconv2d_image")
        )
        cells = [
            cell
            for record in (buffer, image)
            for cell in (
                f"`{_short(record)}`",
                _number(record["cycles_per_unit"]),
                str(record["occupancy"]),
            )
        ]
        texture = 2 * image["loads_per_unit"] / TEXELS[gpu] if gpu in TEXELS else None
        rows.append([*place, *cells, _number(texture)])
    return rows


def _place(record: Record) -> tuple[str, str]:
    return record["gpu"], record["layer"]


def _cells(record: Record, others: list[Record]) -> list[str]:
    """A row; the cheapest neither spills nor uses scratch memory."""
    cheapest = min(others, key=_cost)
    text = f"`{_short(cheapest)}` {_number(cheapest['cycles_per_unit'])}"
    return [
        *_place(record),
        f"`{_short(record)}`",
        _number(record["instructions_per_unit"]),
        f"{_number(record['cycles_per_unit'])} ({record['bound']})",
        _number(record["loads_per_unit"]),
        str(record["registers"]),
        str(record["occupancy"]),
        "" if cheapest is record else text,
    ]


def _cost(record: Record) -> float:
    is_bad = record["problem"] or record["spills"] or record["fills"] or record["scratch"]
    return math.inf if is_bad or record["cycles_per_unit"] is None else record["cycles_per_unit"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _short(record: Record) -> str:
    values = dict(text.split("=") for text in record["parameters"].split())
    tile = "x".join(values[name] for name in ("TILE_PIXELS", "TILE_FILTERS") if name in values)
    marks = [
        mark.format(values[name]) for name, mark in MARKS.items() if values.get(name, "0") != "0"
    ]
    return " ".join([record["kernel"], tile, *marks]).strip()
