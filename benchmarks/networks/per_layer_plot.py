"""Figure 5 as a plot: how much faster than float each layer is (needs Matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figures import save, subplots
from benchmarks.networks.document import KINDS, baseline, float_engines, float_title, medians
from benchmarks.networks.figure_layers import LAYERS
from benchmarks.records import IMAGES, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = {"fused": "#1b6ca8", "unfused": "#f0a35e"}
BAR: Final = 0.38
"""Width of a bar; two stand beside each other."""


def plots() -> None:
    """Draws figure 5 into docs/images."""
    for kind in KINDS:
        draw(read_results(f"per_layer_{kind}.json"), IMAGES / f"per_layer_{kind}.svg")


def draw(document: dict[str, Any], path: Path) -> None:
    """Writes the plot of a results file of ``per_layer.py``.

    One panel over the fastest float engine and, where that is a peer, one over PhoneBit's own.
    """
    bases = list(dict.fromkeys((baseline(document), float_engines(document)[0])))
    figure, panels = subplots(len(bases), 1, 8, 3.1 * len(bases), sharex=True)
    for panel, base in zip(panels[:, 0], bases, strict=True):
        _panel(panel, document, base)
    panels[0, 0].legend(loc="upper left", frameon=False, ncols=2)
    figure.tight_layout()
    save(figure, path)


def _panel(axes: Axes, document: dict[str, Any], base: str) -> None:
    """Bars on a logarithmic axis stand on 1x: what is slower than float hangs below it."""
    reference = medians(document, base)
    every: list[float] = []
    for number, (engine, colour) in enumerate(COLOURS.items()):
        times = medians(document, engine)
        factors = [reference[layer] / times[layer] for layer in LAYERS]
        places = [index + (number - 0.5) * BAR for index in range(len(LAYERS))]
        heights = [factor - 1 for factor in factors]
        bars = axes.bar(places, heights, BAR, bottom=1, color=colour, label=engine)
        axes.bar_label(bars, [_factor_text(factor) for factor in factors], padding=2, fontsize=7)
        every += factors
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylim(min(0.5, min(every) / 2), max(every) * 3)
    axes.set_xticks(range(len(LAYERS)), LAYERS)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter("{x:g}x")
    axes.set_ylabel(f"times as fast as\n{float_title(document, base)}")
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _factor_text(factor: float) -> str:
    """Two digits that count."""
    return f"{float(f'{factor:.2g}'):g}"
