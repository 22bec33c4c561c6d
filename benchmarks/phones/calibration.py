#!/usr/bin/env python3
"""Modelled times next to published measurements, and where the modelled time of a phone's GPU goes.

    python -m benchmarks.phones.calibration --networks FOLDER

Writes benchmarks/results/phones.json. What the PhoneBit paper measured, its own kernels did: these
are modelled, too. Nothing is measured here.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.command_line import parser_of
from benchmarks.markdown import Columns, filled, records_table
from benchmarks.records import RESULTS, TITLES, Record, read_results, write_results
from phonebit.devices.environment import commit
from phonebit.estimate.network_times import estimate
from phonebit.estimate.phones import PhoneGpu, known_phones
from phonebit.format.reader import read_contents
from phonebit.planner.search.network_graph import NetworkGraph

FILE = "phones.json"
PUBLISHED = json.loads(Path(__file__).with_name("published.json").read_text())
PAPER = "PhoneBit, table III"
BY_LAYER = "snapdragon-855"
MIN_INSTRUCTIONS = 5.25
"""Of Mesa's code for 32 binary multiply-accumulates on Adreno: four words take four xors, three
full adders of four instructions, and a count of five."""
MIN_SHARE = 0.02
"""Of a network's time: layers below stand in one row."""


def main() -> None:
    """Writes the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", type=Path, required=True, help="folder of NETWORK.pbit")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / FILE)
    arguments = parser.parse_args()
    published, layers = [], []
    for entry in PUBLISHED:
        record, times = _record(arguments.networks / f"{entry['network']}.pbit", entry)
        published.append(record | {key: entry[key] for key in ("engine", "published_ms")})
        layers += times if entry["phone"] == BY_LAYER else []
    facts = {"measured": False, "commit": commit()}
    write_results(arguments.output, {**facts, "published": published, "layers": layers})


def _record(path: Path, entry: Record) -> tuple[Record, list[Record]]:
    """A network's modelled times, in all and by layer."""
    phone, processor = known_phones()[entry["phone"]], entry["processor"]
    found = estimate(path, phone).processors[processor]
    record = {"network": path.stem, "processor": found.processor, "ms": round(found.total_ms, 3)}
    if entry["engine"] == PAPER:
        papers = estimate(path, phone, "paper").processors[processor]
        record["paper_ms"] = round(papers.total_ms, 3)
        assert phone.gpu is not None
        record["least_binary_ms"] = round(_min_binary_ms(path, phone.gpu), 3)
    layers = [
        {"network": path.stem, "layer": layer.name, "kernel": layer.kernel}
        | {"ms": round(layer.ms, 3), "bound": layer.bound}
        for layer in found.layers
    ]
    return record, layers


def _min_binary_ms(path: Path, gpu: PhoneGpu) -> float:
    """What the binary convolutions take at MIN_INSTRUCTIONS, all lanes busy."""
    layers = [layer.geometry for layer in NetworkGraph.of(read_contents(path)).layers]
    words = sum(
        layer.outputs_of(layer.whole) * layer.word_taps / 32
        for layer in layers
        if layer.op == "binary_conv2d"
    )
    return MIN_INSTRUCTIONS * words / (gpu.units * gpu.lanes * gpu.clock_mhz * 1e3)


COLUMNS: Columns = (
    ("network", lambda of: TITLES[of["network"]]),
    ("processor", "{processor}"),
    ("measured by", "{engine}"),
    ("published, ms", "{published_ms:.1f}"),
    ("modelled, ms", "{ms:.1f}"),
    ("ratio", lambda of: f"{of['ms'] / of['published_ms']:.2f}"),
    ("the paper's kernels, modelled, ms",
     lambda of: f"{of['paper_ms']:.1f}" if "paper_ms" in of else ""),
    ("ratio", lambda of: f"{of['paper_ms'] / of['published_ms']:.2f}" if "paper_ms" in of else ""),
    ("least, ms", lambda of: f"{of['least_binary_ms']:.1f}" if "paper_ms" in of else ""),
)  # fmt: skip
LAYER_COLUMNS: Columns = (
    ("network", lambda of: TITLES[of["network"]]),
    ("layer", "{layer}"),
    ("kernel", "{kernel}"),
    ("ms", "{ms}"),
    ("share", "{share:.0%}"),
    ("bound by", "{bound}"),
)


def section() -> str:
    """Markdown of both."""
    document = read_results(FILE)
    tables = {
        "networks": records_table(document["published"], COLUMNS, texts=3),
        "by_layer": records_table(_shown(document["layers"]), LAYER_COLUMNS, texts=3),
    }
    facts = {"FILE": FILE, "MIN_INSTRUCTIONS": MIN_INSTRUCTIONS}
    return filled(Path(__file__).with_suffix(".md"), document | facts | tables)


def _shown(layers: list[Record]) -> list[Record]:
    """The large layers of each network, the others in one row, and all."""
    rows = []
    for network in dict.fromkeys(layer["network"] for layer in layers):
        own = [layer for layer in layers if layer["network"] == network]
        total = sum(layer["ms"] for layer in own)
        large = [layer for layer in own if layer["ms"] >= MIN_SHARE * total]
        rest = total - sum(layer["ms"] for layer in large)
        others = f"{len(own) - len(large)} others"
        sums = {"network": network, "kernel": "", "bound": ""}
        rows += [
            *(layer | {"kernel": f"`{layer['kernel']}`", "ms": f"{layer['ms']:.3f}",
                       "share": layer["ms"] / total} for layer in large),
            sums | {"layer": others, "ms": f"{rest:.3f}", "share": rest / total},
            sums | {"layer": "all", "ms": f"{total:.2f}", "share": 1.0},
        ]  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
