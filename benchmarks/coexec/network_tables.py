"""Tables on whole networks: the three papers' systems end to end; Markdown from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.titles import TITLES

Record = dict[str, Any]
SYSTEMS: Final = {
    "ulayer": "µLayer",
    "codl": "CoDL",
    "finegrained": "Fine-Grained",
    "planned": "phonebit plan",
    "tried": "phonebit plan, auto-selected",
    "finegrained_measured": "phonebit plan --measure",
}
CONTROL: Final = "cpu again"
"""The contestant "cpu" a second time: another network loaded from the same file."""
GUARD: Final = 1.02
"""Planned execution over the better single processor, at most."""
PARTS_OF_NETWORK: Final = ("first third", "second third", "last third")


def networks_of(results: Record) -> dict[str, Record]:
    """The networks that a testbed has run, by name."""
    found = {key.removeprefix("network_"): value for key, value in results.items()
             if key.startswith("network_")}  # fmt: skip
    return {name: found[name] for name in TITLES if name in found}


def ms(network: Record, way: str) -> float:
    """Median milliseconds of an image."""
    return float(network["times"][way]["median_ms"])


def better_single_ms(network: Record) -> float:
    """Of the faster processor alone."""
    return min(ms(network, "cpu"), ms(network, "gpu"))


def speed_up(network: Record, way: str) -> float:
    """Over the better single processor."""
    return better_single_ms(network) / ms(network, way)


def end_to_end_table(networks: Mapping[str, Record]) -> str:
    """Fine-Grained, table 3."""
    head = ("network", "GPU ms", "CPU ms", "layer by layer ms", "speed-up", "end to end ms",
            "speed-up", "over the GPU")  # fmt: skip
    rows = []
    for name, network in _with(networks, "finegrained"):
        alone = network["work"]["finegrained"]["individual_ms"]
        both = ms(network, "finegrained")
        rows.append(
            (
                TITLES[name],
                *(f"{ms(network, side):.2f}" for side in ("gpu", "cpu")),
                f"{alone:.2f}",
                f"{better_single_ms(network) / alone:.2f}x",
                f"{both:.2f}",
                f"**{better_single_ms(network) / both:.2f}x**",
                f"{ms(network, 'gpu') / both:.2f}x",
            )
        )
    return markdown_table(head, rows)


ULAYER_STEPS: Final = {
    "cpu": "CPU",
    "gpu": "GPU",
    "layer_to_processor": "layer to processor",
    "ulayer_channels": "channels",
    "ulayer_types": "+ types",
    "ulayer": "+ branches: µLayer",
}
"""µLayer, figures 16 and 17."""


def ulayer_table(networks: Mapping[str, Record]) -> str:
    """µLayer, figures 16 and 17: latency over that of the layer-to-processor mechanism."""
    rows = []
    for name, network in _with(networks, *ULAYER_STEPS):
        base = ms(network, "layer_to_processor")
        cells = [f"{ms(network, way) / base:.2f}" for way in ULAYER_STEPS]
        rows.append((TITLES[name], f"{base:.2f}", *cells))
    return markdown_table(("network", "layer to processor ms", *ULAYER_STEPS.values()), rows)


HYBRID: Final = {
    "codl_rows": "rows only",
    "codl_channels": "channels only",
    "codl_hybrid": "hybrid",
    "codl": "hybrid with chains",
}


def hybrid_table(networks: Mapping[str, Record]) -> str:
    """CoDL, figure 18, and what chains add."""
    head = ("network", *(f"{title} ms" for title in HYBRID.values()), "hybrid over the better")
    rows = []
    for name, network in _with(networks, *HYBRID):
        better = min(ms(network, "codl_rows"), ms(network, "codl_channels"))
        cells = [f"{ms(network, way):.2f}" for way in HYBRID]
        rows.append((TITLES[name], *cells, f"{better / ms(network, 'codl_hybrid'):.2f}x"))
    return markdown_table(head, rows)


def dimensions_table(networks: Mapping[str, Record]) -> str:
    """CoDL, figure 17: rows / channels / not cut, of the convolutions."""
    rows = []
    for name, network in _with(networks, "codl_hybrid"):
        thirds = network["plans"]["codl_hybrid"]["cuts"]
        every = [sum(of) for of in zip(*thirds, strict=True)]
        rows.append((TITLES[name], *(" / ".join(map(str, of)) for of in (*thirds, every))))
    return markdown_table(("network", *PARTS_OF_NETWORK, "all"), rows)


def chains_table(networks: Mapping[str, Record]) -> str:
    """CoDL, figures 19 and 20: chains, and what sharing costs with and without them."""
    head = ("network", "layers", "in chains", "longest chains", "synchronizations, no chains",
            "chains", "transferred KB, no chains", "chains", "overhead ms, no chains",
            "chains")  # fmt: skip
    rows = []
    for name, network in _with(networks, "codl_hybrid", "codl"):
        lengths = sorted((end - begin for begin, end in network["plans"]["codl"]["chains"]),
                         reverse=True)  # fmt: skip
        work = [network["work"][way] for way in ("codl_hybrid", "codl")]
        count = network["layers"]
        rows.append(
            (
                TITLES[name],
                str(count),
                f"{sum(lengths) / count:.0%}",
                ", ".join(map(str, lengths[:3])) or "none",
                *(str(of["meetings"]) for of in work),
                *(f"{of['bytes'] / 1024:.0f}" for of in work),
                *(f"{overhead_ms(network, way):.2f}" for way in ("codl_hybrid", "codl")),
            )
        )
    return markdown_table(head, rows)


def overhead_ms(network: Record, way: str) -> float:
    """What is left of the end-to-end time when both processors' computation is subtracted."""
    return ms(network, way) - float(network["work"][way]["work_ms"])


def balance_table(testbeds: Mapping[str, Record]) -> str:
    """Each network on each balance: speed-ups over the better single processor."""
    every = [network for of in testbeds.values() for network in networks_of(of).values()]
    ways = [way for way in SYSTEMS if any(way in network["times"] for network in every)]
    titles = (SYSTEMS[way] for way in ways)
    head = ("testbed", "CPU : GPU", "network", "CPU ms", "GPU ms", *titles)
    rows = []
    for testbed, results in testbeds.items():
        ratio = f"{results['testbed']['cpu_over_gpu']:.2f}" if "testbed" in results else "-"
        for name, network in networks_of(results).items():
            sides = (f"{ms(network, side):.2f}" for side in ("cpu", "gpu"))
            ups = (
                f"{speed_up(network, way):.2f}x" if way in network["times"] else "-" for way in ways
            )
            rows.append((testbed, ratio, TITLES[name], *sides, *ups))
    return markdown_table(head, rows, texts=3)


def guard_text(testbeds: Mapping[str, Record]) -> str:
    """Whether guarded plans are ever much slower than the better single processor."""
    sentences = [
        "A guarded plan must gain more than the predictor's typical error (a measured one: 2 %), "
        "otherwise everything stays on one processor; the papers' systems take what is predicted "
        "to be faster. An auto-selected plan runs only if it was the fastest during warm-up."
    ]
    for is_tried, plans in (
        (False, "guarded plans without auto-selection"),
        (True, "auto-selected plans"),
    ):
        ratios = {
            f"{TITLES[name]} on {testbed} by {SYSTEMS[way]}": 1 / speed_up(network, way)
            for testbed, results in testbeds.items()
            for name, network in networks_of(results).items()
            for way in SYSTEMS
            if way in network["times"]
            and network["plans"][way]["is_guarded"]
            and network["plans"][way].get("is_tried", False) == is_tried
        }
        slower = [f"{what} ({ratio - 1:.1%})" for what, ratio in ratios.items() if ratio > GUARD]
        than = "more than 2 % slower than the better single processor"
        if slower:
            found = f"{len(slower)} of {len(ratios)} {plans} are {than}: {'; '.join(slower)}."
        elif ratios:
            found = f"None of {len(ratios)} {plans} is {than}."
        else:
            continue
        sentences.append(found)
    return " ".join([*sentences, *control_text(testbeds)])


def control_text(testbeds: Mapping[str, Record]) -> list[str]:
    """How far two equal contestants are from each other; nothing where there was no control."""
    ratios = {
        f"{TITLES[name]} on {testbed}": ms(network, CONTROL) / ms(network, "cpu")
        for testbed, results in testbeds.items()
        for name, network in networks_of(results).items()
        if CONTROL in network["times"]
    }
    if not ratios:
        return []
    apart = [abs(ratio - 1) for ratio in ratios.values()]
    beyond = [f"{what} ({ratio - 1:+.1%})" for what, ratio in ratios.items() if ratio > GUARD]
    text = f"""As a control, the CPU alone was measured twice: its second network was
{median(apart):.1%} off the first one in the median of {len(ratios)} cases, {max(apart):.1%} at
most, and more than 2 % slower in {len(beyond)} of them"""
    return [f"{text}: {'; '.join(beyond)}." if beyond else f"{text}."]


def _with(networks: Mapping[str, Record], *ways: str) -> Sequence[tuple[str, Record]]:
    """The networks that ran in all these ways."""
    return [
        (name, network)
        for name, network in networks.items()
        if all(way in network["times"] for way in ways)
    ]
