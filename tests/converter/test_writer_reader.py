"""Files: written graphs read back alike, damaged ones give one clear error."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Node, TensorType
from phonebit.converter.ops import Input
from phonebit.converter.reader import graph_from_bytes, read_graph
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import ConversionError, ModelFormatError
from phonebit.format.reader import parse_contents, read_contents
from phonebit.format.records import (
    ALIGNMENT,
    CONSTANT,
    HEADER,
    OP,
    SECTION,
    STEP,
    TENSOR,
    DataType,
    OpKind,
    StepKind,
)
from phonebit.format.writer import file_bytes, seal
from phonebit.output_files import write_atomically
from support import golden

GRAPHS = golden.golden_graphs()
FUZZED = [
    to_bytes(GRAPHS[name])
    for name in (
        "residual_block_31", "u8_first_layer_1_33", "pooled_bits_33", "binary_depthwise_33_pad-1",
        "selected_channels", "two_slopes_31", "rounded_31",
    )
]  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_a_written_graph_reads_back_and_computes_the_same(name: str) -> None:
    graph = GRAPHS[name]
    content = to_bytes(graph, {"producer": "test"})
    again = graph_from_bytes(content)
    assert again.types == graph.types
    assert [node.name for node in again.nodes] == [node.name for node in graph.nodes]
    inputs = golden.integer_inputs(graph)
    before, after = run(graph, inputs, graph.types), run(again, inputs, graph.types)
    for value, array in before.items():
        np.testing.assert_array_equal(after[value], array, err_msg=value)
    assert to_bytes(again, {"producer": "test"}) == content
    if name not in golden.NAMES:
        return
    written, stored = parse_contents(content), read_contents(golden.FOLDER / f"{name}.pbit")
    for part in ("tensors", "constants", "operands", "steps", "ops", "inputs", "outputs"):
        np.testing.assert_array_equal(getattr(written, part), getattr(stored, part), part)
    assert written.data == stored.data


def test_sections_and_constants_are_aligned_and_sealed() -> None:
    content = to_bytes(GRAPHS["tiny_classifier"])
    header = np.frombuffer(content, HEADER, 1)[0]
    table = np.frombuffer(content, SECTION, header["section_count"], HEADER.itemsize)
    assert all(record["offset"] % ALIGNMENT == 0 for record in table)
    contents = parse_contents(content)
    assert all(record["offset"] % ALIGNMENT == 0 for record in contents.constants)
    assert seal(bytearray(content)) == content


def test_metadata_and_labels_travel_with_the_file() -> None:
    graph = golden.tiny_classifier()
    graph.labels = ["Käse", "犬", *map(str, range(8))]
    contents = parse_contents(to_bytes(graph, {"source": {"framework": "test"}}))
    assert contents.metadata["source"] == {"framework": "test"}
    assert graph_from_bytes(to_bytes(graph)).labels == graph.labels


def test_equal_constants_are_stored_once() -> None:
    graph = GRAPHS["float_layers"]
    contents = to_contents(graph)
    payloads = {
        bytes(contents.data[int(r["offset"]) : int(r["offset"] + r["size_bytes"])])
        for r in contents.constants
    }
    assert len(payloads) == len(contents.constants)


# --- damaged files ------------------------------------------------------------------------------


def reads_or_complains(content: bytes) -> None:
    """Whatever the bytes are: a graph, or ModelFormatError, and nothing else."""
    try:
        graph_from_bytes(content)
    except ModelFormatError as error:
        assert len(str(error)) > 10


@pytest.mark.parametrize("content", FUZZED[:2])
def test_every_truncation_is_refused(content: bytes) -> None:
    for length in (*range(0, 200), *range(200, len(content), 101)):
        with pytest.raises(ModelFormatError):
            graph_from_bytes(content[:length])


def test_any_flipped_bit_breaks_the_checksum() -> None:
    content = FUZZED[0]
    for position in range(0, len(content), 37):
        damaged = bytearray(content)
        damaged[position] ^= 4
        with pytest.raises(ModelFormatError):
            graph_from_bytes(bytes(damaged))


INTERESTING = (0, 1, 2, 3, 7, 31, 33, 64, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 20)


@settings(max_examples=600)
@given(
    st.sampled_from(range(len(FUZZED))),
    st.lists(
        st.tuples(
            st.floats(0, 1, exclude_max=True),
            st.one_of(st.sampled_from(INTERESTING), st.integers(0, 2**32 - 1)),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_forged_words_with_a_valid_checksum_never_crash_the_reader(
    which: int, changes: list[tuple[float, int]]
) -> None:
    forged = bytearray(FUZZED[which])
    # Weights say nothing about structure: aim at the header, the tables and the names.
    end = len(forged) - len(parse_contents(FUZZED[which]).data)
    for place, word in changes:
        struct.pack_into("<I", forged, int(place * (end // 4)) * 4, word)
    reads_or_complains(seal(forged))


@settings(max_examples=150)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(junk: bytes) -> None:
    with pytest.raises(ModelFormatError):
        graph_from_bytes(junk)
    padded = bytearray(FUZZED[0])
    padded[64 : 64 + len(junk)] = junk
    reads_or_complains(seal(padded))


@pytest.mark.parametrize("table, field", [
    *(("tensors", name) for name in TENSOR.names or () if name != "reserved"),
    *(("constants", name) for name in CONSTANT.names or () if name != "reserved"),
    *(("steps", name) for name in STEP.names or () if name != "reserved"),
    *(("ops", name) for name in OP.names or () if name != "reserved"),
])  # fmt: skip
@pytest.mark.parametrize("value", [0, 2, 77, 2**31 - 1])
def test_every_field_is_checked_before_it_is_used(table: str, field: str, value: int) -> None:
    contents = parse_contents(FUZZED[0])
    records = getattr(contents, table).copy()
    records[field][-1] = value
    setattr(contents, table, records)
    reads_or_complains(file_bytes(contents))


def test_padding_of_billions_is_refused_before_it_costs_time_or_memory() -> None:
    contents = parse_contents(to_bytes(GRAPHS["float_layers"]))
    ops = contents.ops.copy()
    pool = np.flatnonzero(ops["kind"] == OpKind.MAX_POOL2D)[0]
    for field in ("pad_top", "pad_bottom"):
        ops[field][pool] = 2**31 - 1
    contents.ops = ops
    with pytest.raises(ModelFormatError, match=r"max_pool.*padding 2147483647"):
        graph_from_bytes(file_bytes(contents))


@pytest.mark.parametrize("index", [-2, 37, 2**31 - 1])
def test_channels_that_do_not_exist_are_refused(index: int) -> None:
    contents = parse_contents(to_bytes(GRAPHS["selected_channels"]))
    data = bytearray(contents.data)
    at = int(contents.constants[contents.ops[0]["weights"]]["offset"])
    struct.pack_into("<i", data, at, index)
    contents.data = bytes(data)
    with pytest.raises(ModelFormatError, match=r"mixed.*expected -1 \(zeros\) to 36"):
        graph_from_bytes(file_bytes(contents))


def test_indices_are_integers_and_slopes_of_both_signs_equally_many() -> None:
    contents = parse_contents(to_bytes(GRAPHS["selected_channels"]))
    constants = contents.constants.copy()
    constants["dtype"][contents.ops[0]["weights"]] = DataType.F32
    contents.constants = constants
    with pytest.raises(ModelFormatError, match=r"mixed.*34 x f32, expected 34 x i32"):
        graph_from_bytes(file_bytes(contents))
    contents = parse_contents(to_bytes(GRAPHS["two_slopes_31"]))
    steps = contents.steps.copy()
    prelu = np.flatnonzero(steps["kind"] == StepKind.PRELU)
    steps["constant_b"][prelu[0]] = steps["constant_b"][prelu[1]]
    contents.steps = steps
    with pytest.raises(ModelFormatError, match="372 x f32, expected 31 x f32"):
        graph_from_bytes(file_bytes(contents))


def test_steps_without_parameters_keep_their_kinds() -> None:
    kinds = to_contents(GRAPHS["float_layers"]).steps["kind"].tolist()
    assert kinds[-2:] == [StepKind.TANH, StepKind.SIGMOID]
    assert StepKind.ROUND in to_contents(GRAPHS["rounded_31"]).steps["kind"]


def test_a_softmax_is_written_as_what_it_is() -> None:
    kinds = [int(op["kind"]) for op in to_contents(GRAPHS["log_softmax"]).ops]
    assert kinds == [OpKind.SELECT_CHANNELS, OpKind.LOG_SOFTMAX, OpKind.LOG_SOFTMAX]
    assert OpKind.SOFTMAX in to_contents(GRAPHS["float_layers"]).ops["kind"]


def test_names_must_be_unique_utf8_text() -> None:
    contents = parse_contents(FUZZED[0])
    contents.strings = contents.strings.replace(b"gate\0", b"\xff\xfe\xfd\xfc\0")
    with pytest.raises(ModelFormatError, match="UTF-8"):
        graph_from_bytes(file_bytes(contents))
    contents = parse_contents(FUZZED[0])
    tensors = contents.tensors.copy()
    tensors["name_offset"][1] = tensors["name_offset"][0]
    contents.tensors = tensors
    with pytest.raises(ModelFormatError, match="taken by an earlier tensor"):
        graph_from_bytes(file_bytes(contents))


def test_metadata_that_is_no_object_is_refused() -> None:
    contents = parse_contents(FUZZED[0])
    contents.metadata = [1, 2]  # type: ignore[assignment]
    with pytest.raises(ModelFormatError, match="metadata"):
        parse_contents(file_bytes(contents))
    deep = json.loads("{}")
    contents.metadata = {"x": deep}
    sealed = file_bytes(contents)
    nested = sealed.replace(b'{"x": {}}', b"[[[[[[[[[")
    with pytest.raises(ModelFormatError, match="metadata"):
        parse_contents(seal(bytearray(nested)))


def test_a_newer_version_is_refused_by_name() -> None:
    content = bytearray(FUZZED[0])
    struct.pack_into("<I", content, 4, 2)
    with pytest.raises(ModelFormatError, match="version 2, this engine reads version 1; update"):
        parse_contents(seal(content))


def test_unknown_optional_sections_are_skipped_and_unknown_required_ones_refused() -> None:
    content = bytearray(FUZZED[0])
    count = struct.unpack_from("<I", content, 12)[0]
    metadata = next(
        64 + 32 * index
        for index in range(count)
        if struct.unpack_from("<I", content, 64 + 32 * index)[0] == 0x8001
    )
    struct.pack_into("<I", content, metadata, 0x8ABC)
    assert graph_from_bytes(seal(content)).outputs
    struct.pack_into("<I", content, metadata, 10)
    with pytest.raises(ModelFormatError, match="unknown section kind"):
        graph_from_bytes(seal(content))


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"none\.pbit: no such file"):
        read_graph(tmp_path / "none.pbit")


# --- writing --------------------------------------------------------------------------------------


def test_writing_replaces_in_one_step_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "model.pbit"
    target.write_bytes(b"old")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["model.pbit"]
    assert target.stat().st_mode & 0o444


@pytest.mark.skipif(sys.platform == "win32", reason="no permissions of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    target, new = tmp_path / "model.pbit", tmp_path / "new.pbit"
    target.write_bytes(b"old")
    target.chmod(mode)
    before = os.umask(0o022)
    try:
        write_atomically(target, b"new")
        write_atomically(new, b"new")
    finally:
        os.umask(before)
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", mode)
    assert new.stat().st_mode & 0o777 == 0o644


def test_a_name_may_be_as_long_as_any(tmp_path: Path) -> None:
    for name in ("n" * 250 + ".pbit", "n"):
        write_atomically(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "model.pbit"
    target.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_the_format_cannot_express_is_refused_with_all_reasons() -> None:
    from phonebit.converter.ops import Pad, Sign, Softmax

    nodes = [
        Node("x", Input(), [], value="x"),
        Node("sign", Sign(), ["x"], value="s"),
        Node("pad", Pad((1, 1, 1, 1), 1.0), ["s"], value="p"),
        Node("soft", Softmax(), ["p"], value="o"),
    ]
    graph = Graph("g", nodes, {"x": TensorType((2, 2, 3), DataType.F32)}, ["x"], ["o"])
    with pytest.raises(ConversionError) as caught:
        to_bytes(graph)
    assert len(caught.value.problems) == 3
    assert "sign: Sign is no engine operator" in str(caught.value)
