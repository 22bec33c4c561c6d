"""Reads the file of a source whose format needs a package."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from phonebit.errors import ConversionError


def read_file(path: Path, package: str, maximum: int, hint: str | None = None) -> bytes:
    """A file's bytes.

    Args:
        path: The file.
        package: What reads the format; PhoneBit's extra has the same name.
        maximum: Bytes that the format allows.
        hint: What to do about a larger file.

    Raises:
        ConversionError: The package is not installed, or the file is missing or too large.
    """
    if not path.is_file():
        raise ConversionError("no such file")
    try:
        import_module(package)
    except ImportError as error:
        raise ConversionError(
            f"the package {package} is not installed", hint=f"pip install 'phonebit[{package}]'"
        ) from error
    size = path.stat().st_size
    if size > maximum:
        raise ConversionError(
            "is too large", expected=f"at most {maximum} bytes", got=size, hint=hint
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConversionError(f"cannot be read: {error.strerror or error}") from error
