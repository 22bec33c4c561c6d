"""Throughput against batch size, a panel for each network. Needs Matplotlib."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.peers.gpu.document import FILE, PLOT
from benchmarks.records import IMAGES, read_results
from benchmarks.titles import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: Final = {
    "phonebit": ("#1b6ca8", "-", "o"),
    "phonebit_f16": ("#1b6ca8", "--", "s"),
    "ncnn": ("#d1495b", "-", "^"),
    "litert": ("#edae49", "-", "v"),
    "torch": ("#66a182", "-", "D"),
}
"""Colour, line and marker of each contender."""
COLUMNS: Final = 3


def plots() -> None:
    """Draws throughput against batch size into docs/images."""
    draw(read_results(FILE), IMAGES / PLOT)


def draw(document: dict[str, Any], path: Path) -> None:
    """Writes the plot of a results file of ``compare.py``; equal input draws equal files."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "phonebit", "font.size": 9}
    from matplotlib import pyplot as plt

    networks = document["networks"]
    lines = -(-len(networks) // COLUMNS)
    columns = min(COLUMNS, len(networks))
    size = (3.2 * columns, 2.7 * lines + 0.5)
    figure, panels = plt.subplots(lines, columns, figsize=size, squeeze=False)
    for panel, network in zip(panels.flat, networks, strict=False):
        _panel(panel, network)
    for panel in panels.flat[len(networks) :]:
        panel.set_axis_off()
    for line in panels:
        line[0].set_ylabel("pictures a second")
    found = {
        label: handle
        for panel in panels.flat
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(found.values(), found.keys(), loc="lower center", frameon=False, ncols=3)
    figure.tight_layout(rect=(0, 0.5 / size[1], 1, 1))
    _save(figure, path)
    plt.close(figure)


def _panel(axes: Axes, network: dict[str, Any]) -> None:
    batches = sorted({row["batch"] for entry in network["rows"] for row in entry["batches"]})
    for entry in network["rows"]:
        rows = entry["batches"]
        if not rows:
            continue
        colour, line, marker = STYLES[entry["key"]]
        axes.plot(
            [row["batch"] for row in rows],
            [1e3 * row["batch"] / row["median_ms"] for row in rows],
            *(line,),
            color=colour,
            marker=marker,
            markersize=3.5,
            label=entry["title"],
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.set_xlabel("batch")
    axes.set_title(TITLES[network["name"]], fontsize=10)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    """Writes a small SVG: tenths of a point, a line an element."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    path.write_text(re.sub(r"<[^>]+>", lambda tag: _shorter(tag[0]), file.getvalue()))


def _shorter(tag: str) -> str:
    rounded = re.sub(r"\d+\.\d\d+", lambda number: f"{float(number[0]):.1f}", tag)
    return re.sub(r"\s*\n\s*", " ", rounded)
