"""Tables on single layers: meetings, predictors, cuts; Markdown from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any, Final

from benchmarks.markdown_table import markdown_table

Record = dict[str, Any]
KINDS: Final = {"linear": "linear", "convolution": "convolutional"}
METHODS: Final = {
    "finegrained": "Fine-Grained",
    "codl": "CoDL",
    "ulayer": "µLayer",
    "search": "search",
}
ABLATION: Final = {
    "finegrained": "as it is",
    "finegrained_plain": "without augmentation",
    "events": "events instead of polling",
}
"""Fine-Grained, table 4."""
ALONE: Final = "GPU alone"
"""Beside the ways to meet."""


def testbeds_table(testbeds: Mapping[str, Record]) -> str:
    """The divisions of the machines, and how fast either side is."""
    head = ("testbed", "GPU cores", "CPU cores", "GPU GMAC/s", "CPU GMAC/s", "CPU : GPU",
            "GPU slower beside CPU", "CPU slower beside GPU")  # fmt: skip
    rows = []
    for name, results in testbeds.items():
        facts = results["testbed"]
        slowed = facts["slower_together"]
        rows.append(
            (
                name,
                str(len(facts["gpu_cores"])),
                f"{len(facts['cpu_cores'])}, {facts['isa']}",
                f"{facts['gpu_gmacs']:.0f}",
                f"{facts['cpu_gmacs']:.0f}",
                f"{facts['cpu_over_gpu']:.2f}",
                f"{slowed['gpu']:.2f}x",
                f"{slowed['cpu']:.2f}x",
            )
        )
    return markdown_table(head, rows)


def sync_table(result: Record) -> str:
    """Microseconds of a meeting, by bytes of the map that is handed over."""
    ways = list(dict.fromkeys(way for size in result["bytes"].values() for way in size))
    rows = [
        (f"{int(size) // 1024} KB", *(_us(of_size.get(way)) for way in ways))
        for size, of_size in result["bytes"].items()
    ]
    return markdown_table(("map", *ways), rows)


def _us(spread: Mapping[str, float] | None) -> str:
    return "-" if spread is None else f"{spread['median_us']:.1f}"


def speed_up(row: Record, way: str) -> float:
    """Over the better single processor."""
    us = row["us"]
    return float(min(us["cpu"], us["gpu"]) / us[way])


def layers_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 2: mean speed-ups of each method beside the search's."""
    head = ("testbed", "CPU threads", "layers", "number",
            *(f"{title}" for title in METHODS.values()), "share of the searched")  # fmt: skip
    rows = []
    for name, threads, kind, group in _groups(testbeds):
        ups = {way: mean(speed_up(row, way) for row in group) for way in METHODS}
        cells = [f"{ups[way]:.2f}x" for way in METHODS]
        share = ups["finegrained"] / ups["search"]
        rows.append((name, str(threads), KINDS[kind], str(len(group)), *cells, f"{share:.1%}"))
    return markdown_table(head, rows)


def ablation_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 4."""
    head = ("testbed", "CPU threads", "layers", *ABLATION.values())
    rows = []
    for name, threads, kind, group in _groups(testbeds):
        cells = [f"{mean(speed_up(row, way) for row in group):.2f}x" for way in ABLATION]
        rows.append((name, str(threads), KINDS[kind], *cells))
    return markdown_table(head, rows)


def _groups(
    testbeds: Mapping[str, Record],
) -> Iterable[tuple[str, int, str, Sequence[Record]]]:
    """Testbed, threads, kind, and the measured layers."""
    for name, results in testbeds.items():
        rows = results["layers"]["rows"]
        for threads in sorted({row["threads"] for row in rows}):
            for kind in KINDS:
                group = [row for row in rows if row["threads"] == threads and row["kind"] == kind]
                if group:
                    yield name, threads, kind, group
