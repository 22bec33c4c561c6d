"""What a network tells of its layers, its memory and their times."""

from __future__ import annotations

from pathlib import Path

from support.golden import golden_graph, integer_inputs
from support.stress_graphs import load, long_lives, many_parts


def test_layers_are_described(tmp_path: Path) -> None:
    network = load(golden_graph("residual_block_64"), tmp_path)
    block = next(layer for layer in network.layers if layer.name == "block")
    assert block.kind == "binary_conv2d"
    assert block.binary
    assert block.macs == 6 * 5 * 64 * 9 * 64
    assert block.weight_bytes == 64 * 9 * 8 + 4 * 64 * 4  # bits; scale, bias, slope, threshold
    assert block.inputs == ["sign/bits", "x"]
    assert block.outputs == ["block", "block/bits"]
    assert "bconv2d" in block.kernel


def test_memory_is_reported_and_near_its_lower_bound(tmp_path: Path) -> None:
    for graph in (long_lives(), golden_graph("residual_block_64"), many_parts()):
        memory = load(graph, tmp_path).memory
        assert memory["file_bytes"] == (tmp_path / f"{graph.name}.pbit").stat().st_size
        assert 0 < memory["lower_bound_bytes"] <= memory["arena_bytes"]
        assert memory["arena_bytes"] <= 1.2 * memory["lower_bound_bytes"]


def test_profile_has_a_time_for_each_layer(tmp_path: Path) -> None:
    graph = golden_graph("tiny_classifier")
    network, inputs = load(graph, tmp_path), integer_inputs(graph)
    times = network.profile([inputs[info.name] for info in network.inputs], 3)
    assert len(times) == len(network.layers)
    assert all(0.0 <= time < 1000.0 for time in times)
