"""verify_plan accepts what can be executed and refuses the rest, in the words of the C++ check."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.reader import read_contents
from phonebit.planner import ExecutionPlan, Processor, layer_outputs, verify_plan
from support.plan_cases import FOLDER, NETWORKS, Case, read_cases
from support.random_plans import Layers, damaged, random_plan, whole_plan

FILES = sorted(NETWORKS.glob("*.pbit"))
CASES = [case for file in sorted(FOLDER.glob("*.txt")) for case in read_cases(file)]


@cache
def contents_of(path: Path) -> FileContents:
    return read_contents(path)


def problem_of(contents: FileContents, plan: ExecutionPlan) -> str | None:
    try:
        verify_plan(contents, plan)
    except InputError as error:
        return str(error)
    return None


def is_executable(contents: FileContents, plan: ExecutionPlan) -> bool:
    """Runs the plan on flags, element by element of each tensor's rows and channels.

    ``finished`` counts how often an element was computed in earlier stages, ``mine`` marks what a
    processor has computed in this one.
    """
    layers = Layers(contents)
    finished = {
        tensor: np.zeros((layer.height, layer.channels), int)
        for layer in layers.all
        for tensor in layer.outputs
    }
    stage_of: dict[int, int] = {}
    for expected, (stage, parts) in enumerate(plan.stages()):
        if stage != expected:
            return False
        mine: dict[tuple[Processor, int], np.ndarray] = {}
        members = {part.layer for part in parts}
        for planned in parts:
            if planned.layer not in range(len(layers.all)):
                return False
            layer, part = layers.all[planned.layer], planned.part
            rows = range(part.row_begin, part.row_end)
            channels = range(part.channel_begin, part.channel_end)
            is_inside = (
                rows and channels and rows[0] >= 0 and rows[-1] < layer.height
                and channels[0] >= 0 and channels[-1] < layer.channels
            )  # fmt: skip
            if not is_inside or stage_of.setdefault(planned.layer, stage) != stage:
                return False
            cuts = {part.channel_begin, part.channel_end} - {0, layer.channels}
            if cuts and (not layer.cuts_channels or any(cut % 8 for cut in cuts)):
                return False
            if len(rows) < layer.height and not layer.cuts_rows:
                return False
            for tensor in {*layer.operands, *layer.step_tensors} & finished.keys():
                read = sorted(layers.rows_read(planned.layer, tensor, rows))
                of = sorted(layers.channels_read(planned.layer, tensor, channels))
                if layers.writer[tensor] not in members and layers.writer[tensor] in stage_of:
                    if not np.all(finished[tensor] == 1):
                        return False
                elif (
                    read
                    and not mine.get((planned.processor, tensor), np.zeros((10**4, 10**4)))[
                        np.ix_(read, of)
                    ].all()
                ):
                    return False
            for tensor in layer.outputs:
                if (planned.processor, tensor) in mine:
                    return False
                done = np.zeros_like(finished[tensor], bool)
                done[rows.start : rows.stop, channels.start : channels.stop] = True
                mine[planned.processor, tensor] = done
        for (_, tensor), done in mine.items():
            finished[tensor] += done
    computed = set(stage_of) == set(range(len(layers.all)))
    return computed and all(np.all(finished[int(out)] == 1) for out in contents.outputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shared_cases_are_judged_as_they_say(case: Case) -> None:
    contents = contents_of(NETWORKS / f"{case.network}.pbit")
    problem = problem_of(contents, case.plan)
    if case.refused is None:
        assert problem is None
    else:
        assert problem is not None
        assert case.refused in problem
        assert problem.endswith("; plan the network again")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32 - 1))
def test_random_plans_are_valid(file: Path, seed: int) -> None:
    contents = contents_of(file)
    plan = random_plan(contents, np.random.default_rng(seed))
    verify_plan(contents, plan)
    assert is_executable(contents, plan)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32 - 1))
def test_a_damaged_plan_is_refused_unless_it_can_be_executed(file: Path, seed: int) -> None:
    contents = contents_of(file)
    random = np.random.default_rng(seed)
    plan = damaged(random_plan(contents, random), random)
    problem = problem_of(contents, plan)
    assert (problem is None) == is_executable(contents, plan), problem


def test_random_plans_use_every_way_to_share() -> None:
    contents = contents_of(NETWORKS / "tiny_classifier.pbit")
    random = np.random.default_rng(0)
    ways = set()
    for _ in range(100):
        for _, parts in random_plan(contents, random).stages():
            both = len({part.processor for part in parts}) == 2
            chain = len({part.layer for part in parts}) > 1
            channels = any(part.part.text((28, 28, 64)).find("channels") >= 0 for part in parts)
            ways.add((both, chain, channels))
    assert {(False, False, False), (True, False, False), (True, False, True)} <= ways
    assert {(False, True, False), (True, True, False)} <= ways


@pytest.mark.parametrize("processor", Processor)
def test_a_whole_network_on_one_processor_is_valid(processor: Processor) -> None:
    for file in FILES:
        verify_plan(contents_of(file), whole_plan(contents_of(file), processor))


def test_stage_texts_tell_processors_and_cuts() -> None:
    contents = contents_of(NETWORKS / "tiny_classifier.pbit")
    (case,) = (case for case in CASES if case.name == "rows, channels and whole layers")
    assert case.plan.stage_texts(layer_outputs(contents)) == [
        "conv1 gpu rows 0:9, cpu rows 9:28",
        "pool1 cpu",
        "conv2 gpu channels 0:40, cpu channels 40:64",
        "pool2 gpu rows 0:6, cpu rows 6:7",
        "dense1 gpu channels 0:248, cpu channels 248:256",
        "logits gpu channels 0:8, cpu channels 8:10",
    ]
