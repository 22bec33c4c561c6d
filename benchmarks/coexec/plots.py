"""The papers' figures as plots; needs Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.coexec.network_tables import (
    HYBRID,
    TITLES,
    ULAYER_STEPS,
    better_single_ms,
    dimensions_of,
    ms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]
COLOURS: Final = ("#9aa5b1", "#52606d", "#f0a35e", "#7db8d8", "#3a8fbf", "#1b6ca8")
CUT_COLOURS: Final = {"rows": "#1b6ca8", "channels": "#f0a35e", "whole": "#d5dae0"}
CHAIN_COLOURS: Final = ("#1b6ca8", "#f0a35e", "#5a9e6f", "#a45a9e")
NO_CHAIN: Final = "#e4e7eb"


def draw(networks: Mapping[str, Record], folder: Path, stem: str) -> None:
    """Writes ``<stem>_ulayer.svg``, ``<stem>_codl.svg`` and ``<stem>_chains.svg``."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "phonebit", "font.size": 9}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3))
    _ulayer(axes, networks)
    _save(figure, folder / f"{stem}_ulayer.svg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    _dimensions(left, networks)
    _hybrid(right, networks)
    _save(figure, folder / f"{stem}_codl.svg")
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.35 * len(networks)))
    _chains(axes, networks)
    _save(figure, folder / f"{stem}_chains.svg")
    plt.close("all")


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _bars(axes: Axes, names: list[str], series: Mapping[str, list[float]], label: str) -> None:
    """Groups of bars, one colour a series."""
    width = 0.8 / len(series)
    for number, (title, values) in enumerate(series.items()):
        places = [at + (number - (len(series) - 1) / 2) * width for at in range(len(names))]
        colour = COLOURS[number - len(series)]
        axes.bar(places, values, width, color=colour, label=title)
    axes.axhline(1, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(label)
    _legend(axes, columns=min(3, len(series) // 2))
    axes.spines[["top", "right"]].set_visible(False)


def _legend(axes: Axes, columns: int) -> None:
    """Above the plot."""
    axes.legend(
        frameon=False, ncols=columns, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1)
    )


def _ulayer(axes: Axes, networks: Mapping[str, Record]) -> None:
    """Figures 16 and 17: what is below 1 is faster than whole layers on the better processor."""
    shown = {name: of for name, of in networks.items() if set(ULAYER_STEPS) <= set(of["times"])}
    series = {
        title: [ms(of, way) / ms(of, "layer_to_processor") for of in shown.values()]
        for way, title in ULAYER_STEPS.items()
    }
    _bars(axes, [TITLES[name] for name in shown], series, "time over\nlayer to processor")


def _dimensions(axes: Axes, networks: Mapping[str, Record]) -> None:
    """Figure 17: shares of the convolutions."""
    shown = {name: of for name, of in networks.items() if "codl_hybrid" in of["plans"]}
    names = [TITLES[name] for name in shown]
    left = [0.0] * len(names)
    for cut, colour in CUT_COLOURS.items():
        counts = [dimensions_of(of) for of in shown.values()]
        shares = [100 * of[cut] / max(1, sum(of.values())) for of in counts]
        axes.barh(names, shares, left=left, color=colour, label=cut)
        left = [begin + share for begin, share in zip(left, shares, strict=True)]
    axes.set_xlabel("% of the convolutions")
    axes.invert_yaxis()
    _legend(axes, columns=3)
    axes.spines[["top", "right"]].set_visible(False)


def _hybrid(axes: Axes, networks: Mapping[str, Record]) -> None:
    """Figure 18, as speed-ups over the better single processor."""
    shown = {name: of for name, of in networks.items() if set(HYBRID) <= set(of["times"])}
    series = {
        title: [better_single_ms(of) / ms(of, way) for of in shown.values()]
        for way, title in HYBRID.items()
    }
    _bars(axes, [TITLES[name] for name in shown], series, "times as fast as\nthe better processor")
    axes.tick_params(axis="x", labelrotation=20)


def _chains(axes: Axes, networks: Mapping[str, Record]) -> None:
    """Figure 19: layers in order; those of a chain have its colour."""
    shown = {name: of for name, of in networks.items() if "codl" in of["plans"]}
    for place, network in enumerate(shown.values()):
        count = len(network["layers"])
        colours = [NO_CHAIN] * count
        for number, (begin, end) in enumerate(network["plans"]["codl"]["chains"]):
            colours[begin:end] = [CHAIN_COLOURS[number % len(CHAIN_COLOURS)]] * (end - begin)
        axes.barh([place] * count, [0.85] * count, left=list(range(count)), color=colours)
    axes.set_yticks(range(len(shown)), [TITLES[name] for name in shown])
    axes.invert_yaxis()
    axes.set_xlabel("layer")
    axes.spines[["top", "right"]].set_visible(False)
