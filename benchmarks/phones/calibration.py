#!/usr/bin/env python3
"""Modelled times beside published measurements, and where the modelled time of a phone's GPU goes.

    python -m benchmarks.phones.calibration --networks FOLDER

Writes benchmarks/results/phones.json. What the PhoneBit paper measured, its own kernels did: these
are modelled, too. Nothing is measured here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.command_line import parser_of
from benchmarks.markdown_table import markdown_table
from benchmarks.records import RESULTS, TITLES, read_results, write_results

FILE = "phones.json"
PAPER = "PhoneBit, table III"
LCE = "Larq Compute Engine"
PUBLISHED = (
    ("alexnet", "snapdragon-820", 0, PAPER, 22.9),
    ("yolov2_tiny", "snapdragon-820", 0, PAPER, 42.1),
    ("vgg16", "snapdragon-820", 0, PAPER, 152.3),
    ("alexnet", "snapdragon-855", 0, PAPER, 9.8),
    ("yolov2_tiny", "snapdragon-855", 0, PAPER, 22.6),
    ("vgg16", "snapdragon-855", 0, PAPER, 73.8),
    ("quicknet", "raspberry-pi-4", 0, LCE, 45.0),
    ("quicknet", "pixel-1", 1, LCE, 25.5),
    ("birealnet18", "pixel-1", 1, LCE, 47.7),
    ("birealnet18", "pixel-1", 1, "daBNN", 61.3),
)
"""Network, phone, its processor, whose measurement, milliseconds."""
BY_LAYER = "snapdragon-855"
LAYER_HEAD = ("network", "layer", "kernel", "ms", "share", "bound by")
LEAST_INSTRUCTIONS = 5.25
"""Of Mesa's code for 32 binary multiply-accumulates on Adreno: four words take four xors, three
full adders of four instructions, and a count of five."""
LEAST_SHARE = 0.02
"""Of a network's time: layers below stand in one row."""

Record = dict[str, Any]


def main() -> None:
    """Writes the results."""
    from phonebit.devices.environment import commit

    parser = parser_of(__doc__)
    parser.add_argument("--networks", type=Path, required=True, help="folder of NETWORK.pbit")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / FILE)
    arguments = parser.parse_args()
    published, layers = [], []
    for network, phone, processor, engine, ms in PUBLISHED:
        path = arguments.networks / f"{network}.pbit"
        record, times = _record(path, phone, processor, engine == PAPER)
        published.append(record | {"engine": engine, "published_ms": ms})
        if phone == BY_LAYER:
            layers += [{"network": network, **time} for time in times]
    write_results(
        arguments.output,
        {"measured": False, "commit": commit(), "published": published, "layers": layers},
    )


def _record(path: Path, phone: str, processor: int, is_paper: bool) -> tuple[Record, list[Record]]:
    """A network's modelled times, in all and by layer."""
    from phonebit.estimate.network_times import estimate
    from phonebit.estimate.phones import known_phones

    found = estimate(path, known_phones()[phone]).processors[processor]
    record = {"network": path.stem, "processor": found.processor, "ms": round(found.total_ms, 3)}
    if is_paper:
        papers = estimate(path, known_phones()[phone], "paper").processors[processor]
        record["paper_ms"] = round(papers.total_ms, 3)
        record["least_binary_ms"] = round(_least_binary_ms(path, phone), 3)
    layers = [
        {"layer": layer.name, "kernel": layer.kernel, "ms": round(layer.ms, 3)}
        | {"bound": layer.bound}
        for layer in found.layers
    ]
    return record, layers


def _least_binary_ms(path: Path, phone: str) -> float:
    """What the binary convolutions take at LEAST_INSTRUCTIONS, all lanes busy."""
    from phonebit.estimate.phones import known_phones
    from phonebit.format.reader import read_contents
    from phonebit.planner.search.network_graph import NetworkGraph

    gpu = known_phones()[phone].gpu
    assert gpu is not None
    layers = [layer.geometry for layer in NetworkGraph.of(read_contents(path)).layers]
    words = sum(
        layer.outputs_of(layer.whole) * layer.word_taps / 32
        for layer in layers
        if layer.op == "binary_conv2d"
    )
    return LEAST_INSTRUCTIONS * words / (gpu.units * gpu.lanes * gpu.clock_mhz * 1e3)


def section() -> str:
    """Markdown of both."""
    document = read_results(FILE)
    rows = []
    for record in document["published"]:
        published, own, papers = (record.get(key) for key in ("published_ms", "ms", "paper_ms"))
        rows.append([
            TITLES[record["network"]], record["processor"], record["engine"], f"{published:.1f}",
            f"{own:.1f}", f"{own / published:.2f}", f"{papers:.1f}" if papers else "",
            f"{papers / published:.2f}" if papers else "",
            f"{record['least_binary_ms']:.1f}" if papers else "",
        ])  # fmt: skip
    head = ["network", "processor", "measured by", "published, ms", "modelled, ms", "ratio",
            "the paper's kernels, modelled, ms", "ratio", "least, ms"]  # fmt: skip
    return f"""## Modelled times of whole networks

Commit {document["commit"]}: `python -m benchmarks.phones.calibration`, `benchmarks/results/{FILE}`.
[`phonebit estimate`](../estimate.md) says how times are modelled. The published measurements are of
other kernels; those of PhoneBit's table III are in the
[preset `paper`](../gpu.md#kernels-of-the-phonebit-paper), so that their ratio is the model's error.
*Least*: the binary layers alone with all lanes busy, at {LEAST_INSTRUCTIONS} instructions for 32
multiply-accumulates (an xor each, three full adders and a count for four) and none for loads.

{markdown_table(head, rows, texts=3)}

By layer on a Snapdragon 855's Adreno 640:

{markdown_table(LAYER_HEAD, _layer_rows(document["layers"]), texts=3)}"""


def _layer_rows(layers: list[Record]) -> list[list[str]]:
    rows = []
    for network in dict.fromkeys(layer["network"] for layer in layers):
        own = [layer for layer in layers if layer["network"] == network]
        total = sum(layer["ms"] for layer in own)
        large = [layer for layer in own if layer["ms"] >= LEAST_SHARE * total]
        rows += [
            [TITLES[network], layer["layer"], f"`{layer['kernel']}`", f"{layer['ms']:.3f}",
             f"{layer['ms'] / total:.0%}", layer["bound"]]
            for layer in large
        ]  # fmt: skip
        rest = total - sum(layer["ms"] for layer in large)
        others = f"{len(own) - len(large)} others"
        rows.append([TITLES[network], others, "", f"{rest:.3f}", f"{rest / total:.0%}", ""])
        rows.append([TITLES[network], "all", "", f"{total:.2f}", "100%", ""])
    return rows


if __name__ == "__main__":
    main()
