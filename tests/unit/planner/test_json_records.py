"""Records of dataclasses: they survive JSON, and every damage is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from phonebit.errors import InputError
from phonebit.planner import OutputPart, Processor
from phonebit.planner.json_records import from_record, read_lines, to_record


@dataclass(frozen=True)
class Inner:
    ratio: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Outer:
    count: int
    is_on: bool
    side: Processor
    part: OutputPart
    pair: tuple[int, float]
    inner: Inner
    by_number: Mapping[int, Inner]
    table: NDArray[np.int16]


WHOLE = Outer(
    3, True, Processor.GPU, OutputPart(0, 4, 8, 16), (1, 2.5), Inner(0.5, ("a", "b")),
    {2: Inner(1.0)}, np.array([1, -2], np.int16),
)  # fmt: skip


def test_records_survive_json() -> None:
    again = from_record(Outer, json.loads(json.dumps(to_record(WHOLE))), "outer")
    for name in ("count", "is_on", "side", "part", "pair", "inner", "by_number"):
        assert getattr(again, name) == getattr(WHOLE, name)
    assert isinstance(again.part, OutputPart)
    np.testing.assert_array_equal(again.table, WHOLE.table)
    whole_number = from_record(Inner, {"ratio": 3}, "inner").ratio
    assert isinstance(whole_number, float) and whole_number == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 1.0}, "outer.count: damaged .*int"),
        ({"count": True}, "outer.count"),
        ({"is_on": 1}, "outer.is_on"),
        ({"side": "npu"}, "outer.side"),
        ({"side": 1}, "outer.side"),
        ({"part": [0, 4, 8]}, "outer.part"),
        ({"part": [0, 4, 8, "16"]}, "outer.part.3"),
        ({"pair": [1, float("inf")]}, "outer.pair.1"),
        ({"inner": None}, "outer.inner: damaged .*Inner"),
        ({"inner": {}}, "outer.inner: a field is missing .*ratio"),
        ({"inner": {"ratio": 1.0, "names": ["a", 3]}}, "outer.inner.names.1"),
        ({"by_number": {"x": {"ratio": 1.0}}}, "outer.by_number"),
        ({"by_number": {"2": None}}, "outer.by_number.2"),
        ({"by_number": []}, "outer.by_number"),
        ({"table": "AAA"}, "outer.table"),
        ({"table": [1, 2]}, "outer.table"),
        ({"colour": 1}, "outer: a field is missing or unknown .*colour"),
    ],
)
def test_damage_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_record(Outer, to_record(WHOLE) | change, "outer")


def test_an_alias_is_what_it_stands_for() -> None:
    scalar = TypeVar("scalar", bound=np.generic)
    array = np.ndarray[tuple[int, ...], np.dtype[scalar]]
    vector = TypeAliasType("vector", array, type_params=(scalar,))  # as NumPy 2.5 has NDArray
    numbers = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(
        from_record(vector[np.float32], to_record(numbers), "numbers"), numbers
    )


def test_lines_are_read_up_to_one_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"ratio": 1}\n\n{"ratio": 2}\n{"rat')

    def parse(record: dict[str, object]) -> float:
        ratio: float = from_record(Inner, record, "inner").ratio
        return ratio

    assert read_lines(path, "a file", parse, "again") == [1, 2]
    path.write_text('{"ratio": 1}\n[3]\n')
    with pytest.raises(InputError, match=r"lines.jsonl:2: .*a JSON object.*again"):
        read_lines(path, "a file", parse, "again")
