"""``phonebit inspect --html`` and ``--svg``: the graph, its folded blocks, its escaped names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from phonebit.pages.folding import Run, find_runs
from phonebit.pages.graph_svg import svg_file
from phonebit.pages.network_graph import Line, network_graph
from phonebit.pages.network_page import network_page
from support.cli_process import Cli
from support.pages import HOSTILE, check_page


def test_runs_hide_as_much_as_they_can() -> None:
    assert find_runs("abababc") == [Run(0, 2, 3), Run(6, 1, 1)]
    assert find_runs("xaaaab") == [Run(0, 1, 1), Run(1, 1, 4), Run(5, 1, 1)]
    assert find_runs("") == []


def test_page_and_image_of_a_file(cli: Cli, u8_file: Path, tmp_path: Path) -> None:
    html, svg = tmp_path / "net.html", tmp_path / "net.svg"
    done = cli("inspect", u8_file, "--html", html, "--svg", svg)
    assert done.code == 0, done.err
    assert f"wrote {html}" in done.out and f"wrote {svg}" in done.out
    check_page(html.read_text())
    root = ElementTree.parse(svg).getroot()
    titles = [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}title")]
    layers = cli("inspect", u8_file, "--json").document["layers"]
    for layer in layers:
        (card,) = [text for text in titles if text.startswith(f"{layer['name']}: {layer['kind']}")]
        assert layer["kernel"] in card
    assert cli("inspect", u8_file, "--html", html).code == 0, "a page may be replaced"
    for option in ("--html", "--svg"):
        assert "one of the inputs" in cli.refused("inspect", u8_file, option, u8_file)


@pytest.fixture(scope="module")
def residual_document() -> dict[str, Any]:
    """An input, three residual blocks of two layers, and a layer that reads the first block's."""
    tensor = {"dtype": "bit", "shape": [4, 4, 32]}
    layers = []
    for block in range(3):
        for part, inputs in (("a", [f"t{block}"]), ("b", [f"m{block}", f"t{block}"])):
            layers.append(
                {"name": f"{part}{block}", "kind": "binary_conv2d", "kernel": "k", "macs": 10,
                 "binary": True, "weight_bytes": 4, "inputs": inputs, "sources": [HOSTILE],
                 "outputs": [f"m{block}" if part == "a" else f"t{block + 1}"],
                 "input_types": [tensor] * len(inputs), "output_types": [tensor]}
            )  # fmt: skip
    return {
        "file": HOSTILE, "name": HOSTILE, "labels": [HOSTILE], "layers": layers,
        "inputs": [{"name": "t0", **tensor}], "outputs": [{"name": "t3", **tensor}],
        "preprocessing": {}, "detection": {}, "plans": [], "macs": 60, "binary_mac_share": 1.0,
        "memory": {"file_bytes": 1, "arena_bytes": 1, "lower_bound_bytes": 1},
        "metadata": {HOSTILE: HOSTILE},
    }  # fmt: skip


def test_repeated_blocks_are_drawn_once(residual_document: dict[str, Any]) -> None:
    graph = network_graph(residual_document)
    assert [card.title for card in graph.cards] == ["t0", "a0", "b0", "t3"]
    (block,) = graph.blocks
    assert (block.begin, block.end, block.repeats, block.names) == (1, 3, 3, "a0, a1, a2")
    ends = {(line.begin, line.end) for line in graph.lines}
    assert ends == {(0, 1), (1, 2), (0, 2), (2, 3)}
    assert Line(0, 2, "4x4x32 bit", True) in graph.lines
    other = json.loads(json.dumps(residual_document))
    other["layers"][2]["weight_bytes"] = 5
    assert len(network_graph(other).blocks) == 0


def test_names_never_act(residual_document: dict[str, Any]) -> None:
    check_page(network_page(residual_document))
    ElementTree.fromstring(svg_file(network_graph(residual_document)))
