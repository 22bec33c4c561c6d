"""TensorFlow Lite files that lie about places, sizes and order are one line of error."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from phonebit.converter.importers.tflite.importer import import_tflite
from phonebit.errors import ConversionError, PhoneBitError

LCE = Path(__file__).parent / "fixtures" / "lce"
GOOD = (LCE / "results_of_bits.tflite").read_bytes()
Change = Callable[[bytearray, Any], None]


def field(table: Any, slot: int) -> int:
    """Where a table keeps a field: a number, or the offset to what it refers to."""
    return int(table._tab.Pos + table._tab.Offset(4 + 2 * slot))


def vector(content: bytes, place: int) -> int:
    """Where the length of a vector is that a field refers to."""
    return place + int(struct.unpack_from("<I", content, place)[0])


def set_shape(number: int) -> Change:
    def change(content: bytearray, model: Any) -> None:
        graph = model.Subgraphs(0)
        (place,) = graph.InputsAsNumpy()
        struct.pack_into("<i", content, vector(content, field(graph.Tensors(place), 0)) + 8, number)

    return change


def set_operand(place: int) -> Change:
    def change(content: bytearray, model: Any) -> None:
        operator = model.Subgraphs(0).Operators(0)
        struct.pack_into("<i", content, vector(content, field(operator, 1)) + 4, place)

    return change


def set_length(read: Callable[[Any], Any], slot: int, length: int) -> Change:
    """A vector that says it has more elements."""

    def change(content: bytearray, model: Any) -> None:
        struct.pack_into("<I", content, vector(content, field(read(model), slot)), length)

    return change


def same_data(content: bytearray, model: Any) -> None:
    """Two buffers that refer to the same bytes."""
    buffers = [model.Buffers(index) for index in range(model.BuffersLength())]
    places = [field(buffer, 0) for buffer in buffers if buffer.DataLength() > 64]
    target = max(vector(content, place) for place in places)
    for place in places[:2]:
        struct.pack_into("<I", content, place, target - place)


def no_filters(content: bytearray, model: Any) -> None:
    """A kernel of other sizes than its data."""
    graph = model.Subgraphs(0)
    kernel = graph.Tensors(graph.Operators(1).Inputs(1))
    struct.pack_into("<i", content, vector(content, field(kernel, 0)) + 4, 1 << 30)


def first_operator(model: Any) -> Any:
    return model.Subgraphs(0).Operators(0)


CHANGES: dict[str, tuple[Change, str]] = {
    "huge input": (set_shape(1 << 30), "open or impossible shape"),
    "negative input": (set_shape(-1), "open or impossible shape"),
    "cycle": (set_operand(21), "which nothing before it computes.*cycle"),
    "missing tensor": (set_operand(1 << 20), "is damaged"),
    "many tensors": (set_length(lambda m: m.Subgraphs(0), 0, 1 << 31), "too many tables"),
    "long list": (set_length(first_operator, 1, 1 << 30), "is damaged"),
    "long data": (set_length(lambda m: m.Buffers(5), 0, 1 << 30), "is damaged"),
    "shared data": (same_data, "buffers that overlap"),
    "huge kernel": (no_filters, "a tensor of impossible size"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_inconsistent_files_are_one_line_of_error(name: str, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    content = bytearray(GOOD)
    change(content, tflite.Model.GetRootAs(GOOD, 0))
    path = tmp_path / "model.tflite"
    path.write_bytes(bytes(content))
    with pytest.raises(ConversionError, match=message) as caught:
        import_tflite(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, GOOD[:8], GOOD[:600], b"PK\x03\x04"])
def test_other_and_truncated_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match=r"is no TensorFlow Lite file|is damaged"):
        import_tflite(path)


def test_data_after_the_flatbuffer_is_refused(tmp_path: Path) -> None:
    """Buffers of models over 2 GB have an offset and a size instead of data."""
    import flatbuffers

    builder = flatbuffers.Builder()
    tflite.BufferStart(builder)
    tflite.BufferAddOffset(builder, 64)
    tflite.BufferAddSize(builder, 1 << 40)
    buffer = tflite.BufferEnd(builder)
    tflite.ModelStartBuffersVector(builder, 1)
    builder.PrependUOffsetTRelative(buffer)
    buffers = builder.EndVector()
    tflite.SubGraphStart(builder)
    graph = tflite.SubGraphEnd(builder)
    tflite.ModelStartSubgraphsVector(builder, 1)
    builder.PrependUOffsetTRelative(graph)
    graphs = builder.EndVector()
    tflite.ModelStart(builder)
    tflite.ModelAddSubgraphs(builder, graphs)
    tflite.ModelAddBuffers(builder, buffers)
    builder.Finish(tflite.ModelEnd(builder), file_identifier=b"TFL3")
    path = tmp_path / "large.tflite"
    path.write_bytes(bytes(builder.Output()))
    with pytest.raises(ConversionError, match="keeps data outside of its flatbuffer"):
        import_tflite(path)


@pytest.mark.parametrize("name", ["results_of_bits", "integers", "ordinary_layers"])
def test_damaged_files_never_crash(name: str, tmp_path: Path) -> None:
    """Bytes changed or cut off at random: an error of PhoneBit's, or a graph."""
    good = (LCE / f"{name}.tflite").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.tflite"
    refused = 0
    for _ in range(150):
        content = bytearray(good)
        for place in rng.integers(len(content), size=int(rng.integers(1, 30))):
            content[place] = int(rng.choice([0, 1, 4, 127, 128, 255, content[place] ^ 4]))
        cut = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        path.write_bytes(bytes(content[:cut]))
        try:
            import_tflite(path)
        except PhoneBitError as error:
            assert "bug in PhoneBit" not in str(error), error
            refused += 1
    assert refused > 50
