"""Files of ``torch.export.save`` (.pt2)."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.torch_export import first_line, quiet
from phonebit.errors import ConversionError

PROGRAM_FILES: Final = ("/models/", "serialized_exported_program.json")
"""What an archive holds only if it is a program: since PyTorch 2.8, and before."""
TENSORS_ONLY: Final = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


def is_program(path: Path) -> bool:
    """Whether a file is an exported program, whatever its suffix."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(part in name for name in archive.namelist() for part in PROGRAM_FILES)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # no archive, or damaged
        return path.suffix == ".pt2"


def load_program(path: Path) -> Any:
    """Loads an exported program.

    ``torch.export.load`` is PyTorch's own reader. Here its pickles may hold tensors only, and
    archives with other objects are refused; but it evaluates expressions for symbolic sizes, so
    load files from people you trust.

    Raises:
        ConversionError: The file is damaged, holds other objects than tensors, or was written by
            a version of PyTorch that the installed one cannot read.
    """
    import torch

    try:
        _refuse_objects(path)
        with _tensors_only(), quiet():
            return torch.export.load(path)
    except ConversionError:
        raise
    except Exception as error:  # damaged archives raise whatever their bytes lead to
        raise ConversionError(
            f"is no program that PyTorch {torch.__version__} can load: {first_line(error)}",
            where=str(path),
            hint="write it with torch.export.save() and this version of PyTorch",
        ) from error


@contextmanager
def _tensors_only() -> Iterator[None]:
    before = os.environ.get(TENSORS_ONLY)
    os.environ[TENSORS_ONLY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TENSORS_ONLY]
        else:
            os.environ[TENSORS_ONLY] = before


def _refuse_objects(path: Path) -> None:
    """Constants may be pickled objects, which PyTorch would build: only tensors are wanted."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith("constants_config.json"):
                continue
            entries = json.loads(archive.read(name))["config"].values()
            others = [e["path_name"] for e in entries if not e["path_name"].startswith("tensor_")]
            if others:
                raise ConversionError(
                    f"holds {len(others)} objects that are no tensors: {others[0]}, ...",
                    where=str(path),
                )
