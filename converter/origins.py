"""What tensors of bits are that the source has under no name of its own.

Passes note it where they make such a tensor, the file's metadata keep it, and ``phonebit verify``
derives from it what the bits must be. Files from before that say it by the tensors' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Plane:
    """Whether the elements of a source's value passed threshold ``index`` of their quantizer.

    Plane 0 alone is a sign with a level of its own for 0, whose zeros count as +1.
    """

    value: str
    index: int


@dataclass(frozen=True)
class Level:
    """Bit ``index`` of the level that the quantizer of a source's value chose."""

    value: str
    index: int


@dataclass(frozen=True)
class Hoisted:
    """A sign in front of arrangements (pooling, concatenation, reshape, padding) that it follows.

    Attributes:
        sign: Its name in the source, or the plane that it makes.
        path: Which operand of each arrangement it moved to, the nearest to the sign first.
    """

    sign: str | Plane
    path: tuple[int, ...]


Origin: TypeAlias = Plane | Level | Hoisted


def hoisted(origins: Mapping[str, Origin], bits: str, operand: int) -> Hoisted:
    """The origin of bits that moved in front of one more arrangement."""
    known = origins.get(bits, bits)
    if isinstance(known, Hoisted):
        return Hoisted(known.sign, (*known.path, operand))
    return Hoisted(known if isinstance(known, Plane) else bits, (operand,))


def planes(origins: Mapping[str, Origin]) -> set[Plane]:
    """All planes among them, moved or not."""
    bases = (each.sign if isinstance(each, Hoisted) else each for each in origins.values())
    return {base for base in bases if isinstance(base, Plane)}


def to_json(origins: Mapping[str, Origin]) -> dict[str, Any]:
    """For the metadata: "plane" or "bit" of a value, "path" of a sign."""
    return {name: _record(origin) for name, origin in origins.items()}


def _record(origin: Origin) -> dict[str, Any]:
    if isinstance(origin, Hoisted):
        sign = origin.sign if isinstance(origin.sign, str) else _record(origin.sign)
        return {"path": list(origin.path), "of": sign}
    return {"plane" if isinstance(origin, Plane) else "bit": origin.index, "of": origin.value}


def origins_in(metadata: Mapping[str, Any], names: Iterable[str]) -> dict[str, Origin]:
    """Those of a file.

    Args:
        metadata: The file's.
        names: Of its tensors of bits.
    """
    stored = metadata.get("origins")
    records = stored if isinstance(stored, dict) else {}
    is_old = "origins" not in metadata
    found = {name: _named(name) if is_old else _read(records.get(name)) for name in names}
    return {name: origin for name, origin in found.items() if origin is not None}


def _read(record: object) -> Origin | None:
    match record:
        case {"plane": int(index), "of": str(value)} if index >= 0:
            return Plane(value, index)
        case {"bit": int(index), "of": str(value)} if index >= 0:
            return Level(value, index)
        case {"path": [*path], "of": str(sign)} if _are_places(path):
            return Hoisted(sign, tuple(path))
        case {"path": [*path], "of": {"plane": int(index), "of": str(value)}} if (
            _are_places(path) and index >= 0
        ):
            return Hoisted(Plane(value, index), tuple(path))
    return None


def _are_places(path: list[Any]) -> bool:
    return all(isinstance(place, int) and place >= 0 for place in path)


_PLANE = re.compile(r"(?P<value>.+)/(?:bits|(?P<form>plane|bit)(?P<index>\d{1,9}))")
_MOVED = re.compile(r"(?P<sign>.+?)(?P<hops>(?:/hoisted(?:/\d{1,9})?(?::\d+)?)+)")
_HOP = re.compile(r"/hoisted(?:/(\d+))?")


def _named(name: str) -> Origin | None:
    """By names like "q/plane1", "q/bit1", "q/bits" (plane 0) and "s/hoisted/1/hoisted"."""
    moved = _MOVED.fullmatch(name)
    if moved is not None:
        path = tuple(int(place or 0) for place in _HOP.findall(moved["hops"]))
        sign = _named(moved["sign"])
        return Hoisted(sign if isinstance(sign, Plane) else moved["sign"], path)
    plane = _PLANE.fullmatch(name)
    if plane is None:
        return None
    kind = Level if plane["form"] == "bit" else Plane
    return kind(plane["value"], int(plane["index"] or 0))
