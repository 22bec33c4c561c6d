"""Thresholds decide as the framework's float32 formula does, at every value that can occur."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import BatchNorm, BinaryConv2D, Conv2D, Elementwise, Input, Sign
from phonebit.converter.ops.epilogue import Clamp, Epilogue, PRelu, ScaleBias
from phonebit.converter.passes import integer_thresholds
from phonebit.converter.passes.chains import Chain, chain_to_sign, directions
from phonebit.converter.passes.fuse_float_thresholds import float_thresholds
from phonebit.converter.passes.integer_thresholds import Reach, find_thresholds, reach_of
from phonebit.format.records import DataType

TINY = float(np.finfo(np.float32).tiny)
SPECIAL = [0.0, -0.0, 1e-30, -1e-30, TINY, 1e-3, 1.0, -1.0, 0.1, -0.3, 7.5, 1e6, -1e6]
NUMBERS = st.one_of(st.sampled_from(SPECIAL), st.floats(-300, 300, width=32))
VARIANCES = st.one_of(st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e6]), st.floats(0, 1e4, width=32))
CHANNELS = 33


def chain_of(*ops: Operator, channels: int = CHANNELS) -> Chain:
    """A chain of per-channel operators and a Sign, after a float input."""
    nodes = [Node("v", Input(), [], value="v")]
    for index, op in enumerate((*ops, Sign())):
        nodes.append(Node(f"n{index}", op, [nodes[-1].outputs[0]], value=f"n{index}"))
    types = {"v": TensorType((1, 1, channels), DataType.F32)}
    graph = Graph("chain", nodes, types, ["v"], [nodes[-1].outputs[0]])
    graph.types = infer(graph)
    chain = chain_to_sign(graph, "v", nodes[1])
    assert chain is not None
    return chain


@st.composite
def batch_norms(draw: st.DrawFn, channels: int = CHANNELS) -> BatchNorm:
    def row(numbers: st.SearchStrategy[float]) -> np.ndarray:
        drawn = draw(st.lists(numbers, min_size=4, max_size=4))
        return np.resize(np.array(drawn, np.float32), channels)

    epsilon = draw(st.sampled_from([1e-3, 1e-4, 1e-5]))
    # Rows of different period, so that channels see many combinations of the drawn numbers.
    gamma, beta, mean, variance = row(NUMBERS), row(NUMBERS), row(NUMBERS), row(VARIANCES)
    return BatchNorm(
        gamma, np.roll(np.repeat(beta, 2)[:channels], 1), np.sort(mean), variance, epsilon
    )


def decided_by_thresholds(
    accumulators: np.ndarray, found: integer_thresholds.Thresholds
) -> np.ndarray:
    signed = np.where(found.negate, -accumulators, accumulators)
    return signed >= found.threshold


@settings(max_examples=60)
@given(
    batch_norms(),
    st.sampled_from([Reach(-27, 27, 2), Reach(-288, 288, 1), Reach(-2304, 2304, 2)]),
    st.sampled_from([1.0, 0.1, 0.037109375]),
)
def test_every_reachable_accumulator_decides_like_the_float_chain(
    norm: BatchNorm, reach: Reach, alpha: float
) -> None:
    scale = ScaleBias(np.full(CHANNELS, alpha, np.float32), np.zeros(CHANNELS, np.float32))
    chain = chain_of(Elementwise(Epilogue([scale])), norm)
    found = find_thresholds(chain.decide, reach, CHANNELS, monotone=True)
    assert found is not None and not found.mixed
    every = np.arange(reach.low, reach.high + 1, reach.step)[:, None].repeat(CHANNELS, axis=1)
    np.testing.assert_array_equal(decided_by_thresholds(every, found), chain.decide(every))


@settings(max_examples=30)
@given(batch_norms())
def test_bisection_finds_the_same_decisions_as_trying_every_accumulator(norm: BatchNorm) -> None:
    reach, chain = Reach(-1001, 1001, 2), chain_of(norm)
    tried = integer_thresholds._by_exhaustion(chain.decide, reach, CHANNELS)
    bisected = integer_thresholds._by_bisection(chain.decide, reach, CHANNELS)
    np.testing.assert_array_equal(tried.threshold, bisected.threshold)
    np.testing.assert_array_equal(tried.negate, bisected.negate)


def test_a_range_too_large_to_try_is_bisected_only_if_monotone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(integer_thresholds, "MAX_EVALUATIONS", 10)
    chain = chain_of(Elementwise(Epilogue([Clamp(-1.0, 1.0)])), channels=2)
    found = find_thresholds(chain.decide, Reach(-99, 99, 2), 2, monotone=True)
    assert found is not None and found.threshold.tolist() == [1, 1]
    assert find_thresholds(chain.decide, Reach(-99, 99, 2), 2, monotone=False) is None


def test_gamma_zero_gives_thresholds_that_always_or_never_fire() -> None:
    zero, beta = np.zeros(3, np.float32), np.array([0.5, 0.0, -0.5], np.float32)
    norm = BatchNorm(zero, beta, zero, np.ones(3, np.float32), 1e-3)
    found = find_thresholds(chain_of(norm, channels=3).decide, Reach(-9, 9, 2), 3, monotone=True)
    assert found is not None
    assert found.threshold.tolist() == [-9, -9, 10]
    assert not found.negate.any()


def test_gamma_below_zero_negates_the_filter() -> None:
    gamma, beta = np.array([1.0, -1.0], np.float32), np.array([-3.0, 3.0], np.float32)
    norm = BatchNorm(gamma, beta, np.zeros(2, np.float32), np.ones(2, np.float32), 0.0)
    found = find_thresholds(chain_of(norm, channels=2).decide, Reach(-9, 9, 1), 2, monotone=True)
    assert found is not None
    assert found.negate.tolist() == [False, True]
    assert found.threshold.tolist() == [3, -3]  # acc >= 3; acc <= 3, that is -acc >= -3


def test_a_prelu_that_falls_and_rises_is_found_to_be_no_threshold() -> None:
    slope = np.array([-1.0, 0.25], np.float32)
    shift = ScaleBias(np.ones(2, np.float32), np.full(2, -3.0, np.float32))
    chain = chain_of(Elementwise(Epilogue([PRelu(slope), shift])), channels=2)
    assert directions(chain, 2) is None
    found = find_thresholds(chain.decide, Reach(-9, 9, 1), 2, monotone=False)
    assert found is not None and found.mixed == [0]


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1)])
@pytest.mark.parametrize("pad_value", [-1, 0, 1])
def test_reach_holds_every_accumulator_that_occurs(
    pads: tuple[int, int, int, int], pad_value: int
) -> None:
    from phonebit.converter.reference.convolution import convolve_integers

    rng = np.random.default_rng(0)
    weights = rng.choice(np.array([-1, 1], np.int8), (7, 3, 3, 5))
    window = Window((3, 3), pads=pads)
    reach = reach_of(BinaryConv2D(weights, window, 1, pad_value))
    x = rng.choice(np.array([-1, 1], np.int8), (4, 6, 6, 5))
    sums = convolve_integers(x, weights, window, 1, pad_value)
    assert reach.low <= sums.min() and sums.max() <= reach.high
    assert np.all((sums - reach.low) % reach.step == 0)
    assert reach.step == (1 if any(pads) and pad_value == 0 else 2)


def test_reach_of_bytes_covers_the_extreme_images() -> None:
    weights = np.ones((1, 2, 2, 3), np.float32)
    assert reach_of(Conv2D(weights, Window((2, 2)), input_mul=2, input_add=-255)) == Reach(
        -12 * 255, 12 * 255, 1
    )
    assert reach_of(Conv2D(weights, Window((2, 2)))) == Reach(-12 * 255, 12 * 255, 1)


def neighbours(values: np.ndarray) -> np.ndarray:
    """The values with the three floats above and below each."""
    rows = [values]
    up = down = values
    for _ in range(3):
        up, down = np.nextafter(up, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf))
        rows += [up, down]
    return np.stack(rows).astype(np.float32)


@settings(max_examples=60)
@given(batch_norms(), st.integers(0, 2**32))
def test_float_thresholds_decide_like_the_chain_next_to_the_threshold_and_anywhere(
    norm: BatchNorm, seed: int
) -> None:
    chain = chain_of(norm)
    trend = directions(chain, CHANNELS)
    assert trend is not None
    (threshold,) = float_thresholds(chain, trend)
    sign = np.where(trend < 0, np.float32(-1), np.float32(1))
    around = neighbours(np.clip(threshold, -3e38, 3e38)) * sign
    rng = np.random.default_rng(seed)
    anywhere = (rng.standard_normal((50, CHANNELS)) * 10.0 ** rng.integers(-6, 7, (50, 1))).astype(
        np.float32
    )
    with np.errstate(over="ignore"):
        for values in (around, anywhere, norm.mean[None]):
            np.testing.assert_array_equal(values * sign >= threshold, chain.decide(values))


def test_a_bare_sign_has_the_threshold_zero() -> None:
    chain = chain_of(channels=3)
    trend = directions(chain, 3)
    assert trend is not None
    (threshold,) = float_thresholds(chain, trend)
    assert threshold.tolist() == [0.0, 0.0, 0.0]
    assert not np.signbit(threshold).any()
