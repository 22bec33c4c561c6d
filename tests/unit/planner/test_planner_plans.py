"""Plans are the best of what their method may do, and never worse than one processor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phonebit.converter.ir import Window
from phonebit.converter.ops import MaxPool2D, Softmax
from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.reader import parse_contents
from phonebit.models.networks import converted
from phonebit.planner import Processor, verify_plan
from phonebit.planner.predict.profile import MIN_MARGIN
from phonebit.planner.search.branches import branch_regions, branch_stages
from phonebit.planner.search.chains import chain_ends, chain_stage, fraction_cut
from phonebit.planner.search.methods import CUTS, METHODS, method_named
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.planning import Planned, plan_network
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement, Stage, cut_in_two, on_one
from support.engine_net import Net, sign_of
from support.golden import golden_graphs
from support.planner_times import (
    AnalyticTimes,
    Speed,
    SyncCosts,
    contents_of,
    conv,
    forked,
    residual,
    straight,
    vgg16_records,
)

NO_MARGIN = 0.0
EVEN = (Speed(3, 0.01, 32), Speed(5, 0.01, 8))
GRAPHS = golden_graphs()


def plan(
    contents: FileContents,
    method: str,
    speeds: tuple[Speed, Speed] = EVEN,
    sync: SyncCosts | None = None,
    margin: float = MIN_MARGIN,
    measured: tuple[Speed, Speed] | None = None,
    channel_step: int | None = 8,
) -> Planned:
    graph = NetworkGraph.of(contents)
    return plan_network(
        contents,
        "test device",
        replace(METHODS[method], channel_step=channel_step or METHODS[method].channel_step),
        AnalyticTimes(graph, *speeds),
        sync or SyncCosts(2),
        margin,
        AnalyticTimes(graph, *measured) if measured else None,
    )


def placements(planned: Planned) -> list[Placement]:
    return [stage.placement for stage in planned.stages]


def on_one_of(planned: Planned, layer: int) -> Stage:
    """A layer on the processor that the network is faster on."""
    return on_one(planned.costs.graph.layers[layer], planned.home)


def all_stages(costs: StageCosts, method: str) -> dict[int, list[Stage]]:
    """Every stage of a method's search space, by first layer."""
    graph = costs.graph
    by_begin: dict[int, list[Stage]] = {layer.index: [] for layer in graph.layers}
    for layer in graph.layers:
        by_begin[layer.index] += [on_one(layer, side) for side in Processor]
        for side in CUTS:
            cuts = replace(METHODS[method], channel_step=8).cuts(layer, side)
            by_begin[layer.index] += [cut_in_two(layer, side, cut) for cut in cuts]
        if METHODS[method].chains:
            for end in chain_ends(graph, layer.index):
                height = graph.layers[end - 1].shape[0]
                for cut in {fraction_cut(height, tenths / 10) for tenths in range(1, 10)}:
                    stage = chain_stage(graph, layer.index, end, cut)
                    if end > layer.index + 1 and stage is not None:
                        by_begin[layer.index].append(stage)
    if METHODS[method].branches:
        for region in branch_regions(graph):
            by_begin[min(region)[0]] += branch_stages(costs, region)
    return by_begin


def all_sequences(by_begin: dict[int, list[Stage]], layer: int = 0) -> Iterator[list[Stage]]:
    if layer == len(by_begin):
        yield []
        return
    for stage in by_begin[layer]:
        for rest in all_sequences(by_begin, stage.end):
            yield [stage, *rest]


def brute_force_us(planned: Planned, method: str) -> float:
    sequences = all_sequences(all_stages(planned.costs, method))
    return min(planned.costs.total_us(stages) for stages in sequences)


SPEEDS = [
    EVEN,
    (Speed(1, 0.02, 32), Speed(10, 0.01, 8)),
    (Speed(1, 0.01, 32), Speed(1, 0.04, 8)),
    (Speed(0, 0.01), Speed(0, 0.01)),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("speeds", SPEEDS)
@pytest.mark.parametrize("sync_us", [0.0, 3.0, 60.0])
def test_plan_is_the_best_of_all(method: str, speeds: tuple[Speed, Speed], sync_us: float) -> None:
    """With synchronization of one price a layer's best cut alone is its best cut in the network."""
    contents = straight(2, channels=32, size=8)
    planned = plan(contents, method, speeds, SyncCosts(sync_us), NO_MARGIN)
    best_us = brute_force_us(planned, method)
    reach = 1.02 if METHODS[method].chains else 1 + 1e-9  # algorithm 1 is greedy
    assert best_us - 1e-6 <= planned.total_us <= reach * best_us


@pytest.mark.parametrize("speeds", SPEEDS)
@pytest.mark.parametrize("bytes_per_us", [20.0, 200.0, 5000.0])
def test_plan_is_near_the_best_of_all_where_bytes_cost(
    speeds: tuple[Speed, Speed], bytes_per_us: float
) -> None:
    contents = straight(2, channels=64, size=8)
    planned = plan(contents, "finegrained", speeds, SyncCosts(1, bytes_per_us), NO_MARGIN)
    assert planned.total_us <= 1.02 * brute_force_us(planned, "finegrained")


@pytest.mark.parametrize("sync_us", [0.0, 5.0])
def test_branches_are_placed_as_well_as_the_best_of_all(sync_us: float) -> None:
    contents = forked(2, channels=8, size=16)
    planned = plan(contents, "ulayer", EVEN, SyncCosts(sync_us), NO_MARGIN)
    assert planned.total_us == pytest.approx(brute_force_us(planned, "ulayer"))


def test_costs_by_hand() -> None:
    """Sign on the GPU, a cut convolution, the next one on the CPU: every microsecond counted."""
    contents = straight(2, channels=64, size=16)
    graph = NetworkGraph.of(contents)
    times = AnalyticTimes(graph, Speed(1, 0.001), Speed(2, 0.002))
    costs = StageCosts(graph, times, SyncCosts(10, 100))
    stages = [
        on_one(graph.layers[0], Processor.GPU),
        cut_in_two(graph.layers[1], Placement.CHANNELS, 16),
        on_one(graph.layers[2], Processor.CPU),
    ]
    pixels, taps = 16 * 16, 9 * 64
    upload = 10 + pixels * 64 * 4 / 100  # the input's floats
    sign = 2 + pixels * 64 / 1000 * 0.002
    handed = 10 + pixels * 64 / 8 / 100  # the sign's bits
    slower = max(1 + pixels * 48 * taps / 1000 * 0.001, 2 + pixels * 16 * taps / 1000 * 0.002)
    gathered = 10 + pixels * 16 / 8 / 100  # what the GPU wrote of the bits
    last = 1 + pixels * 64 * taps / 1000 * 0.001
    expected = upload + sign + handed + slower + gathered + last
    assert costs.total_us(stages) == pytest.approx(expected)


def test_a_pool_is_cut_at_the_channel_of_the_convolution_before_it() -> None:
    """By itself it is best on one processor, or cut elsewhere."""
    net = Net("pooled")
    bits = sign_of(net, net.input("x", (32, 32, 256)))
    bits = conv(net, "first", bits, 256)
    bits = net.op("pool", MaxPool2D(Window((2, 2), (2, 2))), bits)
    contents = contents_of(net.done(conv(net, "last", bits, 256)))
    planned = plan(contents, "finegrained", sync=SyncCosts(20, 100))
    _, first, pool, last = planned.stages
    assert [stage.placement for stage in (first, pool, last)] == [Placement.CHANNELS] * 3
    assert first.cut == pool.cut != planned.best_cuts[2, Placement.CHANNELS].cut
    apart = planned.costs.total_us([planned.stages[0], first, on_one_of(planned, 2), last])
    assert planned.total_us < apart


def test_chains_are_made_where_synchronization_is_expensive_and_not_where_it_is_free() -> None:
    contents = straight(4, channels=64, size=32)
    dear = plan(contents, "codl", sync=SyncCosts(40))
    free = plan(contents, "codl", sync=SyncCosts(0))
    assert Placement.CHAIN in placements(dear)
    assert Placement.CHAIN not in placements(free)
    assert Placement.ROWS in placements(free)


def test_branches_go_apart_where_cuts_do_not_pay() -> None:
    contents = forked(2, channels=32, size=16)
    planned = plan(contents, "ulayer", (Speed(40, 0.005), Speed(40, 0.005)), SyncCosts(15))
    assert Placement.BRANCHES in placements(planned)
    assert planned.total_us < 0.95 * planned.home_us


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("slow", list(Processor))
def test_a_dwarfed_processor_is_left_out(method: str, slow: Processor) -> None:
    fast_speed, slow_speed = Speed(1, 0.001), Speed(50, 1.0)
    speeds = (slow_speed, fast_speed) if slow == Processor.CPU else (fast_speed, slow_speed)
    planned = plan(straight(3), method, speeds)
    assert planned.home != slow
    assert {part.processor for part in planned.plan.parts} == {planned.home}
    assert not planned.is_split
    assert planned.total_us == planned.home_us


@pytest.mark.parametrize("method", METHODS)
def test_a_gain_below_the_margin_is_no_reason_to_split(method: str) -> None:
    contents = straight(3)
    gain = 1 - (planned := plan(contents, method)).total_us / planned.home_us
    assert 0.2 < gain < 0.6
    assert not plan(contents, method, margin=gain + 0.02).is_split


@pytest.mark.parametrize("method", METHODS)
def test_each_stage_away_from_home_gains_the_margin(method: str) -> None:
    """Put on one processor, the layers of any such stage cost more than the margin."""
    margin = 0.1
    contents = residual(4)
    planned = plan(contents, method, margin=margin)
    assert planned.is_split
    layers = planned.costs.graph.layers
    for number, stage in enumerate(planned.stages):
        if stage.processor == planned.home:
            continue
        at_home = [on_one(layers[entry.layer], planned.home) for entry in stage.parts]
        stages = [*planned.stages[:number], *at_home, *planned.stages[number + 1 :]]
        needed_us = margin * planned.costs.better_single_us(stage)
        assert planned.costs.total_us(stages) >= planned.total_us + needed_us - 1e-6


def test_predicted_gains_must_exceed_the_predictors_error() -> None:
    """What counts for predicted times does not for measured ones."""
    contents = straight(3)
    gain = 1 - (planned := plan(contents, "finegrained")).total_us / planned.home_us
    doubtful = gain + 0.02
    assert not plan(contents, "finegrained", margin=doubtful).is_split
    assert plan(contents, "finegrained", margin=doubtful, measured=EVEN).is_split


def test_measuring_corrects_the_predicted_cut() -> None:
    contents = straight(2, channels=128)
    predicted = (Speed(1, 0.01), Speed(1, 0.01))
    measured = (Speed(1, 0.012), Speed(1, 0.01))  # the CPU is slower than predicted
    planned = plan(contents, "finegrained", predicted, measured=measured)
    cuts = [stage.cut for stage in planned.stages if stage.placement == Placement.CHANNELS]
    assert cuts == [72, 72]
    assert planned.costs is not planned.predicted


@pytest.mark.parametrize("slowness", [0.2, 0.6, 3.0, 8.0])
def test_measuring_finds_a_cut_far_from_the_predicted_one(slowness: float) -> None:
    """Four cuts tell as much as all of them do."""
    contents = straight(2, channels=512)
    real = (Speed(1, 0.01 * slowness), Speed(1, 0.01))
    measured = plan(contents, "combined", EVEN, measured=real)
    searched = plan(contents, "search", real)
    assert measured.total_us <= 1.03 * searched.total_us


def test_measuring_finds_that_one_processor_is_better() -> None:
    contents = straight(2)
    measured = (Speed(900, 1.0), Speed(1, 0.01))
    planned = plan(contents, "codl", EVEN, SyncCosts(40), measured=measured)
    assert not planned.is_split
    assert planned.home == Processor.GPU


def test_measuring_asks_for_few_parts() -> None:
    contents = straight(3, channels=512)
    graph = NetworkGraph.of(contents)
    measured = AnalyticTimes(graph, *EVEN)
    plan_network(
        contents,
        "device",
        METHODS["finegrained"],
        AnalyticTimes(graph, *EVEN),
        SyncCosts(2),
        measured=measured,
    )
    assert measured.asked <= len(graph.layers) * (2 + 4)


NETWORKS = st.one_of(
    st.builds(straight, st.integers(1, 4), st.sampled_from([8, 31, 64, 72]), st.integers(2, 12)),
    st.builds(forked, st.integers(2, 4), st.sampled_from([8, 33, 40]), st.integers(2, 9)),
    st.builds(residual, st.integers(1, 4), st.sampled_from([8, 33, 64]), st.integers(2, 12)),
    st.sampled_from(sorted(GRAPHS)).map(lambda name: contents_of(GRAPHS[name])),
)
SPEED = st.builds(
    Speed,
    st.floats(0, 100),
    st.sampled_from([0.0, 0.001, 0.02, 0.5]),
    st.sampled_from([1, 8, 32, 64]),
)


@given(
    contents=NETWORKS,
    method=st.sampled_from(sorted(METHODS)),
    speeds=st.tuples(SPEED, SPEED),
    sync=st.builds(SyncCosts, st.floats(0, 50), st.sampled_from([1.0, 100.0, 1e6])),
    margin=st.sampled_from([0.0, 0.02, 0.5]),
    channel_step=st.sampled_from([None, 8, 32]),
    measured=st.one_of(st.none(), st.tuples(SPEED, SPEED)),
)
def test_every_plan_is_sound_and_not_worse_than_one_processor(
    contents: FileContents,
    method: str,
    speeds: tuple[Speed, Speed],
    sync: SyncCosts,
    margin: float,
    channel_step: int | None,
    measured: tuple[Speed, Speed] | None,
) -> None:
    try:
        planned = plan(contents, method, speeds, sync, margin, measured, channel_step)
    except InputError as error:
        assert "no layer" in str(error)
        return
    verify_plan(contents, planned.plan)
    assert planned.total_us <= planned.home_us
    assert planned.plan.predicted_ms == pytest.approx(planned.total_us / 1000)
    again = plan(contents, method, speeds, sync, margin, measured, channel_step)
    assert again.plan == planned.plan


@pytest.mark.parametrize("method", ["ulayer", "codl", "finegrained", "combined"])
@pytest.mark.parametrize("name", ["vgg16", "googlenet"])
def test_large_networks_are_planned_within_a_second(
    name: str, method: str, request: pytest.FixtureRequest
) -> None:
    contents = request.getfixturevalue(name)
    speeds = (Speed(3, 0.002, 32), Speed(9, 0.002, 8))
    begin = time.process_time()  # of one thread: what else the machine does is not counted
    planned = plan(contents, method, speeds, SyncCosts(9, 9000))
    assert time.process_time() - begin < 1
    assert planned.is_split


@pytest.fixture(scope="module")
def googlenet() -> FileContents:
    return parse_contents(converted("googlenet").content)


@pytest.fixture(scope="module")
def vgg16() -> FileContents:
    return vgg16_records()


def test_a_network_that_cannot_be_cut_says_so() -> None:
    net = Net("uncut")
    contents = contents_of(net.done(net.op("scores", Softmax(), net.input("x", (1, 1, 10)))))
    with pytest.raises(InputError, match="no layer of this network can be cut"):
        plan(contents, "codl")


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(InputError, match="one of ulayer, codl, finegrained, combined, search"):
        method_named("best")
