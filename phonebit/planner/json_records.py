"""Dataclasses as JSON and back: profiles, samples and measurement jobs consist of them.

Files come from other machines, so each value is compared with the type that its field declares.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import Processor
from phonebit.text_files import DAMAGED, MAX_RECORD_BYTES, parse_json, read_text

MAX_ARRAY_BYTES: Final = 1 << 24
"""Of an array, inflated."""
Parsed = TypeVar("Parsed")
_types_of = cache(get_type_hints)
_signature_of = cache(signature)


def to_record(value: Any) -> Any:
    """The JSON-ready form: processors by name, arrays as base64 of deflated little-endian ones."""
    if isinstance(value, Processor):
        return value.name.lower()
    if isinstance(value, np.ndarray):
        content = value.astype(value.dtype.newbyteorder("<")).tobytes()
        return base64.b64encode(zlib.compress(content, 9)).decode()
    if is_dataclass(value):
        return {field.name: to_record(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    return [to_record(item) for item in value] if isinstance(value, tuple) else value


def from_record(declared: Any, record: Any, where: str) -> Any:
    """The inverse of ``to_record``.

    Args:
        declared: A dataclass, or what one of its fields is declared as.
        record: What a file holds.
        where: What is read, for errors: "geometry", then "geometry.in_h".

    Raises:
        InputError: A field is missing, unknown or of another type, a number is not finite, or a
            dataclass refuses its values.
    """
    kind, arguments = get_origin(declared) or declared, get_args(declared)
    if meaning := getattr(kind, "__value__", None):  # of an alias, as NumPy 2.5's NDArray
        return from_record(meaning[arguments], record, where)
    if is_dataclass(kind) and isinstance(record, dict):
        return _dataclass(kind, record, where)
    if kind is Processor and str(record).upper() in Processor.__members__:
        return Processor[record.upper()]
    if kind is np.ndarray and isinstance(record, str):
        return _array(get_args(arguments[1])[0], record, where)
    if issubclass(kind, tuple) and isinstance(record, list):
        arguments = tuple(_types_of(kind).values()) or arguments  # of a NamedTuple
        if arguments[-1] is Ellipsis:
            arguments = len(record) * arguments[:1]
        if len(arguments) == len(record):
            pairs = enumerate(zip(arguments, record, strict=True))
            items = [from_record(of, item, f"{where}.{place}") for place, (of, item) in pairs]
            return tuple(items) if kind is tuple else kind(*items)
    if kind is Mapping and isinstance(record, dict):
        key_of, of = arguments
        if key_of is int and not all(map(str.isdecimal, record)):
            raise InputError("damaged", where=where, expected="numbers", got=", ".join(record))
        return {
            key_of(key): from_record(of, item, f"{where}.{key}") for key, item in record.items()
        }
    if kind is float and type(record) in (int, float) and math.isfinite(record):
        return float(record)
    if kind is not float and type(record) is kind:
        return record
    name = getattr(declared, "__name__", str(declared))
    raise InputError("damaged", where=where, expected=name, got=repr(record)[:60])


def _dataclass(kind: Any, record: dict[str, Any], where: str) -> Any:
    types = _types_of(kind)
    try:
        _signature_of(kind).bind(**record)
    except TypeError as error:
        what = "a field is missing or unknown"
        raise InputError(what, where=where, expected=", ".join(types), got=str(error)) from None
    values = {
        name: from_record(types[name], item, f"{where}.{name}") for name, item in record.items()
    }
    return kind(**values)


def _array(scalar: type[np.generic], text: str, where: str) -> np.ndarray:
    try:
        inflater = zlib.decompressobj()
        content = inflater.decompress(base64.b64decode(text, validate=True), MAX_ARRAY_BYTES)
        if not inflater.eof or inflater.unused_data:
            raise ValueError(f"not one array of at most {MAX_ARRAY_BYTES} bytes")
        return np.frombuffer(content, np.dtype(scalar).newbyteorder("<"))
    except (ValueError, zlib.error) as error:
        expected = "base64 of a deflated array"
        raise InputError("damaged", where=where, expected=expected, got=str(error)) from None


def read_lines(
    path: Path, what: str, parse: Callable[[dict[str, Any]], Parsed], hint: str
) -> list[Parsed]:
    """Reads a file of one JSON object per line; an interruption may have cut off the last one."""
    found = []
    whole, _, _cut_off = read_text(path, what, MAX_RECORD_BYTES).rpartition("\n")
    for number, line in enumerate(filter(str.strip, whole.split("\n")), 1):
        try:
            record = parse_json(line, "a line")
            if not isinstance(record, dict):
                raise InputError("a line", expected="a JSON object", got=line[:40])
            found.append(parse(record))
        except (InputError, *DAMAGED) as error:
            raise InputError(
                f"not a line of {what}", where=f"{path}:{number}", got=str(error), hint=hint
            ) from None
    return found
