"""EXECUTION_PLANS and PLAN_PARTS: they travel, disturb nothing, and damage is refused."""

from __future__ import annotations

import struct
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phonebit import _runtime
from phonebit.converter.writer import to_bytes, to_contents
from phonebit.errors import InputError, ModelFormatError
from phonebit.format.contents import FileContents, UnknownSection
from phonebit.format.reader import parse_contents, read_contents
from phonebit.format.records import PLAN, PLAN_PART, SectionKind
from phonebit.format.writer import file_bytes, seal
from phonebit.output_files import write_atomically
from phonebit.planner import ExecutionPlan, Processor, stored_plans, verify_plan, with_plan
from support.cli_process import Cli
from support.golden import golden_graphs, planned_classifier, tiny_classifier
from support.plan_cases import NETWORKS
from support.random_plans import random_plan, whole_plan

PLANNED = file_bytes(planned_classifier())
PLAN_FIELDS = {"strings", "plans", "plan_parts"}


def assert_same_but_for_plans(changed: FileContents, original: FileContents) -> None:
    for each in fields(FileContents):
        if each.name not in PLAN_FIELDS:
            got, expected = (getattr(contents, each.name) for contents in (changed, original))
            same = bytes(got) == bytes(expected) if each.name == "data" else np.all(got == expected)
            assert same, each.name
    assert changed.strings.startswith(original.strings)


def refused(contents: FileContents) -> str:
    with pytest.raises(ModelFormatError) as caught:
        parse_contents(file_bytes(contents))
    return str(caught.value)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(NETWORKS.glob("*.pbit"))),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2**32 - 1)), max_size=6),
)
def test_plans_are_read_as_they_were_written_and_the_last_of_a_device_counts(
    file: Path, drawn: list[tuple[str, int]]
) -> None:
    original = replace(read_contents(file), plans=np.zeros(0, PLAN), plan_parts=[])
    original.plan_parts = np.zeros(0, PLAN_PART)
    contents, expected = original, dict[str, ExecutionPlan]()
    for device, seed in drawn:
        plan = random_plan(original, np.random.default_rng(seed), device)
        plan = replace(plan, method=f"method {seed % 3}", predicted_ms=seed / 7)
        contents = with_plan(contents, plan)
        expected[device] = plan
    again = parse_contents(file_bytes(contents))
    assert stored_plans(again) == tuple(expected.values())
    assert_same_but_for_plans(again, original)


@pytest.mark.parametrize("file", sorted(NETWORKS.glob("*.pbit")), ids=lambda file: file.stem)
def test_a_file_that_is_read_and_written_has_the_same_bytes(file: Path) -> None:
    assert file_bytes(read_contents(file)) == file.read_bytes()


def test_files_without_plans_have_no_sections_for_them() -> None:
    table = parse_contents(to_bytes(tiny_classifier()))
    assert table.plans.size == table.plan_parts.size == 0
    assert section_offset(PLANNED, SectionKind.EXECUTION_PLANS) > 0
    with pytest.raises(AssertionError):
        section_offset(to_bytes(tiny_classifier()), SectionKind.EXECUTION_PLANS)


def test_storing_the_same_plan_again_changes_nothing() -> None:
    contents = parse_contents(PLANNED)
    for plan in stored_plans(contents):
        assert file_bytes(with_plan(contents, plan)) == PLANNED


def test_a_plan_is_replaced_in_its_place_and_others_stay() -> None:
    contents = parse_contents(PLANNED)
    first, second = stored_plans(contents)
    new = replace(whole_plan(contents, Processor.GPU), device=first.device)
    assert stored_plans(with_plan(contents, new)) == (new, second)


def test_names_that_end_alike_are_not_confused() -> None:
    contents = parse_contents(PLANNED)
    plan = replace(whole_plan(contents, Processor.CPU), device="phone", method="odl")
    assert stored_plans(with_plan(contents, plan))[-1] == plan


def test_the_golden_plans_can_be_executed() -> None:
    contents = read_contents(NETWORKS / "planned_classifier.pbit")
    plans = stored_plans(contents)
    assert [plan.device for plan in plans] == ["a phone", "another phone"]
    assert [plan.predicted_ms for plan in plans] == [0.0, 0.125]
    for plan in plans:
        verify_plan(contents, plan)


def test_sections_of_later_versions_stay_when_a_plan_is_stored(tmp_path: Path) -> None:
    later = (UnknownSection(0x8FFF, 4, b"12345678"), UnknownSection(0xFFFF0000, 1, b"\1"))
    contents = replace(to_contents(tiny_classifier()), unknown=later)
    planned = with_plan(parse_contents(file_bytes(contents)), whole_plan(contents, Processor.CPU))
    path = tmp_path / "planned.pbit"
    write_atomically(path, file_bytes(planned))
    assert read_contents(path).unknown == later
    assert _runtime.Network(str(path), 1).metadata


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"device": ""}, "plan: device"),
        ({"method": "a\0b"}, "plan: method"),
        ({"device": "x" * 1025}, "plan: device"),
        ({"predicted_ms": -1.0}, "predicted_ms"),
        ({"predicted_ms": float("nan")}, "predicted_ms"),
    ],
)
def test_plans_that_the_file_cannot_hold_are_not_written(
    fields: dict[str, Any], words: str
) -> None:
    contents = parse_contents(PLANNED)
    with pytest.raises(InputError, match=words):
        with_plan(contents, replace(whole_plan(contents, Processor.CPU), **fields))


def test_inspect_shows_plans(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "planned.pbit"
    path.write_bytes(PLANNED)
    plans = cli("inspect", path, "--json").document["plans"]
    assert [plan["device"] for plan in plans] == ["a phone", "another phone"]
    assert plans[0]["parts"][0] == {
        "stage": 0,
        "processor": "gpu",
        "layer": 0,
        "part": {"row_begin": 0, "row_end": 9, "channel_begin": 0, "channel_end": 64},
    }
    text = cli("inspect", path).out
    assert "plan for a phone: user, 6 stages\n" in text
    assert "plan for another phone: codl, 2 stages, 0.125 ms predicted\n" in text
    assert "conv2 gpu channels 0:40, cpu channels 40:64" in text


def test_inspect_shows_no_plans_where_there_are_none(cli: Cli, u8_file: Path) -> None:
    assert cli("inspect", u8_file, "--json").document["plans"] == []
    assert "plan for" not in cli("inspect", u8_file).out


# --- damage ---


@pytest.mark.parametrize(
    ("table", "index", "field", "value", "words"),
    [
        ("plans", 0, "device_offset", 1 << 30, "outside STRINGS"),
        ("plans", 1, "method_offset", 1 << 30, "outside STRINGS"),
        ("plans", 0, "part_begin", 1, "10 parts from 1, expected from 0"),
        ("plans", 1, "part_begin", 9, "10 parts from 9, expected from 10"),
        ("plans", 1, "part_count", 11, "11 parts from 10, expected from 10 and up to 20"),
        ("plans", 1, "part_count", 2**32 - 1, "4294967295 parts from 10"),
        ("plans", 1, "part_count", 9, "20 "),
        ("plans", 1, "predicted_ms", -0.5, "predicted_ms is -0.5, expected 0 or more"),
        ("plans", 0, "predicted_ms", np.nan, "predicted_ms is nan"),
        ("plans", 0, "predicted_ms", np.inf, "predicted_ms is inf"),
        ("plan_parts", 3, "stage", 10, "plan 0, part 3: stage 10 of a plan of 10 parts"),
        ("plan_parts", 13, "stage", 2**32 - 1, "plan 1, part 3: stage 4294967295"),
        ("plan_parts", 0, "processor", 2, "plan 0, part 0: unknown processor 2"),
        ("plan_parts", 0, "layer", 6, "plan 0, part 0: layer 6 does not exist, there are 6"),
        ("plan_parts", 0, "row_begin", 9, "plan 0, part 0: rows 9:9 of an output of 28"),
        ("plan_parts", 0, "row_end", 29, "rows 0:29 of an output of 28"),
        ("plan_parts", 0, "channel_begin", 2**31, "channels 2147483648:64 of an output of 64"),
        ("plan_parts", 0, "channel_end", 65, "channels 0:65 of an output of 64"),
    ],
)
def test_damaged_plans_are_refused(
    table: str, index: int, field: str, value: float, words: str
) -> None:
    contents = parse_contents(PLANNED)
    records = getattr(contents, table).copy()
    records[field][index] = value
    text = refused(replace(contents, **{table: records}))
    assert words in text


def test_two_plans_of_a_device_are_refused() -> None:
    contents = parse_contents(PLANNED)
    plans = contents.plans.copy()
    plans["device_offset"][1] = plans["device_offset"][0]
    text = refused(replace(contents, plans=plans))
    assert "'a phone'" in text


def test_a_device_needs_a_name() -> None:
    contents = parse_contents(PLANNED)
    plans = contents.plans.copy()
    plans["device_offset"][1] = len(contents.strings) - 1
    text = refused(replace(contents, plans=plans))
    assert "name" in text


def test_parts_without_a_plan_are_refused() -> None:
    contents = parse_contents(PLANNED)
    empty = np.zeros(0, PLAN)
    text = refused(replace(contents, plans=empty))
    assert "20" in text


def test_a_plan_that_cannot_be_executed_loads_but_is_not_accepted(tmp_path: Path) -> None:
    contents = parse_contents(PLANNED)
    parts = contents.plan_parts.copy()
    parts["row_begin"][1] = 10
    content = file_bytes(replace(contents, plan_parts=parts))
    (tmp_path / "odd.pbit").write_bytes(content)
    _runtime.Network(str(tmp_path / "odd.pbit"), 1)
    with pytest.raises(InputError, match="nobody computes a part of it"):
        verify_plan(contents, stored_plans(parse_contents(content))[0])


def section_offset(content: bytes, kind: SectionKind) -> int:
    count = struct.unpack_from("<I", content, 12)[0]
    for at in range(64, 64 + 32 * count, 32):
        if struct.unpack_from("<I", content, at)[0] == kind:
            return int(struct.unpack_from("<Q", content, at + 8)[0])
    raise AssertionError(f"no section {kind.name}")


WORDS = st.tuples(
    st.sampled_from([(SectionKind.EXECUTION_PLANS, 32), (SectionKind.PLAN_PARTS, 160)]),
    st.integers(0, 159),
    st.one_of(st.integers(0, 70), st.integers(0, 2**32 - 1)),
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_any_words_in_plans_are_refused_or_read_alike_by_reader_and_runtime(
    tmp_path: Path, words: list[tuple[tuple[SectionKind, int], int, int]]
) -> None:
    content = bytearray(PLANNED)
    for (kind, size), word, value in words:
        struct.pack_into("<I", content, section_offset(PLANNED, kind) + 4 * (word % size), value)
    path = tmp_path / "any.pbit"
    path.write_bytes(seal(content))
    try:
        parse_contents(path.read_bytes())
    except ModelFormatError:
        with pytest.raises(ModelFormatError):
            _runtime.Network(str(path), 1)
    else:
        _runtime.Network(str(path), 1)


def test_every_network_of_the_tests_can_hold_a_plan() -> None:
    for graph in golden_graphs().values():
        contents = to_contents(graph)
        plan = random_plan(contents, np.random.default_rng(0))
        assert stored_plans(parse_contents(file_bytes(with_plan(contents, plan)))) == (plan,)
