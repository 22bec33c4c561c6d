"""DETECTION: it travels, and damage is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import Network
from phonebit.converter.convert import convert_graph
from phonebit.converter.ir import Graph
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes
from phonebit.detection import DetectionHead
from phonebit.errors import ConversionError, InputError, ModelFormatError
from phonebit.format.contents import FileContents
from phonebit.format.reader import parse_contents
from phonebit.format.writer import file_bytes
from support import golden
from support.detector_graph import HEAD, LABELS, cell_detector

INTACT = to_bytes(cell_detector())


def loaded(content: bytes, folder: Path) -> Network:
    path = folder / "file.pbit"
    path.write_bytes(content)
    return Network.load(path, device="cpu", threads=1)


def test_heads_reach_the_graph_and_the_runtime(tmp_path: Path) -> None:
    again = graph_from_bytes(INTACT)
    assert (again.labels, again.detection) == (LABELS, {"boxes": HEAD})
    network = loaded(INTACT, tmp_path)
    assert (network.labels, network.detection) == (LABELS, {"boxes": HEAD})
    assert to_bytes(again) == INTACT


def test_files_without_the_section_tell_nothing(tmp_path: Path) -> None:
    content = to_bytes(golden.tiny_classifier())
    assert loaded(content, tmp_path).detection == {}
    assert parse_contents(content).detection.size == 0


def source_graph() -> Graph:
    graph = cell_detector()
    return dataclasses.replace(graph, labels=[], detection={})


def test_converting_stores_the_head_and_counts_labels_by_it(tmp_path: Path) -> None:
    content = convert_graph(source_graph(), detection=HEAD, labels=LABELS).content
    network = loaded(content, tmp_path)
    (output,) = network.outputs
    assert network.detection == {output.name: HEAD}
    assert network.labels == LABELS


def test_heads_and_labels_that_do_not_fit_are_not_converted() -> None:
    with pytest.raises(ConversionError, match=r"expected 2 x \(5 \+ classes\)"):
        convert_graph(source_graph(), detection=DetectionHead(((1, 1), (2, 2))))
    with pytest.raises(ConversionError, match=r"expected 2 \(classes of the boxes\), got 7"):
        convert_graph(source_graph(), detection=HEAD, labels=[str(index) for index in range(7)])
    graph = cell_detector()
    graph.detection = {"boxes": DetectionHead(((1, 1), (2, 2)))}
    graph.labels = []
    with pytest.raises(InputError, match="does not fit the anchors"):
        to_bytes(graph)


def changed(**fields: Any) -> FileContents:
    contents = parse_contents(INTACT)
    records = contents.detection.copy()
    for field, value in fields.items():
        records[field] = value
    contents.detection = records
    return contents


def refused(contents: FileContents) -> str:
    with pytest.raises(ModelFormatError) as caught:
        parse_contents(file_bytes(contents))
    return str(caught.value)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"output": 1}, "output 1 does not exist"),
        ({"kind": 0}, "unknown kind 0"),
        ({"kind": 2}, "unknown kind 2"),
        ({"anchor_count": 0}, "0 anchors, expected 1 to 16"),
        ({"anchor_count": 17}, "17 anchors, expected 1 to 16"),
        ({"anchor_count": 2}, "side"),
        ({"anchors": np.nan}, "side"),
        ({"anchors": -1.0}, "side"),
        ({"anchors": np.inf}, "side"),
        ({"anchor_count": 2, "anchors": 1.0}, "2 anchors do not fit"),
        ({"anchor_count": 7, "anchors": 1.0}, "7 anchors do not fit"),
    ],
    ids=str,
)
def test_damaged_heads_are_refused(fields: dict[str, Any], word: str) -> None:
    text = refused(changed(**fields))
    assert word in text


def test_an_output_is_described_once() -> None:
    contents = parse_contents(INTACT)
    contents.detection = np.repeat(contents.detection, 2)
    text = refused(contents)
    assert "2 records for 1 outputs" in text


def test_labels_are_counted_by_the_boxes() -> None:
    contents = parse_contents(INTACT)
    contents.labels = contents.labels[:1]
    text = refused(contents)
    assert "1 labels for" in text and "2 classes" in text


def test_reserved_fields_and_spare_anchors_are_ignored(tmp_path: Path) -> None:
    contents = changed(reserved=7)
    contents.detection["anchors"][:, 1:] = np.nan
    content = file_bytes(contents)
    assert graph_from_bytes(content).detection == {"boxes": HEAD}
    assert loaded(content, tmp_path).detection == {"boxes": HEAD}
