"""``phonebit verify --html``: one sound, self-contained page that leads to the layer that parts."""

from __future__ import annotations

import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from phonebit.cli.verify_text import print_report
from phonebit.converter.ops import BinaryConv2D
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.devices.environment import environment
from phonebit.format.reader import read_contents
from phonebit.verification import DeviceCheck, EndToEndCheck, LayerCheck, VerificationReport
from phonebit.verification.comparison import compare_bits, compare_reals
from phonebit.verification.differences import KEPT_PLACES, MAP_CELLS, Differences
from phonebit.verification.html import html_report, write_html
from support.cli_process import Cli

VOID = {"meta", "br", "hr", "img"}


class Page(HTMLParser):
    """What a page consists of; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def attributes(self, name: str) -> list[str]:
        return [str(attrs[name]) for _, attrs in self.tags if name in attrs]


def parted_layer(name: str = "conv") -> LayerCheck:
    """A layer of 64 bits with two wrong ones, a tie and a zero."""
    margin = np.full((2, 4, 4, 2), 100, np.float32)
    margin[0, 1, 2, 0] = 1e-6
    expected = np.ones((2, 4, 4, 2), np.int8)
    result = expected.copy()
    for place in ((0, 1, 2, 0), (1, 3, 3, 1), (1, 0, 0, 1)):
        result[place] = -1
    zeros = np.zeros(result.shape, np.bool_)
    zeros[0, 0, 0, 0] = True
    check = LayerCheck(0, name, "binary_conv2d")
    compare_bits(check, result, expected, margin, ("bits", 8), zeros)
    return check


def report_of(*layers: LayerCheck, source: str = "net.pt2") -> VerificationReport:
    checks = [replace(layer, index=index) for index, layer in enumerate(layers)]
    device = DeviceCheck("gpu:0 Some <GPU>", checks, EndToEndCheck(16, 16))
    return VerificationReport(
        source, "net.pbit", "PyTorch", "framework", "", 16, "2026-01-02T03:04:05+00:00", [device]
    )


def good_layer(name: str = "first") -> LayerCheck:
    return LayerCheck(0, name, "conv2d", values=4)


def test_a_parted_page_leads_to_the_layer_and_its_places() -> None:
    page = Page(html_report(report_of(good_layer(), parted_layer(), parted_layer("late"))))
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    links = [link.removeprefix("#") for link in page.attributes("href")]
    assert set(links) <= set(ids)
    assert links[0] == "device-0-layer-1"
    rows = {
        attrs["id"]: attrs["class"] for tag, attrs in page.tags if tag == "tr" and "id" in attrs
    }
    assert rows == {"layer-0": "", "layer-1": "mismatch first", "layer-2": "mismatch"}
    for text in ("parts first at", "4 of 64 bits differ", "bits[9, 3, 3, 1]", "exact zero"):
        assert text in page.text
    assert [tag for tag, _ in page.tags].count("svg") == 4  # channels and map, of two layers


def test_a_report_is_one_line_in_a_notebook() -> None:
    assert repr(report_of(good_layer(), parted_layer())) == (
        "VerificationReport('net.pbit' compared with 'net.pt2': mismatch at layer conv; "
        "2 layers, 16 inputs, gpu:0)"
    )
    assert ": passed; 1 layers" in repr(report_of(good_layer()))


def test_a_passed_page_says_so_and_highlights_nothing() -> None:
    text = html_report(report_of(good_layer()))
    page = Page(text)
    assert "It computes what net.pt2 does." in page.text
    assert "Where they differ" not in text
    assert page.attributes("href") == []
    assert "mismatch" not in "".join(page.attributes("class"))


def test_the_result_comes_before_the_legend_and_each_number_has_its_title() -> None:
    """On a narrow screen the table's head is gone: each cell says what it holds."""
    text = html_report(report_of(good_layer(), parted_layer()))
    assert text.index("parts first at") < text.index("<tbody>") < text.index("What the words mean")
    assert "@media (max-width: 48rem)" in text
    page = Page(text)
    numbers = [attrs for tag, attrs in page.tags if tag == "td" and attrs.get("class") == "number"]
    assert numbers and all("data-title" in attrs for attrs in numbers)


def test_the_page_needs_nothing_else_and_knows_light_and_dark() -> None:
    text = html_report(report_of(parted_layer()))
    for forbidden in ("<script", "http:", "https:", "src=", "@import", "url("):
        assert forbidden not in text
    assert "prefers-color-scheme: dark" in text


def test_names_cannot_become_markup() -> None:
    evil = '<b onload="x">&amp;\''
    check = parted_layer(evil)
    check.differences.places[0] = replace(check.differences.places[0], value=evil)
    report = report_of(check, source=evil)
    report = replace(report, file=evil, reference="interpreter", reason=evil)
    report.devices[0].end_to_end.ties.append(evil)
    page = Page(html_report(report))
    assert page.attributes("onload") == []
    assert page.text.count(evil) >= 7


def test_names_cannot_steer_a_page_or_a_terminal() -> None:
    evil = "\x1b[2J\x07\x9b\u202e\r"
    report = report_of(parted_layer(evil), good_layer(evil), source=evil)
    report = replace(report, file=evil, reference="interpreter", reason=evil)
    report.devices[0].end_to_end.ties.append(evil)
    shown = io.StringIO()
    print_report(Console(file=shown, width=200), report)
    for text in (html_report(report), shown.getvalue()):
        assert not set("\x1b\x07\x9b\u202e\r") & set(text)
        assert text.count(r"\x1b[2J\x07\x9b\u202e\r") >= 3


def test_an_existing_page_survives_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("<!DOCTYPE html>old")

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_html(report_of(good_layer()), path)
    assert path.read_text() == "<!DOCTYPE html>old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_writes_the_page_and_still_ends_with_code_1(
    cli: Cli, checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    graph = read_graph(u8_file)
    node = next(node for node in graph.nodes if isinstance(node.op, BinaryConv2D))
    assert isinstance(node.op, BinaryConv2D)
    weights = node.op.weights.copy()
    weights[0] *= -1
    node.op = replace(node.op, weights=weights)
    damaged = tmp_path / "damaged.pbit"
    damaged.write_bytes(to_bytes(graph, read_contents(u8_file).metadata))
    page = tmp_path / "out.html"
    options = ("--samples", 2, "--interpreter", "--device", "cpu", "--html", page)
    done = cli("verify", checkpoint, damaged, *options)
    assert done.code == 1, done.out + done.err
    assert str(page) in done.out.replace("\n", "")
    shown = Page(page.read_text()).text
    assert f"layer {node.name}" in shown
    above, below = shown.split("parts first")
    here = environment()
    assert f"{here['cpu']}, PhoneBit {here['phonebit']}" in above
    assert here["system"] in below


def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    cli: Cli, checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    target = tmp_path / "no" / "out.html"
    assert "no such folder" in cli.refused("verify", checkpoint, u8_file, "--html", target)


# --- where layers differ ---


def test_differences_are_counted_by_channel_and_cell_and_only_the_first_are_kept() -> None:
    found = Differences()
    mask = np.zeros((2, 100, 3, 4), np.bool_)
    mask[:, 99, 2, 3] = True
    mask[0, :40, 0, 1] = True
    values = np.zeros(mask.shape, np.float32)
    for first in (0, 2):
        found.add(("x", first), values, values, {"wrong": mask})
    assert len(found.places) == KEPT_PLACES
    assert str(found.places[0]) == "x[0, 0, 0, 1]"
    assert found.channels == [0, 80, 0, 4]
    assert found.size == (100, 3)
    assert len(found.cells) == 25 <= MAP_CELLS
    assert [row[0] for row in found.cells] == [8] * 10 + [0] * 15
    assert found.cells[24][2] == 4


def test_wrong_values_are_counted_and_located() -> None:
    expected = np.zeros((1, 2, 2, 1), np.float32)
    expected[0, 0, 0, 0] = 10
    result = expected.copy()
    result[0, 1, 0, 0], result[0, 1, 1, 0] = 1.0, np.nan
    check = LayerCheck(0, "layer", "conv2d")
    compare_reals(check, result, expected, 1e-5, ("y", 0))
    assert (check.wrong_values, check.verdict) == (2, "mismatch")
    assert [str(place) for place in check.differences.places] == ["y[0, 1, 0, 0]", "y[0, 1, 1, 0]"]
