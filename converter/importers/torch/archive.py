"""Files of ``torch.export.save`` (.pt2): read as data, although PyTorch reads them as code.

``torch.export.load`` evaluates symbolic sizes, guards and names of nodes as Python, imports the
modules that a tree of arguments names, builds pickled objects and loads compiled libraries. So
PyTorch never sees the file: it reads a copy in memory, made of the parts that a network needs, each
checked by ``torch_archive_text``. There is one such copy, so that no other reading of the archive's
directory, and no later change of the file, leads to other bytes than those that were checked.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.errors import first_line
from phonebit.converter.importers.torch.archive_text import checked_payloads, checked_program
from phonebit.converter.importers.torch.export import quiet
from phonebit.errors import ConversionError

PROGRAM_FILES: Final = ("/models/", "serialized_exported_program.json")
"""What an archive holds only if it is a program: since PyTorch 2.8, and before."""
TENSORS_ONLY: Final = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
MAX_UNPACKED_BYTES: Final = 1 << 24
"""What the entries of an archive may add to its size."""
MAX_TEXT_BYTES: Final = 1 << 27
"""Of a JSON text; networks with a thousand layers have some 2 MB."""


def is_program(path: Path) -> bool:
    """Whether a file is an exported program; a file named .safetensors is none, whatever it holds.

    ``torch.export.save`` writes under any name, so that checkpoints are told apart by content.
    """
    if path.suffix.lower() == ".safetensors":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(part in name for name in archive.namelist() for part in PROGRAM_FILES)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # no archive, or damaged
        return path.suffix.lower() == ".pt2"


def load_program(path: Path) -> Any:
    """Loads an exported program; nothing in the file is executed.

    Raises:
        ConversionError: The file is damaged, holds anything that is no network of tensors, or was
            written by a version of PyTorch that the installed one cannot read.
    """
    import torch

    try:
        copy = _checked_copy(path)
        with _tensors_only(), quiet():
            return torch.export.load(copy)
    except ConversionError as error:
        raise within(path, error) from error
    except Exception as error:  # damaged archives raise whatever their bytes lead to
        raise ConversionError(
            f"is no program that PyTorch {torch.__version__} can load: {first_line(error)}",
            where=str(path),
            hint="write it with torch.export.save() and this version of PyTorch",
        ) from error


def within(path: Path, error: ConversionError) -> ConversionError:
    """An error in an entry as one of the file."""
    where = f"{path}: {error.where}" if error.where else str(path)
    return ConversionError(
        error.problems, where=where, expected=error.expected, got=error.got, hint=error.hint
    )


@contextmanager
def _tensors_only() -> Iterator[None]:
    """PyTorch's pickles hold tensors only, also where its reader would fall back to any object."""
    before = os.environ.get(TENSORS_ONLY)
    os.environ[TENSORS_ONLY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TENSORS_ONLY]
        else:
            os.environ[TENSORS_ONLY] = before


def _checked_copy(path: Path) -> io.BytesIO:
    """An archive of the parts that a network needs.

    Raises:
        ConversionError: A part is missing or is refused; ``where`` is its entry.
    """
    with zipfile.ZipFile(path) as archive:
        entries = bounded_entries(archive, path)
        old = "serialized_exported_program.json" in entries
        if not old:
            entries = {name.partition("/")[2]: info for name, info in entries.items()}
        read = _Entries(archive, entries)
        parts = dict(_parts_before_2_8(read) if old else _parts(read))
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as clean:
        for name, content in parts.items():
            clean.writestr(name if old else f"program/{name}", content)
    copy.seek(0)
    return copy


def bounded_entries(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The entries of a file that PyTorch wrote, which compresses nothing but TorchScript's texts.

    Raises:
        ConversionError: They unpack to far more than the file holds; ``where`` is the entry.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    left = path.stat().st_size + MAX_UNPACKED_BYTES
    for info in archive.infolist():
        left -= info.file_size
        if info.filename in entries or left < 0:
            raise ConversionError("unpacks to more than the file holds", where=info.filename)
        entries[info.filename] = info
    return entries


class _Entries:
    """The entries of an archive, and what is read of them."""

    def __init__(self, archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]) -> None:
        self._archive = archive
        self._entries = entries

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def content(self, name: str) -> bytes:
        if name not in self:
            raise ConversionError("is missing; the file holds no program", where=name)
        return self._archive.read(self._entries[name])

    def json(self, name: str) -> Any:
        """Raises: ConversionError if it is no JSON."""
        if name in self and self._entries[name].file_size > MAX_TEXT_BYTES:
            raise ConversionError("is too large", where=name, expected=f"{MAX_TEXT_BYTES} bytes")
        try:
            return json.loads(self.content(name))
        except (ValueError, RecursionError) as error:
            raise ConversionError("is no JSON text", where=name) from error

    def number(self, name: str) -> bytes:
        """A version: digits and dots."""
        content = self.content(name).strip()
        if not re.fullmatch(rb"[0-9]+(\.[0-9]+)*", content):
            raise ConversionError("is no version", where=name)
        return content


def _parts(read: _Entries) -> Iterator[tuple[str, bytes]]:
    """Since PyTorch 2.8: tensors as plain bytes, described by JSON."""
    if "byteorder" in read and read.content("byteorder") != b"little":
        raise ConversionError("is not 'little'", where="byteorder")
    yield "archive_format", b"pt2"
    yield "archive_version", read.number("archive_version")
    version = ".data/version" if ".data/version" in read else "version"
    yield version, read.number(version)
    yield "byteorder", b"little"
    yield "models/model.json", _dumped(checked_program(read.json("models/model.json")))
    yield "data/sample_inputs/model.pt", b""
    for kind, prefix in (("weights", "weight_"), ("constants", "tensor_")):
        folder = f"data/{kind}"
        if f"{folder}/model.pt" in read:
            yield f"{folder}/model.pt", _only_tensors(read, f"{folder}/model.pt")
            continue
        name = f"{folder}/model_{kind}_config.json"
        config = checked_payloads(read.json(name), name, prefix)
        yield name, _dumped(config)
        for payload in sorted({entry["path_name"] for entry in config["config"].values()}):
            yield f"{folder}/{payload}", read.content(f"{folder}/{payload}")


def _parts_before_2_8(read: _Entries) -> Iterator[tuple[str, bytes]]:
    """Tensors as pickles that PyTorch reads with ``weights_only``."""
    name = "serialized_exported_program.json"
    yield "version", read.number("version")
    yield name, _dumped(checked_program(read.json(name)))
    yield "serialized_example_inputs.pt", b""
    for part in ("state_dict", "constants"):
        suffix = "pt" if f"serialized_{part}.pt" in read else "json"
        name = f"serialized_{part}.{suffix}"
        yield name, _only_tensors(read, name)


def _only_tensors(read: _Entries, name: str) -> bytes:
    """A pickle of tensors by name."""
    import torch

    content = read.content(name)
    if not content:
        return content
    try:
        with quiet():
            tensors = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors.values())
    except Exception as error:  # damaged pickles raise whatever their bytes lead to
        raise ConversionError(
            f"is damaged, or holds other objects than tensors ({type(error).__name__})", where=name
        ) from error
    if not plain:
        raise ConversionError("holds other objects than tensors", where=name)
    return content


def _dumped(content: Any) -> bytes:
    return json.dumps(content).encode()
