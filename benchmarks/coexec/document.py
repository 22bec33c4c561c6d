"""The tables of docs/results/coexecution.md, from the results files: nothing typed by hand.

Each ``benchmarks/results/coexec*.json`` is a machine; what one testbed shows in detail is shown for
the testbed with most networks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.coexec import codl_tables, tables, ulayer_tables
from benchmarks.coexec.tables import ALONE, networks_of
from benchmarks.records import RESULTS, provenance, read_results

Record = dict[str, Any]


def section() -> str:
    """Everything that was measured, machine by machine."""
    documents = [read_results(path) for path in sorted(RESULTS.glob("coexec*.json"))]
    return "\n\n".join(map(machine_section, documents)) + "\n"


def main_testbed(document: Record) -> str:
    """The testbed with the most networks, the first of equal ones."""
    testbeds: dict[str, Record] = document["testbeds"]
    return max(testbeds, key=lambda name: len(networks_of(testbeds[name])))


def machine_section(document: Record) -> str:
    """One machine's tables."""
    context = document["context"]
    main = main_testbed(document)
    results = document["testbeds"][main]
    testbeds = document["testbeds"]
    parts = [
        f"### {context['cpu']}, {context['cores']} cores",
        """PoCL on some cores is the GPU, the CPU backend on others the CPU
(`benchmarks/coexec/README.md`). Medians over interleaved rounds.""",
    ]
    parts += _with("testbed", testbeds, tables.testbeds_table)
    parts += _titled("Cost of a synchronization", _meetings(results, main))
    parts += _titled("Predictors", _predictors(testbeds))
    parts += _titled("Single layers", _layers(testbeds))
    parts += _titled(f"Whole networks, {main}", _networks(main, results))
    parts += _titled(f"µLayer's figures, {main}", _ulayer(main, results))
    parts += _titled(f"CoDL's figures, {main}", _codl(main, results))
    parts += _titled(f"Searched networks, {main}", _searched(main, results))
    balances = {name: of for name, of in testbeds.items() if networks_of(of)}
    if balances:
        sources = [_networks_source(name, of) for name, of in balances.items() if name != main]
        parts += _titled(
            "Balances", [*sources, tables.balance_table(balances), tables.guard_text(balances)]
        )
        text = "Whole networks: predicted against measured milliseconds, over all their networks."
        errors = tables.predictions_table(balances)
        parts += _titled("Predictions of networks", [text, errors] if errors else [])
    return "\n\n".join(parts)


def _source(experiment: str, testbed: str, contexts: Iterable[Record]) -> str:
    """Where numbers of a testbed are from, each commit and day once."""
    command = f"python -m benchmarks.coexec.{experiment} --testbed {testbed}"
    texts = [provenance(context, command, by_opencl=True) for context in contexts]
    return "; ".join(dict.fromkeys(texts)) + "."


def _with(
    experiment: str, testbeds: Mapping[str, Record], table: Callable[[dict[str, Record]], str]
) -> list[str]:
    """The table of the testbeds that have an experiment, and its source; nothing without any."""
    having = {name: results for name, results in testbeds.items() if experiment in results}
    if not having:
        return []
    script = "confinement" if experiment == "testbed" else experiment
    sources = [_source(script, name, [of[experiment]["context"]]) for name, of in having.items()]
    return [table(having), "\n".join(f"- {text}" for text in sources)]


def _meetings(results: Record, testbed: str) -> list[str]:
    if "sync" not in results:
        return []
    text = f"Microseconds beside the slower processor's work, {testbed}."
    if any(ALONE in of_size for of_size in results["sync"]["bytes"].values()):
        text += f""" *{ALONE}*: from one of its kernels to the next without any
synchronization; it is included in the others."""
    source = _source("sync", testbed, [results["sync"]["context"]])
    return [text, tables.sync_table(results["sync"]), source]


def _predictors(testbeds: Mapping[str, Record]) -> list[str]:
    text = """Mean absolute percentage errors on layers that were held out (Fine-Grained, table 1).
*Measured again*: the difference of a second measurement of the same partitions from the first;
errors below that are within the noise of the machine."""
    parts = _with("predictors", testbeds, tables.errors_table)
    having = {
        name: of for name, of in testbeds.items() if "model_bytes" in of.get("predictors", {})
    }
    if having:
        parts += [
            "Convolutions within ±10 %, and the models' bytes in the profile (CoDL, table 3).",
            codl_tables.accuracy_table(having),
            "CoDL's predictor by the kernel that computes a convolution (CoDL, table 4).",
            codl_tables.implementations_table(having),
        ]
    return [text, *parts] if parts else []


def _layers(testbeds: Mapping[str, Record]) -> list[str]:
    text = """Mean speed-up over the better single processor (Fine-Grained, table 2: up to 1.89x of
2.01x searched for linear layers, 1.75x of 1.87x for convolutional ones). The search measured every
cut at a multiple of 8 channels."""
    parts = _with("layers", testbeds, tables.layers_table)
    return [text, *parts] if parts else []


def _networks_source(testbed: str, results: Record) -> str:
    """Of all networks of a testbed, with the size of the profile that made their plans."""
    source = _source("networks", testbed, [of["context"] for of in networks_of(results).values()])
    if "profile" not in results:
        return f"{source} Plans without a profile."
    return f"{source} Plans by a profile of {results['profile']['layers']} layers."


def _networks(testbed: str, results: Record) -> list[str]:
    every = networks_of(results)
    networks = {name: of for name, of in every.items() if "finegrained" in of["times"]}
    if not networks:
        return []
    return [
        _networks_source(testbed, results),
        """Fine-Grained, table 3. Speed-ups over the better single processor; *layer by layer* is
the sum of the layers' times, each measured with its synchronization; *layer to processor* has whole
layers on either processor by µLayer's predictor; *rates added* is what both would reach if their
speeds on the whole network added up (more is possible where layers suit different processors).""",
        tables.end_to_end_table(networks),
    ]


def _ulayer(testbed: str, results: Record) -> list[str]:
    networks = networks_of(results, "ulayer")
    if not networks:
        return []
    parts = [
        _source("ulayer", testbed, [of["context"] for of in networks.values()]),
        """Figures 6 and 8. Types of full-precision layers (`--precision fast`); binary layers are
integers.""",
        ulayer_tables.types_table(results),
        """Figures 16 to 18. Speed-ups over whole layers on either processor (*layer to processor*,
fast types): either processor alone, then µLayer's optimizations one after the other.""",
        ulayer_tables.steps_table(results),
    ]
    if layers := ulayer_tables.layers_table(results):
        parts += ["Figure 5. Layers inside a pass of either processor.", layers]
    return parts


def _codl(testbed: str, results: Record) -> list[str]:
    networks = networks_of(results, "codl")
    if not networks:
        return []
    return [
        _source("codl", testbed, [of["context"] for of in networks.values()]),
        """CoDL, figures 15 and 18. Speed-ups over the better single processor; the *upper bound* is
c g / (c + g): both processors' rates on the whole network added up, nothing exchanged.""",
        codl_tables.times_table(results),
        """Figures 17 and 19 to 22. Layers by how they are cut. *Exchange*: what a pass takes beyond
the slower processor's own work in each stage, both by their own clocks inside that pass, in the
median over passes: waiting, copying and transforming. It may be negative where stages overlap.
*Activations*: the arena of tensors between layers.""",
        codl_tables.plans_table(results),
    ]


def _searched(testbed: str, results: Record) -> list[str]:
    contexts = [of["context"] for key, of in results.items() if key.startswith("search_")]
    if not contexts:
        return []
    return [
        _source("network_search", testbed, contexts),
        """Each layer on either processor, or cut by rows or channels at a quarter, a half or three
quarters, layers of one shape alike, judged by passes of the whole network.""",
        codl_tables.search_table(results),
    ]


def _titled(title: str, parts: list[str]) -> list[str]:
    return [f"#### {title}", *parts] if parts else []
