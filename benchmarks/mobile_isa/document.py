"""The page on mobile GPUs, from results/mobile_isa.json: what is chosen, next to the cheapest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.markdown import Columns, filled, records_table
from benchmarks.records import Record, read_results

FILE: Final = "mobile_isa.json"
LAYERS: Final = ("3x3 64@56", "3x3 256@14", "1x1 64-128@56", "dense 25088-4096")
FLOAT_LAYERS: Final = ("u8 3x3 3-64@224", "u8 7x7s2 3-64@224", "f32 3x3s2 3-16@224",
                       "f32 3x3 64@56", "f32 dense 512-1000")  # fmt: skip
IMAGE_KERNEL: Final = "bconv2d_image"
EQUAL_FORMS: Final = ({"VECTOR_WORDS": 4, "COUNT": 0}, {"VECTOR_WORDS": 4, "COUNT": 1})
"""Of a kernel that reads buffers, to compare with images: those have no adders."""
TEXELS: Final = {"mali-g52": 2, "mali-g76": 2, "mali-g57": 4, "mali-g610": 4}
"""Texels per cycle of at most 32 bits; those of 128 bits take twice as long at least (Arm, Mali's
texture unit). Adreno's rate is not published."""
MARKS: Final = {"VECTOR_WORDS": "v{}", "COUNT": "adders", "ACCUMULATOR": "u16"}


def section() -> str:
    """Markdown."""
    document = read_results(FILE)
    rows = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
    tables = {
        "binary": chosen_table(rows, LAYERS),
        "floats": chosen_table(rows, FLOAT_LAYERS),
        "images": images_table(rows),
    }
    page = Path(__file__).with_name("page.md")
    return filled(page, {**document, "FILE": FILE, **tables})


def chosen_table(records: list[Record], layers: Sequence[str]) -> str:
    """What is chosen for some layers."""

    def cheapest(record: Record) -> str:
        found = min((one for one in records if _place(one) == _place(record)), key=_cost)
        return "" if found is record else f"{_short(found)} {_number(found['cycles_per_unit'])}"

    columns: Columns = (
        ("GPU", "{gpu}"),
        ("layer", "{layer}"),
        ("chosen", _short),
        ("instr", lambda one: _number(one["instructions_per_unit"])),
        ("cycles", lambda one: f"{_number(one['cycles_per_unit'])} ({one['bound']})"),
        ("loads", lambda one: _number(one["loads_per_unit"])),
        ("registers", "{registers}"),
        ("occ", "{occupancy}"),
        ("cheapest tried", cheapest),
    )
    chosen = (one for one in records if one["role"] == "chosen" and not one["problem"])
    return records_table((one for one in chosen if one["layer"] in layers), columns, texts=3)


def images_table(records: list[Record]) -> str:
    """The cheapest kernels that read buffers and images, and equal forms of both."""

    def texture(image: Record) -> str:
        rate = TEXELS.get(image["gpu"])
        return _number(2 * image["loads_per_unit"] / rate if rate else None)

    columns: Columns = (
        ("GPU", "{image[gpu]}"),
        ("layer", "{image[layer]}"),
        ("from buffers", lambda pair: _short(pair["tiled"])),
        ("cycles", lambda pair: _number(pair["tiled"]["cycles_per_unit"])),
        ("occ", "{tiled[occupancy]}"),
        ("from images", lambda pair: _short(pair["image"])),
        ("cycles", lambda pair: _number(pair["image"]["cycles_per_unit"])),
        ("occ", "{image[occupancy]}"),
        ("texture cycles", lambda pair: texture(pair["image"])),
        ("images : buffers", lambda pair: _ratio(pair["image"], pair["tiled"])),
        ("2x8 without adders", lambda pair: _ratio(*pair["equal"][0])),
        ("2x8, buffers with adders", lambda pair: _ratio(*pair["equal"][1])),
    )
    pairs = []
    kinds = ("tiled", "image")
    for place in dict.fromkeys(_place(one) for one in records if one["kernel"] == IMAGE_KERNEL):
        own = [one for one in records if _place(one) == place]
        found = {kind: [one for one in own if one["kernel"] == f"bconv2d_{kind}"] for kind in kinds}
        equal = [(_like(found["image"], {}), _like(found["tiled"], form)) for form in EQUAL_FORMS]
        cheapest = {kind: min(those, key=_cost) for kind, those in found.items() if those}
        if len(cheapest) == len(kinds):
            pairs.append(cheapest | {"equal": equal})
    return records_table(pairs, columns, texts=3)


def _like(records: Sequence[Record], form: Mapping[str, int]) -> Record | None:
    """The one with two pixels, eight filters, whole counts of 32 bits, and these parameters."""
    wanted = {"TILE_PIXELS": 2, "TILE_FILTERS": 8, "ACCUMULATOR": 0, **form}
    for record in records:
        values = dict(text.split("=") for text in record["parameters"].split())
        if all(values.get(name) == str(value) for name, value in wanted.items()):
            return record
    return None


def _ratio(record: Record | None, other: Record | None) -> str:
    """Of cycles; "-" where one is missing or does not do."""
    costs = [math.inf if of is None else _cost(of) for of in (record, other)]
    return f"{costs[0] / costs[1]:.2f}" if max(costs) < math.inf else "-"


def _place(record: Record) -> tuple[str, str]:
    return record["gpu"], record["layer"]


def is_bad(record: Record) -> bool:
    """Whether it did not compile, spills, or keeps an array in private memory."""
    return bool(record["problem"] or record["spills"] or record["fills"] or record["scratch"])


def _cost(record: Record) -> float:
    cycles: float | None = record["cycles_per_unit"]
    return math.inf if is_bad(record) or cycles is None else cycles


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _short(record: Record) -> str:
    values = dict(text.split("=") for text in record["parameters"].split())
    tile = "x".join(values[name] for name in ("TILE_PIXELS", "TILE_FILTERS") if name in values)
    marks = [
        mark.format(values[name]) for name, mark in MARKS.items() if values.get(name, "0") != "0"
    ]
    return f"`{' '.join([record['kernel'], tile, *marks]).strip()}`"
