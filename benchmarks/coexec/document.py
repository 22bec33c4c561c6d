"""The tables of docs/coexecution.md, from the results files: nothing typed by hand.

Each ``benchmarks/results/coexec*.json`` is a machine; what one testbed shows in detail is shown for
the testbed with most networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.coexec.layer_tables import (
    ALONE,
    ablation_table,
    layers_table,
    sync_table,
    testbeds_table,
)
from benchmarks.coexec.network_tables import (
    balance_table,
    chains_table,
    dimensions_table,
    end_to_end_table,
    guard_text,
    hybrid_table,
    networks_of,
    ulayer_table,
)
from benchmarks.coexec.predictor_tables import accuracy_table, errors_table
from benchmarks.records import IMAGES, RESULTS, read_results

Record = dict[str, Any]


def section() -> str:
    """Everything that was measured, machine by machine."""
    machines = [machine_section(stem, document) for stem, document in _documents()]
    return "\n\n".join(machines or ["Not measured yet."]) + "\n"


def plots() -> None:
    """Draws the papers' figures into docs/images."""
    from benchmarks.coexec.plots import draw

    for stem, document in _documents():
        networks = networks_of(document["testbeds"][main_testbed(document)])
        if networks:
            draw(networks, IMAGES, stem)


def _documents() -> Iterator[tuple[str, Record]]:
    for path in sorted(RESULTS.glob("coexec*.json")):
        yield path.stem, read_results(path)


def main_testbed(document: Record) -> str:
    """The testbed with the most networks, the first of equal ones."""
    testbeds: dict[str, Record] = document["testbeds"]
    return max(testbeds, key=lambda name: len(networks_of(testbeds[name])))


def machine_section(stem: str, document: Record) -> str:
    """One machine's tables."""
    context = document["context"]
    main = main_testbed(document)
    results = document["testbeds"][main]
    networks = networks_of(results)
    testbeds = document["testbeds"]
    parts = [
        f"### {context['cpu']}, {context['cores']} cores",
        f"""PoCL on some cores is the GPU, the CPU backend on others the CPU
([benchmarks/coexec](../benchmarks/coexec/README.md)). Medians of rounds in which all contestants
take turns; commit {context["commit"] or "unknown"}, {context["date"]}.{_drivers(testbeds)}""",
    ]
    parts += _with("testbed", testbeds, testbeds_table)
    parts += _titled("What a meeting costs", _meetings(results, main))
    parts += _titled("Predictors", _predictors(testbeds))
    parts += _with("predictors", testbeds, accuracy_table)
    parts += _titled("Single layers", _layers(testbeds))
    parts += _titled(f"Whole networks, {main}", _networks(networks, stem))
    balances = {name: of for name, of in testbeds.items() if networks_of(of)}
    if balances:
        parts += _titled("Balances", [balance_table(balances), guard_text(balances)])
    return "\n\n".join(parts)


def _drivers(testbeds: Mapping[str, Record]) -> str:
    """The drivers of the results that name theirs, and for which processors they compiled."""
    experiments = (result for results in testbeds.values() for result in results.values())
    drivers = (result.get("context", {}).get("opencl") for result in experiments)
    named = {f"{driver['driver']} for {driver['compiles_for']}" for driver in drivers if driver}
    return f"\nPoCL {', '.join(sorted(named))}." if named else ""


def _with(
    experiment: str, testbeds: Mapping[str, Record], table: Callable[[dict[str, Record]], str]
) -> list[str]:
    """A table of the testbeds that have an experiment; nothing where none has."""
    having = {name: results for name, results in testbeds.items() if experiment in results}
    return [table(having)] if having else []


def _meetings(results: Record, testbed: str) -> list[str]:
    if "sync" not in results:
        return []
    text = f"Microseconds beside the slower processor's work, {testbed}."
    if any(ALONE in of_size for of_size in results["sync"]["bytes"].values()):
        text += f""" *{ALONE}*: from one of its kernels to the next without any
meeting, which is a part of the others."""
    return [text, sync_table(results["sync"])]


def _predictors(testbeds: Mapping[str, Record]) -> list[str]:
    text = """Mean absolute percentage errors on layers that were held out (Fine-Grained, table 1).
*Measured again*: how far a second measurement of the same parts is from the first one; errors below
that cannot be told from what else the machine does."""
    tables = _with("predictors", testbeds, errors_table)
    return [text, *tables] if tables else []


def _layers(testbeds: Mapping[str, Record]) -> list[str]:
    text = """Mean speed-up over the better single processor (Fine-Grained, table 2: up to 1.89x of
2.01x searched for linear layers, 1.75x of 1.87x for convolutional ones). The search measured every
cut at a multiple of 8 channels."""
    tables = _with("layers", testbeds, layers_table)
    ablations = _with("layers", testbeds, ablation_table)
    return [text, *tables, "Fine-Grained, table 4, the same layers:", *ablations] if tables else []


def _networks(networks: Mapping[str, Record], stem: str) -> list[str]:
    if not networks:
        return []
    return [
        """Fine-Grained, table 3. Speed-ups over the better single processor; *layer by layer* is
the sum of the layers' times, each measured with its meeting.""",
        end_to_end_table(networks),
        "µLayer, figures 16 and 17: times over those of the layer-to-processor mechanism.",
        ulayer_table(networks),
        f"![µLayer's figures 16 and 17](images/{stem}_ulayer.svg)",
        "CoDL, figure 17: convolutions cut by rows / by channels / not cut, without chains.",
        dimensions_table(networks),
        "CoDL, figure 18.",
        hybrid_table(networks),
        f"![CoDL's figures 17 and 18](images/{stem}_codl.svg)",
        "CoDL, figures 19 and 20: chains, and what sharing costs with and without them.",
        chains_table(networks),
        f"![CoDL's figure 19: chains](images/{stem}_chains.svg)",
    ]


def _titled(title: str, parts: list[str]) -> list[str]:
    return [f"#### {title}", *parts] if parts else []
