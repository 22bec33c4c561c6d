"""A plan explains itself, as data and as an image."""

from __future__ import annotations

import json

import pytest

from phonebit.format.contents import FileContents
from phonebit.planner.json_records import to_record
from phonebit.planner.search.explain import explain
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.planning import Planned, plan_network
from phonebit.planner.search.stages import Placement
from support.planner_times import AnalyticTimes, Speed, SyncCosts, forked, straight

SPEEDS = (Speed(3, 0.01), Speed(5, 0.01))


def planned(
    contents: FileContents,
    method: str,
    *,
    measure: bool = False,
    speeds: tuple[Speed, Speed] = SPEEDS,
) -> Planned:
    graph = NetworkGraph.of(contents)
    return plan_network(
        contents,
        "device",
        METHODS[method],
        AnalyticTimes(graph, *speeds),
        SyncCosts(15),
        measured=AnalyticTimes(graph, Speed(4, 0.011), Speed(5, 0.01)) if measure else None,
    )


@pytest.fixture(scope="module")
def chained() -> Planned:
    return planned(straight(4, size=32), "codl")


def test_every_layer_is_explained_once_in_order(chained: Planned) -> None:
    choices = explain(chained, is_predicted=True)
    assert [choice.layer for choice in choices] == list(range(5))
    assert {choice.stage for choice in choices} == set(range(len(chained.stages)))


def test_alternatives_are_the_costs_that_the_planner_compared(chained: Planned) -> None:
    choice = explain(chained, is_predicted=True)[2]
    assert choice.predicted is not None
    assert choice.measured is None
    cpu_us, gpu_us = (of_side[2] for of_side in chained.costs.single_us.values())
    assert (choice.predicted.cpu_us, choice.predicted.gpu_us) == (cpu_us, gpu_us)
    stage = chained.best_cuts[2, Placement.ROWS]
    assert choice.predicted.rows is not None
    assert (choice.predicted.rows.cut, choice.predicted.rows.us) == (
        stage.cut,
        chained.costs.alone_us(stage),
    )


def test_measured_times_stand_next_to_predicted_ones() -> None:
    choices = explain(planned(straight(2), "finegrained", measure=True), is_predicted=True)
    conv = choices[1]
    assert conv.predicted is not None
    assert conv.measured is not None
    assert conv.measured.cpu_us > conv.predicted.cpu_us
    assert conv.measured.gpu_us == conv.predicted.gpu_us


def test_a_search_has_no_predicted_times() -> None:
    choices = explain(planned(straight(2), "search"), is_predicted=False)
    assert all(choice.predicted is None and choice.measured is not None for choice in choices)


def test_texts_say_who_computes_what(chained: Planned) -> None:
    texts = [choice.text for choice in explain(chained, is_predicted=True)]
    assert any(text.startswith("gpu rows 0:") and "cpu rows" in text for text in texts)


def test_branches_say_where_they_run() -> None:
    contents = forked(2, channels=32, size=16)
    apart = planned(contents, "ulayer", speeds=(Speed(40, 0.005), Speed(40, 0.005)))
    texts = {choice.text for choice in explain(apart, is_predicted=True)}
    assert {"branch on gpu", "branch on cpu"} <= texts


def test_dictionaries_are_json_ready(chained: Planned) -> None:
    document = [to_record(choice) for choice in explain(chained, is_predicted=True)]
    again = json.loads(json.dumps(document))
    assert again == document
    assert again[1]["placement"] in {"chain", "rows"}
    assert len(again[1]["gpu"]) == 4


def test_stage_times_add_up_to_the_total(chained: Planned) -> None:
    state = chained.costs.first_state()
    for stage in chained.stages:
        state, _ = chained.costs.advance(state, stage)
    stage_us = {choice.stage: choice.stage_us for choice in explain(chained, is_predicted=True)}
    total = sum(stage_us.values()) + chained.costs.finish(state)
    assert total == pytest.approx(chained.total_us)
