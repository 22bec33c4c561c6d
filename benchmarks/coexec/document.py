"""The tables of docs/results/coexecution.md, from the results files: nothing typed by hand.

Each ``benchmarks/results/coexec*.json`` is a machine; what one testbed shows in detail is shown for
the testbed with most networks. ``page.md`` has the prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.coexec import layer_tables, papers_tables, tables
from benchmarks.coexec.tables import networks_of, networks_table
from benchmarks.markdown import filled, records_table
from benchmarks.records import RESULTS, Record, provenance, read_results

PAGE: Final = Path(__file__).with_name("page.md")


def section() -> str:
    """Everything that was measured, machine by machine."""
    documents = [read_results(path) for path in sorted(RESULTS.glob("coexec*.json"))]
    return "\n\n".join(map(machine_section, documents))


def machine_section(document: Record) -> str:
    """One machine's tables."""
    testbeds: dict[str, Record] = document["testbeds"]
    main = max(testbeds, key=lambda name: len(networks_of(testbeds[name])))
    results = testbeds[main]
    finegrained = {
        name: of for name, of in networks_of(results).items() if "finegrained" in of["times"]
    }
    with_models = {
        name: of for name, of in testbeds.items() if "model_bytes" in of.get("predictors", {})
    }
    balances = {name: of for name, of in testbeds.items() if networks_of(of)}
    sources = [_networks_source(name, of) for name, of in balances.items() if name != main]
    texts = filter(None, (tables.gains_text(balances), tables.guard_text(balances)))
    sync = results.get("sync")
    values = {
        "context": document["context"],
        "main": main,
        "testbeds": _with("testbed", testbeds, tables.testbeds_table),
        "sync": sync and f"{tables.sync_table(sync)}\n\n{_source('sync', main, [sync])}",
        "predictors": _with("predictors", testbeds, tables.errors_table),
        "accuracies": with_models and papers_tables.accuracy_table(with_models),
        "implementations": with_models and papers_tables.implementations_table(with_models),
        "layers": _with("layers", testbeds, layer_tables.layers_table),
        "ablation": layer_tables.ablation_table(_having("layers", testbeds)),
        "networks_source": finegrained and _networks_source(main, results),
        "networks": finegrained and records_table(finegrained.values(), tables.END_TO_END),
        "ulayer_types": networks_table(results, "ulayer", papers_tables.ULAYER_TYPES),
        "ulayer_steps": networks_table(results, "ulayer", papers_tables.ULAYER_STEPS),
        "ulayer_layers": papers_tables.ulayer_layers_table(results),
        "codl_times": networks_table(results, "codl", papers_tables.TIMES),
        "codl_plans": networks_table(results, "codl", papers_tables.PLANS),
        "search": networks_table(results, "search", papers_tables.SEARCH),
        "balances": "\n\n".join(
            [*sources, tables.balance_table(balances), *texts] if balances else []
        ),
        "predictions": tables.predictions_table(balances),
    }
    for experiment, script in (
        ("ulayer", "ulayer"),
        ("codl", "codl"),
        ("search", "network_search"),
    ):
        networks = networks_of(results, experiment).values()
        values[f"{experiment}_source"] = _source(script, main, networks)
    return filled(PAGE, values)


def _source(script: str, testbed: str, results: Iterable[Record]) -> str:
    """Where results of a testbed are from, each commit and day once; nothing without any."""
    command = f"python -m benchmarks.coexec.{script} --testbed {testbed}"
    texts = [provenance(of["context"], command, by_opencl=True) for of in results]
    return "; ".join(dict.fromkeys(texts)) + "." if texts else ""


def _with(
    experiment: str, testbeds: Mapping[str, Record], table: Callable[[dict[str, Record]], str]
) -> str:
    """The table of the testbeds that have an experiment, and its source; nothing without any."""
    having = _having(experiment, testbeds)
    if not having:
        return ""
    script = "confinement" if experiment == "testbed" else experiment
    sources = [f"- {_source(script, name, [of[experiment]])}" for name, of in having.items()]
    return "\n".join([f"{table(having)}\n", *sources])


def _having(experiment: str, testbeds: Mapping[str, Record]) -> dict[str, Record]:
    """The testbeds that have an experiment."""
    return {name: results for name, results in testbeds.items() if experiment in results}


def _networks_source(testbed: str, results: Record) -> str:
    """Of all networks of a testbed, with the size of the profile that made their plans."""
    source = _source("networks", testbed, networks_of(results).values())
    if "profile" not in results:
        return f"{source} Plans without a profile."
    return f"{source} Plans by a profile of {results['profile']['layers']} layers."
