"""Checkpoints as ``torch.save`` writes them: the tensors are read, other objects are stood for.

PyTorch's reader of tensors calls nothing but a few functions of its own. Training scripts save
more: arguments, NumPy's numbers, optimizers, classes of a configuration. What a file names is
listed without reading it; for whatever PyTorch's reader does not know it gets a class of ours, so
that no code of the file's classes is imported, let alone called.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.torch.archive import bounded_entries, within
from phonebit.converter.importers.torch.export import quiet
from phonebit.errors import ConversionError

STATE_DICT: Final = (
    "pickled modules and TorchScript are code, which is never run: save module.state_dict(), or "
    "torch.export.save() the program as .pt2"
)
LEGACY_PICKLES: Final = 4
"""One after the other in files before PyTorch 1.6: number, version, system, objects."""


def pickled(path: Path) -> Any:
    """What ``torch.save`` saved; objects of unknown classes are stood for (``class_of``).

    Raises:
        ConversionError: The file is damaged, is TorchScript, or tries to run what is never run.
    """
    import torch

    refuse_torchscript(path)
    try:
        unknown = [(_stand_in(name), name) for name in sorted(_globals(path))]
        with torch.serialization.safe_globals(unknown), quiet():
            return torch.load(path, map_location="cpu", weights_only=True)
    except ConversionError as error:
        raise within(path, error) from error
    except OSError as error:
        raise ConversionError(
            f"cannot be read: {error.strerror or error}", where=str(path)
        ) from error
    except Exception as error:  # damaged archives raise whatever their bytes lead to
        name = re.search(r"(?:GLOBAL |<class ')([\w.]+)", str(error))
        what = type(error).__name__ + (f": {name[1]}" if name else "")
        raise ConversionError(
            f"is damaged, or holds other objects than tensors ({what})",
            where=str(path),
            hint=STATE_DICT,
        ) from error


def refuse_torchscript(path: Path) -> None:
    """Raises: ConversionError if a file is TorchScript; needs no PyTorch."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # no archive, or damaged
        return
    if "constants.pkl" in names:
        raise ConversionError(
            "is a TorchScript archive, which is code and is never run",
            where=str(path),
            hint="build the module in Python, load torch.jit.load(FILE).state_dict() into it and "
            "convert that, or torch.export.save() it as .pt2",
        )


def class_of(content: Any) -> str:
    """The name of what an object stands for; "" if it stands for nothing else."""
    kind = type(content)
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(content, _StandIn) else ""


class _FilledAsDict(type):
    """Classes that PyTorch's reader, which compares them with those it knows, fills with items."""

    def __eq__(cls, other: object) -> bool:
        return cls is other or other is OrderedDict

    __hash__ = type.__hash__


class _StandIn(OrderedDict[Any, Any], metaclass=_FilledAsDict):
    """An object of a class that is not imported; it keeps items, and nothing else."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        """Drops its attributes."""

    def __hash__(self) -> int:  # type: ignore[override]  # it may be a key
        return id(self)


def _stand_in(name: str) -> Any:
    module, _, short = name.rpartition(".")
    return _FilledAsDict(short, (_StandIn,), {"__module__": module, "__qualname__": short})


def _globals(path: Path) -> set[str]:
    """The classes and functions that a file names."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return _named(file, LEGACY_PICKLES)
    with zipfile.ZipFile(path) as archive:
        entries = bounded_entries(archive, path)
        inner = {name.partition("/")[2]: name for name in entries}
        content = archive.read(inner["data.pkl"]) if "data.pkl" in inner else b""
    return _named(io.BytesIO(content), 1)


def _named(stream: Any, pickles: int) -> set[str]:
    """The globals of some pickles, as Python 2 called them and as Python 3 does."""
    found: set[str] = set()
    compatible: Any = pickle._compat_pickle  # type: ignore[attr-defined]
    try:
        for _ in range(pickles):
            for opcode, argument, _place in pickletools.genops(stream):
                if opcode.name == "GLOBAL":
                    module, _, name = str(argument).partition(" ")
                    pair = (compatible.IMPORT_MAPPING.get(module, module), name)
                    pair = compatible.NAME_MAPPING.get((module, name), pair)
                    found |= {f"{module}.{name}", ".".join(pair)}  # PyTorch maps some of them
    except (ValueError, UnicodeDecodeError, EOFError):  # damaged: PyTorch's reader says how
        pass
    return found
