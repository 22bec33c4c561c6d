"""Our reader of HDF5 against h5py: the same content of sound files, an error for damaged ones."""

from __future__ import annotations

import io
import random
import re
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from phonebit.budget import IN_ALL, Kind
from phonebit.converter.importers.hdf5 import Dataset, Group, open_hdf5
from phonebit.converter.importers.keras import files
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.importers.keras.weights import string_list
from phonebit.errors import ConversionError, PhoneBitError

FIXTURES = Path(__file__).with_name("fixtures")
KERAS_FILES = sorted(p for p in FIXTURES.rglob("*") if p.suffix in (".h5", ".keras"))


def plain(value: Any) -> Any:
    """A value of h5py's as ours are: str, a flat list of str, or an array."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return [plain(item) for item in value.ravel().tolist()]
    return value


def assert_same(expected: h5py.Group, found: Group) -> None:
    assert set(found.attributes) == set(expected.attrs)
    for name, value in expected.attrs.items():
        np.testing.assert_array_equal(found.attributes[name], plain(value), err_msg=name)
    assert found.names() == sorted(expected)
    for name, wanted in expected.items():
        child = found.child(name)
        if isinstance(wanted, h5py.Dataset):
            assert isinstance(child, Dataset)
            assert (child.shape, child.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_array_equal(child.read(), wanted[()])
        else:
            assert isinstance(child, Group)
            assert_same(wanted, child)


def assert_same_content(content: bytes) -> None:
    with h5py.File(io.BytesIO(content)) as expected, open_hdf5(io.BytesIO(content)) as found:
        assert_same(expected, found)


@pytest.mark.parametrize("path", KERAS_FILES, ids=lambda path: path.name)
def test_files_of_keras_are_read_as_h5py_reads_them(path: Path) -> None:
    if path.suffix == ".h5":
        assert_same_content(path.read_bytes())
    else:
        with zipfile.ZipFile(path) as archive:
            assert_same_content(archive.read("model.weights.h5"))


@pytest.mark.parametrize("version", [("earliest", "latest"), "v108", "latest"])
@pytest.mark.parametrize("count", [3, 30, 1500])
def test_groups_of_every_size_and_version_are_read(count: int, version: Any) -> None:
    """Few links and attributes lie in the header, many in trees and heaps of several depths."""
    content = io.BytesIO()
    with h5py.File(content, "w", libver=version) as file:
        file.attrs["model_config"] = "x" * 100_000
        file.attrs["fixed"] = np.array([b"abc", b"d"], "S5")
        file.attrs["numbers"] = np.arange(6.0).reshape(2, 3)
        file.attrs["empty"] = ""
        for i in range(min(count, 60) if version[0] == "earliest" else count):
            file.attrs[f"attribute {i}"] = f"value {i}"
        for i in range(count):  # h5py takes milliseconds per group
            file[f"layer{i}/vars/0" if i < 30 else f"layer{i}"] = np.arange(6, dtype=np.float32) + i
        file["scalar"], file["big"] = np.float32(3), np.arange(5, dtype=">f4")
    assert_same_content(content.getvalue())


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (16, 8, 3)},
        {"chunks": (50, 30, 7), "compression": "gzip"},
        {"chunks": (16, 8, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8])
def test_chunks_and_gzip_are_read(options: dict[str, Any], dtype: type) -> None:
    content = io.BytesIO()
    values = np.random.default_rng(0).normal(size=(50, 30, 7)) * 100
    with h5py.File(content, "w") as file:
        file.create_dataset("x", data=values.astype(dtype), **options)
    assert_same_content(content.getvalue())


def test_a_single_chunk_of_hdf5_1_10_is_read() -> None:
    content = io.BytesIO()
    with h5py.File(content, "w", libver="v110") as file:
        for shape in [(5, 4, 3, 2), (7,), (300, 300)]:
            values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            file.create_dataset(f"{shape}", data=values, chunks=shape, compression="gzip")
    assert_same_content(content.getvalue())


@pytest.mark.parametrize("options", [{"compression": "lzf"}, {"compression": "szip"}])
def test_other_compression_is_named(options: dict[str, Any]) -> None:
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        try:
            file.create_dataset("x", data=np.zeros((8, 8)), **options)
        except ValueError:
            pytest.skip("this h5py cannot write it")
    with open_hdf5(content) as found, pytest.raises(ConversionError, match="filter"):
        child = found.child("x")
        assert isinstance(child, Dataset)
        child.read()


def test_the_byte_that_ends_the_hdf5_library_is_an_error(tmp_path: Path) -> None:
    data = bytearray((FIXTURES / "depthwise_layers.h5").read_bytes())
    data[1009] = 254  # in a type: HDF5 2.0 ends in a segmentation fault
    (tmp_path / "crash.h5").write_bytes(data)
    with pytest.raises(ConversionError, match="a type that Keras does not write"):
        import_larq(tmp_path / "crash.h5")


def mutant(content: bytes, rng: random.Random) -> bytes:
    """A byte, a number, or a piece of the file elsewhere."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(min(len(data), rng.choice((256, 4096, len(data)))))
        size = rng.choice((1, 1, 2, 4, 8))
        numbers = (0, 1, (1 << 8 * size) - 1, rng.randrange(len(data)), rng.randrange(256))
        value = rng.choice(numbers) % (1 << 8 * size)
        data[at : at + size] = value.to_bytes(size, "little")
        if rng.random() < 0.1:
            begin = rng.randrange(len(data))
            data[at : at + 64] = data[begin : begin + 64]
    return bytes(data)


@pytest.mark.parametrize("suffix", [".h5", ".keras"])
def test_damage_is_an_error_or_harmless_and_never_slow(suffix: str, tmp_path: Path) -> None:
    rng = random.Random(2027)
    originals = [path.read_bytes() for path in KERAS_FILES if path.suffix == suffix]
    path = tmp_path / f"damaged{suffix}"
    for _ in range(400):
        path.write_bytes(mutant(rng.choice(originals), rng))
        begin = time.process_time()
        try:
            import_larq(path)
        except PhoneBitError as error:
            assert "damaged" in str(error)
            assert "bug in PhoneBit" not in str(error)
        assert time.process_time() - begin < 5


def test_an_archive_is_bounded_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_CONFIG_BYTES", 1 << 20)
    monkeypatch.setattr(files, "_unpack", None)
    path = tmp_path / "bomb.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(8 << 20))
    with pytest.raises(ConversionError, match="2 files, which unpack to"):
        import_larq(path)
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(files.MAX_ENTRIES + 1):
            archive.writestr(f"{number}", "")
    with pytest.raises(ConversionError, match="10001 files"):
        import_larq(path)


def test_a_header_that_continues_in_itself_ends() -> None:
    """8,190 empty messages, then one that says where the header goes on: at its own beginning."""
    root = 96
    block = struct.pack("<HHB3x", 0, 0, 0) * 8190
    block += struct.pack("<HHB3x", 0x10, 16, 0) + struct.pack("<QQ", root + 16, len(block) + 24)
    header = struct.pack("<BxHII4x", 1, 8191, 1, len(block)) + block
    start = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    start += struct.pack("<QQQQ", 0, 2**64 - 1, root + len(header), 2**64 - 1)
    start += struct.pack("<QQII16x", 0, root, 0, 0)
    begin = time.process_time()
    file = io.BytesIO(start[:root].ljust(root, b"\0") + header)
    with pytest.raises(ConversionError, match="leads in circles"), open_hdf5(file):
        pass
    assert time.process_time() < begin + 1


def test_a_text_that_is_read_many_times_counts_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    text, stream = "A" * (1 << 16), io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.attrs.create("names", [text] + ["b"] * 40, dtype=h5py.string_dtype())
    content = bytearray(stream.getvalue())
    places = [found.start() for found in re.finditer(struct.pack("<I", len(text)), content)]
    heaps = [struct.unpack_from("<Q", content, place + 4)[0] for place in places]
    (first,) = [p for p, h in zip(places, heaps, strict=True) if content[h : h + 4] == b"GCOL"]
    for number in range(41):
        content[first + 16 * number : first + 16 * number + 16] = content[first : first + 16]
    with open_hdf5(io.BytesIO(content)) as group:
        assert group.attributes["names"] == [text] * 41
    monkeypatch.setitem(IN_ALL, Kind.TEXT, 1 << 21)
    refused = pytest.raises(ConversionError, match="too many bytes of text")
    with open_hdf5(io.BytesIO(content)) as group, refused:
        group.attributes["names"]


def test_one_long_text_does_not_make_the_others_longer(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    names = ["A" * 100_000, *(f"b{number}" for number in range(4000))]
    with h5py.File(path, "w") as file:
        file.attrs.create("names", names, dtype=h5py.string_dtype())
    begin = time.process_time()
    with open_hdf5(path) as group:
        assert string_list(group.attributes, "names") == names
    assert time.process_time() < begin + 1


def test_chunks_far_larger_than_their_array_are_refused() -> None:
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.create_dataset("x", (1000, 1), "u1", chunks=(1, 1), maxshape=(None, None))
    content = stream.getvalue()
    shape = struct.pack("<III", 1, 1, 1)  # of a chunk, and the bytes of an element
    assert content.count(shape) == 1
    content = content.replace(shape, struct.pack("<III", 1, 1 << 24, 1))
    refused = pytest.raises(ConversionError, match="1000 chunks of 16777216 bytes")
    with open_hdf5(io.BytesIO(content)) as group, refused:
        found = group.child("x")
        assert isinstance(found, Dataset)
        found.read()
