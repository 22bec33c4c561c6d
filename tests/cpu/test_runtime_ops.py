"""The C++ runtime computes what the NumPy reference interpreter computes, bit for bit."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cases import ISAS, Array, all_cases, assert_same, load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import BinaryConv2D, MaxPool2D
from phonebit.converter.ops.epilogue import Epilogue
from support.builders import integer_inputs
from support.engine_net import Net, sign_of

CASES = all_cases()


@cache
def reference(name: str) -> dict[str, Array]:
    """Inputs and every value of a case, for a batch of two."""
    graph = CASES[name]
    inputs = integer_inputs(graph)
    return {**inputs, **run(graph, inputs, wanted=graph.types)}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", CASES)
def test_outputs_equal_the_reference_on_any_number_of_threads(
    name: str, isa: str, tmp_path: Path
) -> None:
    values = reference(name)
    for threads in (1, 2, 5):
        network = load(CASES[name], tmp_path, threads, isa)
        outputs = network.forward([values[info.name] for info in network.inputs])
        for info, output in zip(network.outputs, outputs, strict=True):
            assert_same(info.name, output, values[info.name])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", CASES)
def test_activations_are_all_values(name: str, isa: str, tmp_path: Path) -> None:
    values = reference(name)
    network = load(CASES[name], tmp_path, 2, isa)
    activations = network.activations([values[info.name] for info in network.inputs])
    assert set(activations) == set(CASES[name].types)
    for key, activation in activations.items():
        assert_same(key, activation, values[key])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", CASES)
def test_each_layer_alone_equals_the_reference(name: str, isa: str, tmp_path: Path) -> None:
    values = reference(name)
    network = load(CASES[name], tmp_path, 1, isa)
    for index, layer in enumerate(network.layers):
        results = network.run_op(index, [values[key] for key in layer.inputs])
        assert set(results) == set(layer.outputs)
        for key, result in results.items():
            assert_same(key, result, values[key])


@st.composite
def windows(draw: st.DrawFn) -> tuple[Window, tuple[int, int]]:
    """A window and a map that it fits."""
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilation = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = tuple(draw(st.integers(0, spans[side % 2] - 1)) for side in range(4))
    size = tuple(
        draw(st.integers(max(1, span - before - after), span + 9))
        for span, before, after in ((spans[0], pads[0], pads[2]), (spans[1], pads[1], pads[3]))
    )
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    return Window(kernel, strides, dilation, pads), size


@pytest.mark.parametrize("isa", ISAS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    geometry=windows(),
    channels=st.tuples(st.integers(1, 140), st.integers(1, 140)),
    pad_value=st.sampled_from([-1, 0, 1]),
    threshold=st.booleans(),
)
def test_binary_convolutions_of_any_geometry_equal_the_reference(
    isa: str,
    geometry: tuple[Window, tuple[int, int]],
    channels: tuple[int, int],
    pad_value: int,
    threshold: bool,
    tmp_path: Path,
) -> None:
    window, size = geometry
    net = Net("random_convolution")
    bits = sign_of(net, net.input("x", (*size, channels[0])))
    weights = net.signs(channels[1], *window.kernel, channels[0])
    steps = [net.scale_bias(channels[1])]
    epilogue = (
        Epilogue([], net.thresholds(channels[1], 20))
        if threshold
        else Epilogue(list(steps), net.dyadic(channels[1]))
    )
    net.op("conv", BinaryConv2D(weights, window, 1, pad_value, epilogue), bits, value=not threshold)
    graph = net.done("conv/bits") if threshold else net.done("conv", "conv/bits")
    assert_graph(graph, isa, tmp_path)


@pytest.mark.parametrize("isa", ISAS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(geometry=windows(), channels=st.integers(1, 140), of_bits=st.booleans())
def test_max_pools_of_any_geometry_equal_the_reference(
    isa: str,
    geometry: tuple[Window, tuple[int, int]],
    channels: int,
    of_bits: bool,
    tmp_path: Path,
) -> None:
    window, size = geometry
    if not all(keeps_a_tap(window, size, axis) for axis in (0, 1)):
        return
    net = Net("random_pool")
    value = net.input("x", (*size, channels))
    flip = net.rng.random(channels) < 0.5 if of_bits else None
    operand = sign_of(net, value) if of_bits else value
    assert_graph(net.done(net.op("pool", MaxPool2D(window, flip), operand)), isa, tmp_path)


def keeps_a_tap(window: Window, size: tuple[int, int], axis: int) -> bool:
    """Whether every window has a tap inside the map along one axis."""
    count = window.output_size(*size)[axis]
    taps = np.arange(window.kernel[axis]) * window.dilation[axis] - window.pads[axis]
    starts = np.arange(count)[:, None] * window.strides[axis]
    return bool((((starts + taps) >= 0) & ((starts + taps) < size[axis])).any(1).all())


def assert_graph(graph: Graph, isa: str, folder: Path) -> None:
    inputs = integer_inputs(graph)
    network = load(graph, folder, 1, isa)
    outputs = network.forward([inputs[info.name] for info in network.inputs])
    expected = run(graph, inputs)
    for info, output in zip(network.outputs, outputs, strict=True):
        assert_same(info.name, output, expected[info.name])


def test_layers_are_described(tmp_path: Path) -> None:
    network = load(CASES["residual_block_64"], tmp_path)
    block = next(layer for layer in network.layers if layer.name == "block")
    assert block.kind == "binary_conv2d"
    assert block.binary
    assert block.macs == 6 * 5 * 64 * 9 * 64
    assert block.weight_bytes == 64 * 9 * 8 + 4 * 64 * 4  # bits; scale, bias, slope, threshold
    assert block.inputs == ["sign/bits", "x"]
    assert block.outputs == ["block", "block/bits"]
    assert "bconv2d" in block.kernel


def test_memory_is_reported_and_near_its_lower_bound(tmp_path: Path) -> None:
    for name in ("long_lives", "residual_block_64", "many_parts_40_192"):
        network = load(CASES[name], tmp_path)
        memory = network.memory
        assert memory["file_bytes"] == (tmp_path / f"{name}.pbit").stat().st_size
        assert 0 < memory["lower_bound_bytes"] <= memory["arena_bytes"]
        assert memory["arena_bytes"] <= 1.2 * memory["lower_bound_bytes"]


def test_profile_has_a_time_for_each_layer(tmp_path: Path) -> None:
    network = load(CASES["tiny_classifier"], tmp_path)
    inputs = integer_inputs(CASES["tiny_classifier"])
    times = network.profile([inputs[info.name] for info in network.inputs], 3)
    assert len(times) == len(network.layers)
    assert all(0.0 <= time < 1000.0 for time in times)
