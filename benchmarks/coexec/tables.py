"""The tables of the co-execution results; Markdown from the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean, mean, median
from typing import Final

from benchmarks.coexec.paper_networks import SEARCHED
from benchmarks.markdown import Columns, markdown_table, records_table
from benchmarks.records import Record

PAPERS: Final = {"ulayer": "µLayer", "codl": "CoDL", "finegrained": "Fine-Grained"}
METHODS: Final = dict(reversed(PAPERS.items())) | {"search": "search"}
PREDICTORS: Final = PAPERS | {
    "finegrained_plain": "Fine-Grained, no augmentation",
    "measured_again": "measured again",
}
MEASURED: Final = "planned_measured"
SYSTEMS: Final = {
    "layer_to_processor": "layer to processor",
    **PAPERS,
    "planned": "phonebit plan",
    "tried": "phonebit plan, auto-selected",
    MEASURED: "phonebit plan --measure",
}
CONTROL: Final = "cpu again"
"""The candidate "cpu" a second time: another network loaded from the same file."""
ALONE: Final = "GPU alone"
"""Besides the ways to synchronize."""
MIN_NETWORKS: Final = 3
"""Of a testbed, for a mean of their gains."""
GUARD: Final = 1.02
"""Planned execution over the better single processor, at most."""


def networks_of(results: Record, experiment: str = "network") -> dict[str, Record]:
    """The networks that a testbed has run, by name, with their titles and what is derived.

    These are the milliseconds of the better single processor, and the speed-up of two processors
    whose rates on the whole network add up: c g / (c + g).
    """
    found = {}
    for name, title in SEARCHED.items():
        if (key := f"{experiment}_{name}") in results:
            network = {"title": title, **results[key]}
            sides = ms(network, "cpu"), ms(network, "gpu")
            rates = 1 / sides[0] + 1 / sides[1]
            found[name] = network | {"single_ms": min(sides), "rates_added": min(sides) * rates}
    return found


def ms(network: Record, way: str) -> float:
    """Median milliseconds of an image."""
    return float(network["times"][way]["median_ms"])


def speed_up(network: Record, way: str) -> float:
    """Over the better single processor."""
    return float(network["single_ms"]) / ms(network, way)


def ms_of(way: str) -> str:
    """A cell with a candidate's milliseconds."""
    return f"{{times[{way}][median_ms]:.2f}}"


def speed_up_of(way: str, mark: str = "") -> Callable[[Record], str]:
    """A cell with a candidate's speed-up, if it took part."""

    def cell(network: Record) -> str:
        is_there = way in network["times"]
        return f"{mark}{speed_up(network, way):.2f}x{mark}" if is_there else "-"

    return cell


def layers_cut(network: Record) -> float:
    """Speed-up of each layer cut by itself, with launches and synchronizations; 0: unknown.

    By times in planning. It is no bound: chains synchronize less.
    """
    plan = network["plans"].get(MEASURED, {})
    known = "attainable_ms" in plan
    return plan["single_predicted_ms"] / plan["attainable_ms"] if known else 0.0


NAME: Final = ("network", "{title}")
CPU, GPU = ("CPU ms", ms_of("cpu")), ("GPU ms", ms_of("gpu"))
TESTBEDS: Final[Columns] = (
    ("testbed", "{name}"),
    ("GPU cores", lambda facts: str(len(facts["gpu_cores"]))),
    ("CPU cores", lambda facts: f"{len(facts['cpu_cores'])}, {facts['isa']}"),
    ("GPU GMAC/s", "{gpu_gmacs:.0f}"),
    ("CPU GMAC/s", "{cpu_gmacs:.0f}"),
    ("CPU : GPU", "{cpu_over_gpu:.2f}"),
    ("GPU slower beside CPU", "{slower_together[gpu]:.2f}x"),
    ("CPU slower beside GPU", "{slower_together[cpu]:.2f}x"),
)
END_TO_END: Final[Columns] = (
    NAME,
    GPU,
    CPU,
    ("layer by layer ms", "{layer_by_layer_ms:.2f}"),
    ("speed-up", lambda of: f"{of['single_ms'] / of['layer_by_layer_ms']:.2f}x"),
    ("end to end ms", ms_of("finegrained")),
    ("speed-up", speed_up_of("finegrained", "**")),
    ("layer to processor", speed_up_of("layer_to_processor")),
    ("rates added", "{rates_added:.2f}x"),
    ("over the GPU", lambda of: f"{ms(of, 'gpu') / ms(of, 'finegrained'):.2f}x"),
)
"""Fine-Grained, table 3."""


def networks_table(results: Record, experiment: str, columns: Columns) -> str:
    """A row for each network of an experiment; nothing without any."""
    networks = networks_of(results, experiment).values()
    return records_table(networks, columns) if networks else ""


def testbeds_table(testbeds: Mapping[str, Record]) -> str:
    """The divisions of the machines, and how fast either side is."""
    records = ({"name": name, **results["testbed"]} for name, results in testbeds.items())
    return records_table(records, TESTBEDS)


def sync_table(result: Record) -> str:
    """Microseconds of a synchronization, by bytes of the map that is transferred."""
    ways = list(dict.fromkeys(way for size in result["bytes"].values() for way in size))
    rows = []
    for size, of_size in result["bytes"].items():
        cells = (f"{of_size[way]['median_us']:.1f}" if way in of_size else "-" for way in ways)
        rows.append((f"{int(size) // 1024} KB", *cells))
    return markdown_table(("map", *ways), rows)


def errors_table(testbeds: Mapping[str, Record]) -> str:
    """Fine-Grained, table 1: MAPE on layers held out; CoDL's measure in the last column."""
    within = f"{PREDICTORS['finegrained']} within ±10 %"
    head = ("testbed", "processor", "layers", "parts", *PREDICTORS.values(), within)
    rows = []
    for name, results in testbeds.items():
        for group in results["predictors"]["groups"]:
            errors = group["errors"]
            cells = [_percent(errors.get(way), "mape") for way in PREDICTORS]
            cells.append(_percent(errors.get("finegrained"), "within_10"))
            rows.append((name, group["processor"], group["layers"], str(group["parts"]), *cells))
    return markdown_table(head, rows, texts=3)


def _percent(of: Mapping[str, float] | None, what: str) -> str:
    return "-" if of is None else f"{of[what]:.1%}"


def share_of_gain(speed_up: float, of: float) -> str:
    """What a speed-up has of the gain of another one; "-" where that one gains nothing."""
    return f"{(speed_up - 1) / (of - 1):.0%}" if of > 1.005 else "-"


def predictions_table(testbeds: Mapping[str, Record]) -> str:
    """How far whole networks are from their predictions, and the errors on single layers."""
    head = ("testbed", "plan", "networks", "mean error", "largest", "predicted over measured",
            "at one speed", "largest")  # fmt: skip
    rows = []
    for testbed, results in testbeds.items():
        networks = networks_of(results).values()
        for way, title in SYSTEMS.items():
            planned = [of for of in networks if of["plans"].get(way, {}).get("predicted_ms")]
            if not planned:
                continue
            ratios = [of["plans"][way]["predicted_ms"] / ms(of, way) for of in planned]
            speeds = [speed_since_planning(of, way) for of in planned]
            at_one_speed = [r / speed for r, speed in zip(ratios, speeds, strict=True) if speed]
            numbers = (*_errors(ratios), f"{mean(ratios):.2f}", *_errors(at_one_speed))
            rows.append((testbed, title, str(len(ratios)), *numbers))
    return markdown_table(head, rows, texts=2) if rows else ""


def speed_since_planning(network: Record, way: str) -> float:
    """How many times as fast as at first in planning the single processor was; 0: unknown."""
    if not (check := network["plans"][way].get("check")):
        return 0.0
    home_ms: float = check["home_us"] / check.get("slowness", 1.0) / 1e3
    return home_ms / ms(network, check["home"])


def _errors(ratios: Sequence[float]) -> tuple[str, str]:
    """The mean and the largest of how far from 1 they are."""
    errors = [abs(ratio - 1) for ratio in ratios]
    return (f"{mean(errors):.1%}", f"{max(errors):.1%}") if errors else ("-", "-")


def balance_table(testbeds: Mapping[str, Record]) -> str:
    """Each network on each balance: speed-ups over the better single processor."""
    records = [
        {"testbed": name, "balance": results.get("testbed"), **network}
        for name, results in testbeds.items()
        for network in networks_of(results).values()
    ]
    ways = [way for way in SYSTEMS if any(way in network["times"] for network in records)]
    columns: Columns = (
        ("testbed", "{testbed}"),
        ("CPU : GPU", lambda of: f"{of['balance']['cpu_over_gpu']:.2f}" if of["balance"] else "-"),
        *(NAME, CPU, GPU),
        *((SYSTEMS[way], speed_up_of(way)) for way in ways),
        ("rates added", "{rates_added:.2f}x"),
        ("layers cut", lambda of: f"{known:.2f}x" if (known := layers_cut(of)) else "-"),
    )
    return records_table(records, columns, texts=3)


def gains_text(testbeds: Mapping[str, Record]) -> str:
    """What measured plans gain, and of what share of two simple models' gains, by testbed."""
    sentences = []
    for testbed, results in testbeds.items():
        networks = [of for of in networks_of(results).values() if MEASURED in of["times"]]
        if len(networks) < MIN_NETWORKS:
            continue
        gain = geometric_mean(speed_up(network, MEASURED) for network in networks)
        others = {"rates added": geometric_mean(of["rates_added"] for of in networks)}
        if all(map(layers_cut, networks)):
            others["layers cut"] = geometric_mean(map(layers_cut, networks))
        shares = (
            f"{(gain - 1) / (of - 1):.0%} of the gain of {what} ({of:.2f}x)"
            for what, of in others.items()
        )
        sentences.append(
            f"On {testbed} {SYSTEMS[MEASURED]} gains {gain:.2f}x in the geometric mean of "
            f"{len(networks)} networks: {', '.join(shares)}."
        )
    return " ".join(sentences)


def guard_text(testbeds: Mapping[str, Record]) -> str:
    """Whether guarded plans are ever much slower than the better single processor."""
    sentences = [
        "A guarded plan must gain more than the predictor's typical error (a measured one: 2 %), "
        "otherwise everything stays on one processor; the papers' systems take what is predicted "
        "to be faster. An auto-selected plan runs only if it was the fastest during warm-up."
    ]
    found: dict[bool, dict[str, float]] = {False: {}, True: {}}
    for testbed, results in testbeds.items():
        for network in networks_of(results).values():
            for way in (way for way in SYSTEMS if way in network["times"]):
                plan = network["plans"][way]
                if plan["is_guarded"]:
                    what = f"{network['title']} on {testbed} by {SYSTEMS[way]}"
                    found[plan.get("is_tried", False)][what] = 1 / speed_up(network, way)
    kinds = {False: "guarded plans without auto-selection", True: "auto-selected plans"}
    than = "more than 2 % slower than the better single processor"
    for is_tried, ratios in found.items():
        slower = [f"{what} ({ratio - 1:.1%})" for what, ratio in ratios.items() if ratio > GUARD]
        of = f"{len(ratios)} {kinds[is_tried]}"
        if slower:
            sentences.append(f"{len(slower)} of {of} are {than}: {'; '.join(slower)}.")
        elif ratios:
            sentences.append(f"None of {of} is {than}.")
    return " ".join([*sentences, *control_text(testbeds)])


def control_text(testbeds: Mapping[str, Record]) -> list[str]:
    """How far two equal candidates are from each other; nothing where there was no control."""
    ratios = {
        f"{network['title']} on {testbed}": ms(network, CONTROL) / ms(network, "cpu")
        for testbed, results in testbeds.items()
        for network in networks_of(results).values()
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
