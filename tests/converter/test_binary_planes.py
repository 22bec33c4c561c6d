"""Activations of k bits in k planes: the engine's bits are those of the source graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from graphs import Source, check_origins, integers, node_of

from phonebit.converter.convert import convert_graph
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import (
    BinaryConv2D,
    BitPlanes,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Quantize,
    Sign,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, ScaleBias
from phonebit.converter.ops.epilogue.functions import Round
from phonebit.converter.reader import graph_from_bytes
from phonebit.devices.gpus import gpu_runtime
from phonebit.network import Network

_runtime = gpu_runtime()
ISAS = [name for name, _, supported in _runtime.isas() if supported]
SAME = Window((3, 3), pads=(1, 1, 1, 1))


def uniform(levels: int, *, signed: bool = False, own: int = 0) -> Quantize:
    """Steps of 1/2 at integers and halves; each of ``own`` channels has thresholds of its own."""
    numbers = np.arange(levels, dtype=np.float32) - (levels // 2 if signed else 0)
    thresholds = (numbers[1:] - 0.5) / 2
    if own:
        thresholds = thresholds[:, None] * np.resize(np.float32([1, 2, 4]), own)
    return Quantize(thresholds.astype(np.float32), (numbers / 2).astype(np.float32))


def planes(engine: Graph) -> list[int]:
    return [node.op.count for node in engine.nodes if isinstance(node.op, BitPlanes)]


def everywhere(graph: Graph, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """Converts; every instruction set gives the source graph's numbers, to the bit."""
    conversion = convert_graph(graph, zeros="exact")
    again = graph_from_bytes(conversion.content)
    assert planes(again) == planes(conversion.engine)
    check_origins(conversion.content)
    path = folder / "net.pbit"
    path.write_bytes(conversion.content)
    x = {name: array * np.float32(0.75) for name, array in integers(graph).items()}
    expected = run(graph, x)
    for isa in ISAS:
        monkeypatch.setenv("PHONEBIT_CPU", isa)
        outputs = Network.load(path, device="cpu").forward(x)
        for name, array in expected.items():
            got = outputs[name].reshape(array.shape)
            np.testing.assert_array_equal(got, array, err_msg=f"{name} on {isa}")
    return conversion.engine


@pytest.mark.parametrize(("levels", "bits"), [(3, 2), (4, 2), (8, 3), (16, 4)])
@pytest.mark.parametrize("form", ["unsigned", "signed", "own thresholds"])
def test_two_layers_of_k_bits_are_k_planes(
    levels: int, bits: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch norms fall on some channels; zero padding is a level of its own."""
    net = Source((5, 4, 64))
    channels = 50 if bits == 3 else 96
    first = uniform(levels, signed=form == "signed", own=64 if form == "own thresholds" else 0)
    q = net.add("q", first, "x")
    c = net.add("c", Conv2D(net.signs(channels, 3, 3, 64), SAME), q)
    n = net.add("n", net.norm(channels), c)
    r = net.add("r", uniform(levels, own=channels if form == "own thresholds" else 0), n)
    d = net.add("d", Conv2D(net.signs(33, 3, 3, channels), SAME), r)
    engine = everywhere(net.done(d), tmp_path, monkeypatch)
    assert planes(engine) == [bits, bits]
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


@pytest.mark.parametrize("bits", [5, 8])
def test_many_thresholds_of_each_channel(
    bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are planes for a binary convolution, and counted for one of float weights."""
    net = Source((5, 4, 64))
    q = net.add("q", uniform(2**bits, signed=True, own=64), "x")
    c = net.add("c", Conv2D(net.signs(64, 3, 3, 64), SAME), q)
    r = net.add("r", uniform(2**bits, signed=True, own=64), c)
    weights = net.rng.integers(-9, 9, (16, 1, 1, 64)).astype(np.float32) / 4
    d = net.add("d", Conv2D(weights, Window((1, 1))), r)
    engine = everywhere(net.done(d), tmp_path, monkeypatch)
    assert planes(engine) == [bits]


@pytest.mark.parametrize("bits", [5, 8])
def test_levels_that_are_rounded_are_bits_up_to_eight(
    bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Source((5, 4, 64))
    low = -float(2 ** (bits - 1))
    limits = Clamp(low, -low - 1)
    quarter = np.full(64, 0.25, np.float32)
    value = "x"
    for index in range(2):
        value = net.step(f"u{index}", ScaleBias(16 * quarter, quarter), value)
        value = net.step(f"round{index}", Round(), value)
        value = net.step(f"clamp{index}", limits, value)
        value = net.step(f"s{index}", ScaleBias(quarter, 0 * quarter), value)
        value = net.add(f"c{index}", Conv2D(net.signs(64, 3, 3, 64), SAME), value)
    engine = everywhere(net.done(value), tmp_path, monkeypatch)
    assert planes(engine) == [bits, bits]


@pytest.mark.parametrize("groups", [1, 2, 64])
def test_pooled_joined_and_grouped_levels(
    groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a level that is needed as a number, and weights of two bits."""
    net = Source((6, 6, 32))
    y = net.step("y", ScaleBias(np.full(32, -1, np.float32), np.ones(32, np.float32)), "x")
    parts = [net.add(f"q{value}", uniform(16), value) for value in ("x", y)]
    pooled = [net.add(f"p{q}", MaxPool2D(Window((2, 2), (2, 2))), q) for q in parts]
    joined = net.add("k", Concat(), *pooled)
    weights = net.rng.choice(np.float32([-1.5, -0.5, 0.5, 1.5]), (64, 3, 3, 64 // groups))
    c = net.add("c", Conv2D(weights, SAME, groups), joined)
    s = net.step("s", AddTensor(1), c, joined)
    engine = everywhere(net.done(s), tmp_path, monkeypatch)
    assert planes(engine) == [4, 4]


def test_pooled_sums_of_comparisons_that_are_scaled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a detector with FINN's thresholds has them."""
    net = Source((6, 6, 32))
    total, ones = "", np.ones(32, np.float32)
    for index in range(7):
        limits = np.resize(np.float32([1, 2, 4]), 32) * np.float32((index - 3) / 2)
        shifted = net.step(f"s{index}", ScaleBias(ones, -limits), "x")
        step = Quantize(np.zeros(1, np.float32), np.float32([0, 1]))
        reached = net.add(f"q{index}", step, shifted)
        total = net.step(f"t{index}", AddTensor(1), total, reached) if index else reached
    scaled = net.step("scaled", ScaleBias(ones / 4, 0 * ones), total)
    pooled = net.add("pooled", MaxPool2D(Window((2, 2), (2, 2))), scaled)
    c = net.add("c", Conv2D(net.signs(64, 3, 3, 32), SAME), pooled)
    engine = everywhere(net.done(c), tmp_path, monkeypatch)
    assert planes(engine) == [3]


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa in ("avx2", "avx512")])
def test_planes_are_convolved_in_pairs(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole inference runs the lower plane of a pair with the upper one."""
    monkeypatch.setenv("PHONEBIT_CPU", isa)
    net = Source((5, 4, 64))
    c = net.add("c", Conv2D(net.signs(64, 3, 3, 64), SAME), net.add("q", uniform(16), "x"))
    x = integers(net.done(c))
    path = tmp_path / "net.pbit"
    path.write_bytes(convert_graph(net.graph).content)
    profile = Network.load(path, device="cpu").profile(x, 1)
    times = [entry.latency_ms for entry in profile if entry.binary]
    assert [time > 0 for time in times] == [False, True, False, True]


def test_thermometers_stay_where_they_are_cheaper_or_levels_uneven() -> None:
    net = Source((5, 4, 64))
    uneven = Quantize(np.float32([0, 1, 2]), np.float32([0, 1, 2, 4]))
    narrow = net.add("few", Conv2D(net.signs(8, 1, 1, 64), Window((1, 1))), "x")
    sources = {"x": uneven, narrow: uniform(3)}
    ends = []
    for value, op in sources.items():
        q = net.add(f"q{value}", op, value)
        channels = net.graph.types[value].shape[2]
        ends.append(net.add(f"c{value}", Conv2D(net.signs(4, 3, 3, channels), SAME), q))
    engine = convert_graph(net.done(*ends)).engine
    assert planes(engine) == []


def test_an_eight_bit_image_keeps_its_float_layer() -> None:
    net = Source((8, 8, 3))
    r = net.step("r", Round(), "x")
    q = net.add("q", Elementwise(Epilogue([Clamp(0, 255)])), r)
    c = net.add("c", Conv2D(net.signs(8, 3, 3, 3), SAME), q)
    assert planes(convert_graph(net.done(c)).engine) == []


@pytest.mark.parametrize("bits", [2, 3])
def test_quantizers_that_meet_in_a_convolution_take_one_form(bits: int) -> None:
    """The narrow one alone would stay a thermometer."""
    net = Source((5, 4, 64))
    few = net.add("few", Conv2D(net.signs(8, 1, 1, 64), Window((1, 1))), "x")
    parts = [net.add(f"q{value}", uniform(2**bits), value) for value in ("x", few)]
    own = net.add("own", Conv2D(net.signs(4, 1, 1, 8), Window((1, 1))), parts[1])
    joined = net.add("k", Concat(), *parts)
    c = net.add("c", Conv2D(net.signs(64, 3, 3, 72), SAME), joined)
    engine = convert_graph(net.done(c, own)).engine
    assert planes(engine) in ([], [bits, bits])
    assert isinstance(node_of(engine, "c").op, BinaryConv2D)


@pytest.mark.parametrize(("levels", "signed"), [(8, False), (16, False), (7, True), (64, False)])
def test_a_quantizer_whose_values_are_all_zero_converts_and_gives_zeros(
    levels: int, signed: bool, tmp_path: Path
) -> None:
    """The planes' sum is 0 then, too: a sign of it is that of 0."""
    net = Source((5, 4, 64))
    steps = uniform(levels, signed=signed)
    zeros = net.step("zeros", ScaleBias(np.zeros(64, np.float32), np.zeros(64, np.float32)), "x")
    q = net.add("q", Quantize(steps.thresholds, steps.values * np.float32(0.2)), zeros)
    c = net.add("c", Conv2D(net.signs(16, 3, 3, 64), SAME), q)
    s = net.add("s", Sign(), q)
    d = net.add("d", Conv2D(net.signs(16, 3, 3, 64), SAME), s)
    conversion = convert_graph(net.done(q, c, d))
    assert planes(conversion.engine) == [(levels - 1).bit_length()]
    path = tmp_path / "net.pbit"
    path.write_bytes(conversion.content)
    x = integers(net.graph)
    outputs = Network.load(path, device="cpu").forward(x)
    assert not outputs[q].any()
    np.testing.assert_allclose(outputs[c], 0, atol=1e-5)  # of terms up to 0.1 * 15 * 9 * 64
    np.testing.assert_array_equal(outputs[d], run(net.graph, x)[d])


@pytest.mark.parametrize("bits", [5, 8])
@pytest.mark.parametrize("kind", ["binary", "scale per filter", "real", "scale per channel"])
def test_five_to_eight_bits_are_planes_of_binary_weights_without_a_scale_per_channel(
    bits: int, kind: str
) -> None:
    net = Source((8, 8, 128))
    value = net.add("q", uniform(2**bits), "x")
    weights = net.signs(64, 3, 3, 128)
    if kind == "scale per channel":
        scale = np.arange(1, 129, dtype=np.float32) / 64
        value = net.step("scaled", ScaleBias(scale, np.zeros(128, np.float32)), value)
    elif kind == "scale per filter":
        weights *= np.arange(1, 65, dtype=np.float32)[:, None, None, None]
    elif kind == "real":
        weights *= np.resize(np.float32([1, 2, 3, 4, 5]), weights.shape)
    graph = net.done(net.add("c", Conv2D(weights, SAME), value))
    engine = convert_graph(graph).engine
    is_binary = kind in ("binary", "scale per filter")
    assert planes(engine) == ([bits] if is_binary else [])
    assert sum(isinstance(n.op, BinaryConv2D) for n in engine.nodes) == bits * is_binary
