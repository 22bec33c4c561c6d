"""``phonebit profile`` and ``phonebit compare``: numbers that fit together, a page that parses."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from phonebit.layer_info import PartProfile
from phonebit.pages.profile_page import profile_page
from phonebit.profiling import Span, plan_spans
from support.cli_process import Cli
from support.pages import HOSTILE, check_page


@pytest.fixture
def document(cli: Cli, u8_file: Path) -> Any:
    done = cli("profile", u8_file, "--runs", 2, "--threads", 1, "--device", "cpu", "--json")
    assert done.code == 0, done.err
    return done.document


def test_numbers_fit_together(document: Any) -> None:
    layers, spans = document["layers"], document["spans"]
    assert [span["layer"] for span in spans] == list(range(len(layers)))
    assert {span["processor"] for span in spans} == {"cpu"}
    for before, after in pairwise(spans):
        assert before["end_ms"] == after["begin_ms"]
    assert spans[-1]["end_ms"] == pytest.approx(sum(layer["latency_ms"] for layer in layers))
    stem, pool, res2 = layers[:3]
    assert stem["bytes"] == stem["weight_bytes"] + 28 * 28 * (1 + 64 * 4)
    assert res2["bytes"] == res2["weight_bytes"] + 2 * 14 * 14 * (64 * 4 + 64 // 8)
    assert stem["live_bytes"] == 28 * 28 * 64 * 4
    assert pool["live_bytes"] == stem["live_bytes"] + 14 * 14 * (64 * 4 + 64 // 8)
    maximum = max(layer["live_bytes"] for layer in layers)
    assert 0 <= document["memory"]["lower_bound_bytes"] - maximum < 2 * 64, "that is aligned"
    assert document["environment"]["phonebit"]


def test_stages_wait_for_both_processors() -> None:
    whole, upper, lower = (0, 4, 0, 8), (0, 1, 0, 8), (1, 4, 0, 8)
    parts = [
        PartProfile(0, "gpu", 0, upper, 2.0),
        PartProfile(0, "gpu", 1, whole, 1.0),
        PartProfile(0, "cpu", 0, lower, 4.0),
        PartProfile(1, "gpu", 2, whole, 1.0),
    ]
    assert plan_spans(parts, [(4, 4, 8)] * 3) == [
        Span("gpu", 0, "rows 0:1", 0.0, 2.0),
        Span("gpu", 1, "", 2.0, 3.0),
        Span("cpu", 0, "rows 1:4", 0.0, 4.0),
        Span("gpu", 2, "", 4.0, 5.0),
    ]


def test_page(cli: Cli, u8_file: Path, document: Any, tmp_path: Path) -> None:
    page = tmp_path / "profile.html"
    done = cli("profile", u8_file, "--runs", 1, "--warmup", 0, "--html", page)
    assert (done.code, done.out) == (0, f"wrote {page}\n"), done.err
    check_page(page.read_text())
    assert page.read_text().count("<circle") == sum(
        layer["macs"] > 0 for layer in document["layers"]
    )
    for layer in document["layers"]:
        layer["name"] = layer["kernel"] = HOSTILE
    document |= {
        "file": HOSTILE,
        "input": HOSTILE,
        "environment": dict.fromkeys(("cpu", "cores", "phonebit", HOSTILE), HOSTILE),
    }
    check_page(profile_page(document))
    for layer in document["layers"]:  # a network of which nothing can be said
        layer |= {"macs": 0, "latency_ms": 0.0, "live_bytes": 0}
    check_page(profile_page(document | {"spans": []}))
    assert "one of the inputs" in cli.refused("profile", u8_file, "--html", u8_file)


def test_profile_as_text(cli: Cli, u8_file: Path) -> None:
    done = cli("profile", u8_file, "--runs", 1, "--device", "cpu")
    assert "stem_pool" in done.out and "lower bound" in done.out


def test_comparison(cli: Cli, document: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text(json.dumps(document))
    document["median_ms"] *= 2
    document["layers"] = document["layers"][1:]
    document["layers"][0]["latency_ms"] = 2.0
    document["threads"] = 3
    document["environment"]["opencl"] = {"driver": "[red]new[/]"}
    second.write_text(json.dumps(document))
    found = cli("compare", first, second, "--json").document
    assert found["metrics"][0]["name"] == "median_ms"
    assert found["metrics"][0]["ratio"] == pytest.approx(2)
    assert len(found["layers"]) == len(document["layers"])
    assert (found["layers"][0]["name"], found["layers"][0]["b"]) == ("stem_pool", 2.0)
    assert found["differences"] == [
        {"name": "threads", "a": 1, "b": 3},
        {"name": "opencl.driver", "a": None, "b": "[red]new[/]"},
    ]
    shown = cli("compare", first, second)
    assert "B / A" in shown.out and "[red]new[/]" in shown.out
    assert "same file" in cli("compare", first, first).out
    evaluation = {"task": "classify", "engine": {"top1": 0.5, "classes": []}}
    second.write_text(json.dumps(evaluation))
    assert "different kinds" in cli.refused("compare", first, second)
    assert cli("compare", second, second, "--json").document["metrics"][0]["a"] == 0.5
    for text in (
        "[]",
        "no JSON",
        "{}",
        '{"task": 1, "engine": {"classes": 5}}',
        '{"median_ms": 1, "layers": [1]}',
    ):
        second.write_text(text)
        cli.refused("compare", second, second)
