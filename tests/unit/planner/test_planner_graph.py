"""The planner's view of a network, and the geometry of chains and branches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phonebit.format.contents import FileContents
from phonebit.planner import OutputPart
from phonebit.planner.search.branches import branch_regions, branch_stages
from phonebit.planner.search.chains import chain_ends, chain_stage, fraction_cut
from phonebit.planner.search.methods import METHODS
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stage_costs import StageCosts
from phonebit.planner.search.stages import Placement
from support.golden import golden_graph, golden_graphs
from support.planner_times import (
    AnalyticTimes,
    Speed,
    SyncCosts,
    contents_of,
    forked,
    residual,
    straight,
)


def windowed_rows(graph: NetworkGraph, layer: int, rows: tuple[int, int]) -> set[int]:
    """Rows that a window touches, tap by tap."""
    of_layer = graph.layers[layer]
    window = of_layer.geometry
    height = graph.tensors[of_layer.operands[0]].height
    taps = {
        row * window.stride_h - window.pad_top + tap * window.dilation_h
        for row in range(*rows)
        for tap in range(window.kernel_h)
    }
    return {row for row in taps if 0 <= row < height}


@pytest.mark.parametrize("name", sorted(golden_graphs()))
def test_rows_read_are_those_under_the_taps(name: str) -> None:
    graph = NetworkGraph.of(contents_of(golden_graph(name)))
    for layer in graph.layers:
        if not layer.geometry.can_cut_rows:
            continue
        for begin in range(layer.shape[0]):
            rows = (begin, min(begin + 2, layer.shape[0]))
            touched = windowed_rows(graph, layer.index, rows)
            part = OutputPart(*rows, 0, layer.shape[2])
            read = next(iter(graph.parts_read(layer, part)))[1]
            assert touched <= set(range(*read[:2]))
            if touched:
                assert read[:2] == (min(touched), max(touched) + 1)
            assert read[2:] == (0, graph.tensors[layer.operands[0]].channels)


def test_pools_and_steps_read_the_same_channels_and_convolutions_all() -> None:
    graph = NetworkGraph.of(residual(1))
    sign, block = graph.layers[:2]
    part = OutputPart(4, 6, 32, 64)
    assert dict(graph.parts_read(sign, part)) == {sign.operands[0]: part}
    read = dict(graph.parts_read(block, part))
    assert read[block.operands[0]] == OutputPart(3, 7, 0, 64)
    assert read[block.step_tensors[0]] == part


def test_steps_read_the_same_rows_and_single_rows_wholly() -> None:
    graph = NetworkGraph.of(residual(1))
    block = graph.layers[1]
    read = dict(graph.parts_read(block, OutputPart(4, 6, 0, block.shape[2])))
    assert read[block.step_tensors[0]][:2] == (4, 6)
    assert read[block.operands[0]][:2] == (3, 7)


def test_last_reader() -> None:
    graph = NetworkGraph.of(residual(2))
    value = graph.layers[1].outputs[0]
    assert graph.last_reader[value] == 2
    assert graph.last_reader[graph.outputs[0]] == len(graph.layers)


def test_a_chains_halo_grows_by_a_row_for_each_layer() -> None:
    graph = NetworkGraph.of(straight(3))
    chain = chain_stage(graph, 1, 4, cut=6)
    assert chain is not None
    assert [entry.gpu for entry in chain.parts] == [
        OutputPart(0, 8, 0, 64),
        OutputPart(0, 7, 0, 64),
        OutputPart(0, 6, 0, 64),
    ]
    assert [entry.cpu for entry in chain.parts] == [
        OutputPart(4, 16, 0, 64),
        OutputPart(5, 16, 0, 64),
        OutputPart(6, 16, 0, 64),
    ]


def test_chains_end_where_nothing_inside_is_needed_later() -> None:
    graph = NetworkGraph.of(residual(3))
    # A block's value is added in the next block, which both processors then hold in part.
    assert list(chain_ends(graph, 1)) == [2, 3, 4, 5, 6]
    forked_graph = NetworkGraph.of(forked(2))
    # The fork's bits are read by both branches: a chain from it must reach the join.
    assert list(chain_ends(forked_graph, 0)) == [1, 5, 6]


def test_layers_without_rows_make_no_chain() -> None:
    graph = NetworkGraph.of(contents_of(golden_graph("tiny_classifier")))
    dense = next(layer.index for layer in graph.layers if layer.name == "dense1")
    assert list(chain_ends(graph, dense)) == []
    assert chain_stage(graph, dense - 1, dense + 1, 1) is None


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_branches_are_found_between_fork_and_join(branches: int) -> None:
    graph = NetworkGraph.of(forked(branches))
    (region,) = branch_regions(graph)
    assert len(region) == branches
    layers = sorted(layer for branch in region for layer in branch)
    assert graph.layers[layers[-1] + 1].name == "join"
    assert layers == list(range(layers[0], layers[-1] + 1))


def test_a_shortcut_alone_is_no_branch() -> None:
    assert list(branch_regions(NetworkGraph.of(residual(3)))) == []


def branch_costs(contents: FileContents) -> StageCosts:
    graph = NetworkGraph.of(contents)
    times = AnalyticTimes(graph, Speed(1, 0.02), Speed(2, 0.01))
    return StageCosts(graph, times, SyncCosts(1))


@pytest.mark.parametrize("branches", [2, 3, 4, 6, 12])
def test_best_mapping_is_that_of_all(branches: int) -> None:
    costs = branch_costs(forked(branches, channels=32))
    (region,) = branch_regions(costs.graph)
    best = branch_stages(costs, region)[0]
    sums = []
    cpu_us, gpu_us = costs.single_us.values()
    for mapping in range(1, 2**branches - 1):
        gpu = sum(gpu_us[i] for n, b in enumerate(region) if mapping >> n & 1 for i in b)
        cpu = sum(cpu_us[i] for n, b in enumerate(region) if not mapping >> n & 1 for i in b)
        sums.append(max(cpu, gpu))
    if branches <= 10:
        assert costs.work_us(best) == pytest.approx(min(sums))
    else:  # the shortest branches count as one
        assert costs.work_us(best) <= 1.1 * min(sums)
    assert best.placement == Placement.BRANCHES
    assert all((entry.cpu is None) != (entry.gpu is None) for entry in best.parts)


@given(size=st.integers(2, 300), tenths=st.integers(1, 9))
def test_fractions_leave_something_on_both_sides(size: int, tenths: int) -> None:
    assert 0 < fraction_cut(size, tenths / 10) < size


def test_cuts_of_the_methods() -> None:
    layer = NetworkGraph.of(straight(1, channels=64, size=16)).layers[1]
    rows, channels = Placement.ROWS, Placement.CHANNELS

    def cuts(name: str, dimension: Placement, channel_step: int = 8) -> list[int]:
        return replace(METHODS[name], channel_step=channel_step).cuts(layer, dimension)

    assert cuts("ulayer", channels) == [16, 32, 48]
    assert cuts("ulayer", rows) == []
    assert cuts("finegrained", channels) == [8, 16, 24, 32, 40, 48, 56]
    assert cuts("finegrained", channels, 32) == [32]
    assert cuts("codl", rows) == [2, 3, 5, 6, 8, 10, 11, 13, 14]
    assert cuts("codl", channels) == [8, 16, 24, 32, 40, 48, 56]
    assert cuts("search", rows) == [2, 4, 6, 8, 10, 12, 14]
    assert cuts("search", channels) == cuts("finegrained", channels)
