"""The tables of single layers: Fine-Grained, tables 2 and 4; Markdown from the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Final

from benchmarks.coexec.tables import METHODS, share_of_gain
from benchmarks.markdown import markdown_table
from benchmarks.records import Record

KINDS: Final = {"linear": "linear", "convolution": "convolutional"}
ABLATION: Final = {
    "finegrained": "as it is",
    "finegrained_plain": "without augmentation",
    "events": "events in place of polling",
}
"""Fine-Grained, table 4."""


def layers_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 2: mean speed-ups of each method and the search."""
    head = ("testbed", "CPU threads", "layers", "number", *METHODS.values(),
            "share of the searched gain")  # fmt: skip
    rows = []
    for place, times in _layer_groups(testbeds):
        ups = {way: _mean_speed_up(times, way) for way in METHODS}
        cells = (f"{up:.2f}x" for up in ups.values())
        share = share_of_gain(ups["finegrained"], ups["search"])
        rows.append((*place, str(len(times)), *cells, share))
    return markdown_table(head, rows)


def ablation_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 4; nothing where it was not measured."""
    head = ("testbed", "CPU threads", "layers", *ABLATION.values())
    rows = [
        (*place, *(f"{_mean_speed_up(times, way):.2f}x" for way in ABLATION))
        for place, times in _layer_groups(testbeds)
        if all(way in us for us in times for way in ABLATION)
    ]
    return markdown_table(head, rows) if rows else ""


def _mean_speed_up(layers: Sequence[Record], way: str) -> float:
    """Over the better single processor, of layers' microseconds."""
    return float(mean(min(us["cpu"], us["gpu"]) / us[way] for us in layers))


def _layer_groups(
    testbeds: Mapping[str, Record],
) -> Iterator[tuple[tuple[str, str, str], list[Record]]]:
    """Testbed, threads and kind, and the microseconds of the layers that were measured there."""
    for testbed, results in testbeds.items():
        groups: dict[tuple[int, str], list[Record]] = {}
        for row in results["layers"]["rows"]:
            groups.setdefault((row["threads"], row["kind"]), []).append(row["us"])
        for (threads, kind), times in sorted(groups.items(), key=lambda group: group[0][0]):
            yield (testbed, str(threads), KINDS[kind]), times
