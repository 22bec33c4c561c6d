"""The tables of CoDL's figures and of its predictor's tables 3 and 4; the searched networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.coexec.paper_networks import TITLES
from benchmarks.coexec.tables import (
    METHODS,
    better_single_ms,
    ms,
    networks_of,
    rates_added,
    speed_up,
)
from benchmarks.markdown_table import markdown_table

Record = dict[str, Any]


def times_table(results: Record) -> str:
    """CoDL, figures 15 and 18: speed-ups, the bound c g / (c + g), and one dimension only."""
    head = ("network", "CPU ms", "GPU ms", "CoDL ms", "speed-up", "upper bound", "without chains",
            "rows only", "channels only")  # fmt: skip
    rows = [
        (
            TITLES[name],
            *(f"{ms(network, way):.2f}" for way in ("cpu", "gpu", "codl")),
            f"**{speed_up(network, 'codl'):.2f}x**",
            f"{rates_added(network):.2f}x",
            *(f"{speed_up(network, way):.2f}x" for way in ("without_chains", "rows", "channels")),
        )
        for name, network in networks_of(results, "codl").items()
    ]
    return markdown_table(head, rows)


def plans_table(results: Record) -> str:
    """CoDL, figures 17 and 19 to 22: cuts, chains, exchanges, energy and memory."""
    head = ("network", "cut by rows", "by channels", "in chains", "longest", "whole",
            "exchange ms", "without chains", "energy mJ: CPU, GPU, CoDL",
            "activations MB: CPU, GPU, CoDL")  # fmt: skip
    rows = []
    for name, network in networks_of(results, "codl").items():
        plan, unchained = (network["plans"][way] for way in ("codl", "without_chains"))
        layers = plan["layers"]
        whole = sum(layers.get(side, 0) for side in ("cpu", "gpu"))
        sides = ("cpu", "gpu", "codl")
        rows.append(
            (
                TITLES[name],
                *(str(layers.get(kind, 0)) for kind in ("rows", "channels", "chain")),
                str(max(plan["chains"], default=0)),
                str(whole),
                *(f"{of['exchange_ms']:.2f}" for of in (plan, unchained)),
                ", ".join(energy_text(network["energy"][side]) for side in sides),
                ", ".join(f"{network['arena_bytes'][side] / 1e6:.1f}" for side in sides),
            )
        )
    return markdown_table(head, rows)


def energy_text(of: Mapping[str, Any]) -> str:
    """Millijoules of an image, where the machine has a source for them."""
    return f"{of['energy_mj']:.2f}" if "energy_mj" in of else "not measured"


def accuracy_table(testbeds: Mapping[str, Record]) -> str:
    """CoDL, table 3: convolutions predicted within 10 %, and the sizes of the models."""
    head = ("testbed", "predictor", "GPU within ±10 %", "CPU within ±10 %", "models, bytes")
    rows = []
    for testbed, results in testbeds.items():
        found = results["predictors"]
        for method, size in found.get("model_bytes", {}).items():
            shares = (_within(found["groups"], side, method) for side in ("gpu", "cpu"))
            rows.append((testbed, METHODS[method], *shares, f"{size:,}"))
    return markdown_table(head, rows, texts=2)


def _within(groups: list[Record], processor: str, method: str) -> str:
    """Of the parts of convolutions, linear ones among them."""
    own = [
        (group["parts"], group["errors"][method]["within_10"])
        for group in groups
        if group["processor"].startswith(processor)
        and group["layers"] != "others"
        and method in group["errors"]
    ]
    parts = sum(count for count, _ in own)
    return f"{sum(count * share for count, share in own) / parts:.1%}" if parts else "-"


def implementations_table(testbeds: Mapping[str, Record]) -> str:
    """CoDL, table 4: its predictor by kernel of convolutions."""
    head = ("testbed", "processor", "kernel", "parts", "MAPE", "within ±10 %")
    rows = [
        (
            testbed,
            row["processor"],
            f"`{row['kernel']}`",
            str(row["parts"]),
            f"{row['mape']:.1%}",
            f"{row['within_10']:.1%}",
        )
        for testbed, results in testbeds.items()
        for row in results["predictors"].get("implementations", [])
    ]
    return markdown_table(head, rows, texts=3)


def search_table(results: Record) -> str:
    """Whole networks: what the planner reaches of what searching them reaches."""
    head = ("network", "CPU ms", "GPU ms", "searched ms", "speed-up", "Fine-Grained",
            "share of the searched", "upper bound", "plans tried")  # fmt: skip
    names = {"vgg_small": "VGG-small", **TITLES}
    found = {name: results[f"search_{name}"] for name in names if f"search_{name}" in results}
    rows = []
    for name, network in found.items():
        searched, planned = (ms(network, way) for way in ("search", "finegrained"))
        rows.append(
            (
                names[name],
                *(f"{ms(network, side):.2f}" for side in ("cpu", "gpu")),
                f"{searched:.2f}",
                f"**{better_single_ms(network) / searched:.2f}x**",
                f"{better_single_ms(network) / planned:.2f}x",
                f"{searched / planned:.1%}",
                f"{rates_added(network):.2f}x",
                str(network["plans_tried"]),
            )
        )
    return markdown_table(head, rows)
