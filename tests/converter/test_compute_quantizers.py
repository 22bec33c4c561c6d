"""Quantizers that no binary layer reads are one rounding step; all others stay bit-planes."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Source, applied, kinds

from phonebit.converter.interpreter import evaluate_node, run
from phonebit.converter.ir import Node, Window
from phonebit.converter.ops import Conv2D, Elementwise, MaxPool2D, Quantize, Sign
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.converter.passes.compute_quantizers import ComputeQuantizers
from phonebit.converter.passes.uniform_steps import TIE, uniform_steps


def even(count: int, step: float) -> Quantize:
    """A quantizer of ``count`` thresholds, halves of its steps."""
    levels = np.arange(count + 1, dtype=np.float32) * np.float32(step)
    return Quantize(((levels[:-1] + levels[1:]) / 2).astype(np.float32), levels)


def real_weights(net: Source, *shape: int) -> np.ndarray:
    return (net.rng.integers(-8, 9, shape) / 8).astype(np.float32)


@pytest.mark.parametrize("count", [7, 15])
def test_a_float_layer_reads_one_rounding_step(count: int) -> None:
    net = Source()
    q = net.add("q", even(count, 0.25), "x")
    p = net.add("p", MaxPool2D(Window((2, 2))), q)
    graph = net.done(net.add("c", Conv2D(real_weights(net, 6, 3, 3, 4), Window((3, 3))), p))
    changed = applied(ComputeQuantizers(), graph)
    assert kinds(changed).count("Quantize") == 0
    shape = (2, *graph.types["x"].shape)
    x = {"x": (np.random.default_rng(0).integers(-9, 40, shape) / 16).astype(np.float32)}
    np.testing.assert_allclose(run(changed, x, ["c"])["c"], run(graph, x, ["c"])["c"], atol=1e-6)


@pytest.mark.parametrize("reader", ["binary", "sign", "quantizer"])
def test_what_bits_are_read_of_keeps_its_planes(reader: str) -> None:
    net = Source()
    q = net.add("q", even(7, 0.25), "x")
    if reader == "binary":
        last = net.add("c", Conv2D(net.signs(6, 3, 3, 4), Window((3, 3))), q)
    else:
        last = net.add("s", Sign(0.3) if reader == "sign" else even(7, 0.5), q)
    graph = net.done(last)
    assert kinds(applied(ComputeQuantizers(), graph)).count("Quantize") >= 1


def test_uneven_levels_and_few_of_them_stay() -> None:
    net = Source()
    uneven = Quantize(np.array([0, 1, 5], np.float32), np.array([0, 1, 2, 3], np.float32))
    for name, op in (("uneven", uneven), ("ternary", even(2, 1.0))):
        net.add(name, op, "x")
    weights = real_weights(net, 6, 3, 3, 4)
    net.add("c", Conv2D(weights, Window((3, 3))), "uneven")
    net.add("d", Conv2D(weights, Window((3, 3))), "ternary")
    graph = net.done("c", "d")
    assert kinds(applied(ComputeQuantizers(), graph)).count("Quantize") == 2


@pytest.mark.parametrize("step", [0.125, 0.25, 1.0, 2.0])
@pytest.mark.parametrize("count", [3, 7, 15])
def test_halves_that_go_to_even_are_exact_on_a_grid(step: float, count: int) -> None:
    """round(x / step), limited: every half goes to the even level, none by accident."""
    levels = np.arange(count + 1, dtype=np.float32) * np.float32(step)
    middles = ((levels[:-1] + levels[1:]) / 2).astype(np.float32)
    up = np.arange(count) % 2 == 1
    thresholds = np.where(up, middles, np.nextafter(middles, np.float32(np.inf)))
    steps = uniform_steps(thresholds.astype(np.float32), levels, 1, TIE)
    assert steps is not None
    grid = (np.arange(-20, 20 * count, dtype=np.float32) * np.float32(step / 16)).reshape(
        1, -1, 1, 1
    )
    node = Node("q", Elementwise(Epilogue(steps)), ["x"], "q")
    expected = np.clip(np.rint(grid / np.float32(step)), 0, count) * np.float32(step)
    np.testing.assert_array_equal(evaluate_node(node, [grid])["q"], expected)


@pytest.mark.parametrize("scale", [0.1118828, 0.0784313, 1 / 3, 0.25])
@pytest.mark.parametrize("count", [7, 15, 255])
def test_levels_differ_next_to_thresholds_only(scale: float, count: int) -> None:
    """A division, as it was trained, against a product: at ties, up to 1e-6 of the range."""
    step = np.float32(scale)
    op = even(count, float(step))
    steps = uniform_steps(op.thresholds, op.values, 1, TIE)
    assert steps is not None
    rng = np.random.default_rng(1)
    x = (rng.random(20_000) * (count + 4) - 2).astype(np.float32) * step
    far = np.abs(x[:, None] - op.thresholds).min(axis=1) > 2 * TIE * (count + 1) * step
    node = Node("q", Elementwise(Epilogue(steps)), ["x"], "q")
    computed = evaluate_node(node, [x.reshape(1, -1, 1, 1)])["q"].reshape(-1)
    expected = op.compute([x])
    assert far.mean() > 0.99
    np.testing.assert_allclose(computed[far], expected[far], atol=1e-6 * float(op.values[-1]))


def test_thresholds_of_few_bits_are_decided_exactly() -> None:
    """x >= t for t on a grid, which rounding halves to even would decide alternately."""
    thresholds = (np.arange(63, dtype=np.float32) - 31) / 8
    levels = np.arange(64, dtype=np.float32)
    steps = uniform_steps(thresholds, levels, 1, TIE)
    assert steps is not None
    grid = (np.arange(-40, 40, dtype=np.float32) / 8).reshape(1, -1, 1, 1)
    node = Node("q", Elementwise(Epilogue(steps)), ["x"], "q")
    expected = Quantize(thresholds, levels).compute([grid])
    np.testing.assert_array_equal(evaluate_node(node, [grid])["q"], expected)
