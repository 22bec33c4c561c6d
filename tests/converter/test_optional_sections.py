"""PREPROCESSING and LABELS: they travel, and damage is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phonebit import Network
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue import AddTensor, Epilogue
from phonebit.converter.reader import graph_from_bytes
from phonebit.converter.writer import to_bytes
from phonebit.errors import ConversionError, InputError, ModelFormatError
from phonebit.format.contents import FileContents
from phonebit.format.reader import parse_contents
from phonebit.format.records import PREPROCESSING, ColorOrder, DataType, SectionKind
from phonebit.format.writer import file_bytes, seal
from phonebit.images.preprocessing import Interpolation, Preprocessing, Resize
from support import golden
from support.engine_net import Net

INTACT = to_bytes(golden.described_classifier())
GOLDEN = Path(__file__).parents[1] / "golden" / "v1" / "tiny_classifier.pbit"


def loaded(content: bytes, folder: Path) -> Network:
    path = folder / "file.pbit"
    path.write_bytes(content)
    return Network.load(path, device="cpu", threads=1)


def two_inputs(channels: int, labels: list[str]) -> Graph:
    """An image and another map of the same shape, added up."""
    net = Net("two_inputs")
    first = net.input("first", (4, 6, channels), DataType.U8)
    second = net.input("second", (4, 6, channels))
    graph = net.done(net.op("sum", Elementwise(Epilogue([AddTensor(1)])), first, second))
    graph.labels = labels
    return graph


def test_labels_and_rules_reach_the_graph_and_the_runtime(tmp_path: Path) -> None:
    graph = golden.described_classifier()
    (name,) = graph.inputs
    expected = replace(graph.preprocessing[name], color=ColorOrder.GRAY)
    again = graph_from_bytes(INTACT)
    assert (again.labels, again.preprocessing) == (graph.labels, {name: expected})
    network = loaded(INTACT, tmp_path)
    assert (network.labels, network.preprocessing) == (graph.labels, {name: expected})
    assert to_bytes(again) == INTACT


def test_each_input_keeps_its_own_rule(tmp_path: Path) -> None:
    graph = two_inputs(3, ["red", "green", "blue"])
    rules = {
        "second": Preprocessing(
            (0.0, 1.0), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), ColorOrder.BGR,
            Resize.SHORTER_SIDE, 7, interpolation=Interpolation.BICUBIC,
        ),
        "first": Preprocessing((0.0, 255.0), color=ColorOrder.NONE, resize=Resize.LETTERBOX),
    }  # fmt: skip
    graph.preprocessing = rules
    network = loaded(to_bytes(graph), tmp_path)
    assert network.preprocessing == graph_from_bytes(to_bytes(graph)).preprocessing == rules
    assert network.labels == ["red", "green", "blue"]


def test_inputs_of_many_channels_have_one_mean_for_all(tmp_path: Path) -> None:
    graph = two_inputs(7, [])
    rule = Preprocessing((0.0, 1.0), 0.1, 0.3, ColorOrder.NONE)
    graph.preprocessing = {"first": rule}
    assert loaded(to_bytes(graph), tmp_path).preprocessing == {"first": rule}
    assert rule.scale(7).shape == (7,)


def test_files_without_the_sections_tell_nothing(tmp_path: Path) -> None:
    content = to_bytes(golden.tiny_classifier())
    network = loaded(content, tmp_path)
    assert (network.labels, network.preprocessing) == ([], {})
    contents = parse_contents(content)
    assert contents.preprocessing.size == contents.labels.size == 0


def test_old_files_have_both_in_their_metadata(tmp_path: Path) -> None:
    contents = parse_contents(to_bytes(golden.tiny_classifier()))
    scale, offset = float(np.float32(2 / 255)), -1.0
    labels = [str(index) for index in range(10)]
    contents.metadata = {"input": {"scale": scale, "offset": offset}, "labels": labels}
    network = loaded(file_bytes(contents), tmp_path)
    assert network.labels == labels == graph_from_bytes(file_bytes(contents)).labels
    (rule,) = network.preprocessing.values()
    assert (rule.color, rule.resize) == (ColorOrder.GRAY, Resize.STRETCH)
    assert (rule.scale(1), rule.offset(1)) == (np.float32(scale), np.float32(offset))


@pytest.mark.parametrize(
    "meaning",
    [3, {}, {"scale": "1", "offset": 0}, {"scale": 0, "offset": 1}, {"scale": 1e400, "offset": 0}],
)
def test_nonsense_in_old_metadata_counts_as_absent(tmp_path: Path, meaning: object) -> None:
    contents = parse_contents(to_bytes(golden.tiny_classifier()))
    contents.metadata = {"input": meaning, "labels": 7}
    network = loaded(file_bytes(contents), tmp_path)
    assert (network.labels, network.preprocessing) == ([], {})


def test_golden_files_tell_nothing_and_load(tmp_path: Path) -> None:
    network = loaded(GOLDEN.read_bytes(), tmp_path)
    assert (network.labels, network.preprocessing) == ([], {})


# --- what cannot be written ---


def test_labels_and_rules_that_do_not_fit_are_not_written() -> None:
    graph = golden.described_classifier()
    graph.labels = ["one"]
    with pytest.raises(ConversionError, match=r"number of labels.*expected 10, got 1"):
        to_bytes(graph)
    graph = golden.described_classifier()
    graph.preprocessing = {graph.inputs[0]: Preprocessing((0, 1), color=ColorOrder.RGB)}
    with pytest.raises(InputError, match="expected 3 for colour order rgb, got 1"):
        to_bytes(graph)


# --- damage ---


def changed(field: str, value: Any) -> FileContents:
    contents = parse_contents(INTACT)
    records = contents.preprocessing.copy()
    records[field] = value
    contents.preprocessing = records
    return contents


def refused(contents: FileContents) -> str:
    with pytest.raises(ModelFormatError) as caught:
        parse_contents(file_bytes(contents))
    return str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("input", 1, "does not exist"),
        ("color_order", 5, "unknown color_order 5"),
        ("color_order", ColorOrder.BGR, "has 3 channels"),
        ("resize", 3, "unknown resize 3"),
        ("interpolation", 3, "unknown interpolation 3"),
        ("fill_level", 256, "fill_level is 256"),
        ("low", np.nan, "two different finite"),
        ("low", np.inf, "two different finite"),
        ("high", -1.0, "two different finite"),
        ("mean", np.nan, "finite"),
        ("mean", -np.inf, "finite"),
        ("deviation", 0.0, "above 0"),
        ("deviation", -1.0, "above 0"),
        ("deviation", np.nan, "finite"),
        ("deviation", 1e-300, "float32 cannot hold"),
        ("mean", 1e300, "float32 cannot hold"),
    ],
)
def test_damaged_rules_are_refused(field: str, value: Any, word: str) -> None:
    text = refused(changed(field, value))
    assert word in text


@pytest.mark.parametrize("resize_to", [0, 27, (1 << 20) + 1])
def test_a_shorter_side_that_the_cut_does_not_fit_into_is_refused(
    tmp_path: Path, resize_to: int
) -> None:
    contents = changed("resize", Resize.SHORTER_SIDE)
    contents.preprocessing["resize_to"] = resize_to
    text = refused(contents)
    assert f"resize_to is {resize_to}, expected 28 to 1048576" in text
    contents.preprocessing["resize_to"] = 28
    assert loaded(file_bytes(contents), tmp_path).preprocessing


def test_an_input_is_described_once() -> None:
    contents = parse_contents(INTACT)
    contents.preprocessing = np.repeat(contents.preprocessing, 2)
    text = refused(contents)
    assert "2 records for 1 inputs" in text


def test_means_of_many_channels_must_be_alike() -> None:
    graph = two_inputs(7, [])
    graph.preprocessing = {"first": Preprocessing((0.0, 1.0))}
    contents = parse_contents(to_bytes(graph))
    records = contents.preprocessing.copy()
    records["mean"][0, 2] = 1.0
    contents.preprocessing = records
    text = refused(contents)
    assert "differ, but the input has 7 channels" in text


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        ([0], "1 labels"),
        ([0] * 11, "11 labels"),
        ([0] * 9 + [1 << 20], "outside STRINGS"),
    ],
)
def test_damaged_labels_are_refused(labels: list[int], word: str) -> None:
    contents = parse_contents(INTACT)
    contents.labels = np.array(labels, "<u4")
    text = refused(contents)
    assert word in text


def test_reserved_fields_and_those_of_other_ways_to_resize_are_ignored(tmp_path: Path) -> None:
    contents = changed("reserved", 7)
    contents.preprocessing["resize_to"] = 3
    expected = graph_from_bytes(INTACT).preprocessing
    assert graph_from_bytes(file_bytes(contents)).preprocessing == expected
    assert loaded(file_bytes(contents), tmp_path).preprocessing == expected


def section_offset(content: bytes, kind: SectionKind) -> int:
    count = struct.unpack_from("<I", content, 12)[0]
    for at in range(64, 64 + 32 * count, 32):
        if struct.unpack_from("<I", content, at)[0] == kind:
            return int(struct.unpack_from("<Q", content, at + 8)[0])
    raise AssertionError(f"no section {kind.name}")


WORDS = st.tuples(
    st.integers(0, PREPROCESSING.itemsize // 4 - 1),
    st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1)),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_any_words_in_a_rule_are_refused_or_read_alike_by_reader_and_runtime(
    tmp_path: Path, words: list[tuple[int, int]]
) -> None:
    content = bytearray(INTACT)
    begin = section_offset(INTACT, SectionKind.PREPROCESSING)
    for word, value in words:
        struct.pack_into("<I", content, begin + 4 * word, value)
    sealed = seal(content)
    try:
        expected = graph_from_bytes(sealed).preprocessing
    except ModelFormatError:
        with pytest.raises(ModelFormatError):
            loaded(sealed, tmp_path)
    else:
        assert loaded(sealed, tmp_path).preprocessing == expected
