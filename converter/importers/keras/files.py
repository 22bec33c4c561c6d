"""Opens the files that Keras writes: ``.h5`` (HDF5) and ``.keras`` (a zip archive with HDF5 in it).

A file is untrusted: sizes are bounded before anything is read, links out of the file are not
followed, and the configuration is parsed as JSON and nothing else.
"""

from __future__ import annotations

import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from phonebit.converter.importers.hdf5 import Group, is_hdf5, open_hdf5
from phonebit.converter.importers.keras.archive import ArchiveWeights
from phonebit.converter.importers.keras.config import ModelSpec, parse_model
from phonebit.converter.importers.keras.weights import (
    MAX_WEIGHT_BYTES,
    LegacyH5Weights,
    WeightSource,
)
from phonebit.errors import ConversionError

MAX_CONFIG_BYTES: Final = 64 << 20
MAX_ENTRIES: Final = 10_000
MAX_RATIO: Final = 16
"""How much larger than an archive its weights may be; Keras does not compress them."""
DAMAGED: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    KeyError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile raises on files that are not as they should be."""
with suppress(ImportError):  # Python built without liblzma: zipfile then refuses such entries
    from lzma import LZMAError

    DAMAGED += (LZMAError,)
_COPY_BYTES: Final = 1 << 20
_SAVE_WHOLE: Final = 'save the whole model, architecture and weights: model.save("model.h5")'


@dataclass
class KerasModel:
    """A model as data: its topology, its weights and the major version of Keras that wrote it."""

    spec: ModelSpec
    weights: WeightSource
    keras_major: int


@contextmanager
def open_keras(path: Path) -> Iterator[KerasModel]:
    """Opens a whole-model file; weights can be read until the context ends.

    Args:
        path: A ``.h5``/``.hdf5`` or ``.keras`` file; its content decides, not its suffix.

    Raises:
        ConversionError: if it is missing, truncated, damaged or not a whole Keras model.
    """
    with ExitStack() as stack:
        yield _opened(path, stack)


def _opened(path: Path, stack: ExitStack) -> KerasModel:
    if path.is_dir():
        raise ConversionError(
            "is a folder (a SavedModel?)",
            where=str(path),
            hint=f"load it with Keras and {_SAVE_WHOLE}",
        )
    try:
        with path.open("rb") as file:
            magic = file.read(8)
    except OSError as error:
        raise ConversionError(
            f"cannot be read: {error.strerror or error}", where=str(path)
        ) from error
    try:
        if is_hdf5(path):
            return _from_h5(stack.enter_context(open_hdf5(path)), path)
        if magic.startswith(b"PK\x03\x04"):
            return _from_archive(stack.enter_context(zipfile.ZipFile(path)), path, stack)
    except DAMAGED as error:
        raise ConversionError(
            f"the file is truncated or damaged: {first_line(error)}", where=str(path)
        ) from error
    raise ConversionError(
        "is neither an HDF5 file (.h5) nor a .keras archive", where=str(path), hint=_SAVE_WHOLE
    )


def first_line(error: BaseException) -> str:
    """The start of an exception's text."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _from_h5(file: Group, path: Path) -> KerasModel:
    if "model_config" not in file.attributes:
        weights_only = "layer_names" in file.attributes or any(
            name in file.names() for name in ("layers", "_layer_checkpoint_dependencies")
        )
        if weights_only:
            raise ConversionError("holds weights only", where=str(path), hint=_SAVE_WHOLE)
        raise ConversionError(
            "is an HDF5 file, but not a Keras model (it has no model_config)",
            where=str(path),
            hint=_SAVE_WHOLE,
        )
    spec = parse_model(_json(file.attributes["model_config"], "model_config"))
    group = file.child("model_weights")
    if not isinstance(group, Group):
        raise ConversionError("holds no weights (model_weights)", where=str(path), hint=_SAVE_WHOLE)
    version = _text(
        file.attributes.get("keras_version", group.attributes.get("keras_version", "2"))
    )
    return KerasModel(spec, LegacyH5Weights(group, spec), keras_major(version))


def _from_archive(archive: zipfile.ZipFile, path: Path, stack: ExitStack) -> KerasModel:
    _check_sizes(archive, path)
    names = set(archive.namelist())
    weights = next((n for n in ("model.weights.h5", "weights.h5") if n in names), None)
    if "config.json" not in names or weights is None:
        raise ConversionError(
            "is a zip archive, but not of Keras (config.json and model.weights.h5 expected)",
            where=str(path),
            hint=_SAVE_WHOLE,
        )
    spec = parse_model(_json(_member(archive, "config.json"), "config.json"))
    metadata = (
        _json(_member(archive, "metadata.json"), "metadata.json")
        if "metadata.json" in names
        else {}
    )
    version = metadata.get("keras_version", "3") if isinstance(metadata, dict) else "3"
    spooled = tempfile.SpooledTemporaryFile(MAX_CONFIG_BYTES)  # noqa: SIM115 (the stack closes it)
    file = stack.enter_context(spooled)
    _unpack(archive, weights, file)
    root = stack.enter_context(open_hdf5(file))
    return KerasModel(spec, ArchiveWeights(root, spec), keras_major(str(version)))


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MAX_CONFIG_BYTES:
        raise ConversionError(f"{name} is larger than {MAX_CONFIG_BYTES >> 20} MiB")
    with archive.open(name) as member:
        data = member.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        raise ConversionError(f"{name} is larger than {MAX_CONFIG_BYTES >> 20} MiB")
    return data


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Bounds an archive before anything in it is unpacked, by what its directory says."""
    entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    maximum = min(2 * MAX_WEIGHT_BYTES, MAX_CONFIG_BYTES + MAX_RATIO * path.stat().st_size)
    if len(entries) > MAX_ENTRIES or size > maximum:
        raise ConversionError(
            f"holds {len(entries)} files, which unpack to {size} bytes",
            where=str(path),
            expected=f"at most {MAX_ENTRIES} files and {maximum} bytes",
        )


def _unpack(archive: zipfile.ZipFile, name: str, target: IO[bytes]) -> None:
    """Copies a member into a temporary file, in which addresses can be sought."""
    remaining = archive.getinfo(name).file_size
    with archive.open(name) as member:
        while chunk := member.read(_COPY_BYTES):
            remaining -= len(chunk)
            if remaining < 0:
                raise ConversionError(f"{name} is larger than the archive says")
            target.write(chunk)
    target.seek(0)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _json(value: object, what: str) -> Any:
    text = _text(value)
    if len(text) > MAX_CONFIG_BYTES:
        raise ConversionError(f"{what} is larger than {MAX_CONFIG_BYTES >> 20} MiB")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConversionError(f"{what} is not valid JSON: {first_line(error)}") from error


def keras_major(version: str) -> int:
    """2 or 3: which generation of Keras wrote a model ("2.16.0", "2.4.0-tf", "3.15.1")."""
    return 3 if version.startswith("3") else 2
