"""Mean and variance that every channel of a value has on random images, layer by layer.

Batch normalizations follow them, as training's follow their batches. Sums count as Gaussian, and
elements of a window as independent unless a pool made them overlap, which holds for seeded weights
and noise; padding is left out. That is close enough to keep signs alive in the deepest layers, and
far cheaper than running the network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Operator
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Concat,
    Conv2D,
    Elementwise,
    Input,
    MaxPool2D,
    Sign,
)
from phonebit.converter.ops.epilogue import AddTensor, Clamp, Epilogue, EpilogueOp, PRelu

Array = NDArray[np.float64]

PIXEL_VARIANCE: Final = 1 / 3
"""Of noise that is uniform in -1..1."""
QUANTILES: Final = 512
"""Points at which the distribution of a maximum is taken."""


@dataclass(frozen=True)
class Moments:
    """Mean and variance by channel, (C,) each.

    Attributes:
        mean: (C,).
        variance: (C,).
        bits: whether values are -1 and +1, so that one follows from the other.
        rectified: for what a (leaky) ReLU gives, its Gaussian input and its slope below zero.
        overlap: correlation of neighbours in a map, from windows of a pool that share elements.
    """

    mean: Array
    variance: Array
    bits: bool = False
    rectified: tuple[Moments, Array] | None = None
    overlap: float = 0.0

    @property
    def square(self) -> Array:
        """Mean square."""
        return self.variance + np.square(self.mean)


def moments_of(op: Operator, inputs: list[Moments], channels: int) -> Moments:
    """Moments of an operator's result.

    Args:
        op: source operator of a network definition.
        inputs: moments of what it reads.
        channels: of its result.
    """
    match op:
        case Input():
            return Moments(np.zeros(channels), np.full(channels, PIXEL_VARIANCE))
        case Conv2D():
            return _of_convolution(op, inputs[0])
        case BatchNorm():
            scale = op.gamma / np.sqrt(op.variance.astype(np.float64) + op.epsilon)
            mean = (inputs[0].mean - op.mean) * scale + op.beta
            variance = inputs[0].variance * np.square(scale)
            return Moments(mean, variance, overlap=inputs[0].overlap)
        case Sign():
            return _of_bits(_share_above_zero(inputs[0]))
        case MaxPool2D():
            overlap = max(0.0, 1 - op.window.strides[0] / op.window.kernel[0])
            return replace(_of_maximum(inputs[0], math.prod(op.window.kernel)), overlap=overlap)
        case AveragePool2D():
            share = inputs[0].overlap + (1 - inputs[0].overlap) / math.prod(op.window.kernel)
            return Moments(inputs[0].mean, inputs[0].variance * share)
        case Concat():
            mean = np.concatenate([part.mean for part in inputs])
            bits = all(part.bits for part in inputs)
            return Moments(mean, np.concatenate([part.variance for part in inputs]), bits)
        case Elementwise(epilogue=Epilogue(steps=[step])):
            return _of_step(step, inputs)
    raise TypeError(f"no moments of a {type(op).__name__}")


@cache
def maximum_of_normals(taps: int) -> tuple[float, float]:
    """Mean and variance of the maximum of ``taps`` independent standard normals."""
    normal = NormalDist()
    # u is the maximum's distribution function, which is that of one normal to the power of taps.
    places = [((index + 0.5) / QUANTILES) ** (1 / taps) for index in range(QUANTILES)]
    values = np.array([normal.inv_cdf(place) for place in places])
    return float(values.mean()), float(values.var())


def _of_convolution(op: Conv2D, x: Moments) -> Moments:
    """Taps of a channel that are correlated by r add r * (sum of w)^2 + (1 - r) * sum of w^2."""
    filters = op.weights.shape[0]
    by_group = (op.groups, 1, -1)
    shape = (op.groups, filters // op.groups, -1, op.weights.shape[3])
    weights = op.weights.reshape(shape)
    sums = weights.sum(axis=2, dtype=np.float32)
    squares = np.einsum("gfkc,gfkc->gfc", weights, weights)
    mean = (sums * x.mean.reshape(by_group)).sum(axis=2).reshape(-1)
    factors = squares + x.overlap * (np.square(sums) - squares)
    variance = (factors * x.variance.reshape(by_group)).sum(axis=2).reshape(-1)
    return Moments(mean if op.bias is None else mean + op.bias, variance)


def _of_step(step: EpilogueOp, inputs: list[Moments]) -> Moments:
    x = inputs[0]
    match step:
        case AddTensor():
            y = inputs[step.operand]
            return Moments(x.mean + y.mean, x.variance + y.variance)
        case Clamp(low=0.0, high=math.inf):
            return _of_leaky(x, np.zeros(1))
        case PRelu(positive=None):
            return _of_leaky(x, step.slope.astype(np.float64))
    raise TypeError(f"no moments of {step}")


def _of_leaky(x: Moments, slope: Array) -> Moments:
    """Leaky ReLU of a Gaussian v: v where it is positive, else v * slope.

    With z = mean / deviation, E[v; v > 0] = mean Phi(z) + deviation phi(z), and
    E[v^2; v > 0] = (mean^2 + variance) Phi(z) + mean deviation phi(z).
    """
    deviation = np.sqrt(x.variance)
    share = _share_above_zero(x)
    density = np.exp(-np.square(x.mean / deviation) / 2) / math.sqrt(2 * math.pi)
    positive = x.mean * share + deviation * density
    positive_square = x.square * share + x.mean * deviation * density
    mean = positive + slope * (x.mean - positive)
    square = positive_square + np.square(slope) * (x.square - positive_square)
    return Moments(mean, square - np.square(mean), rectified=(x, slope), overlap=x.overlap)


def _of_maximum(x: Moments, taps: int) -> Moments:
    if x.bits:
        return _of_bits(1 - (1 - _share_above_zero(x)) ** taps)
    if x.rectified is not None:
        # ReLU never decreases, so the maximum may be taken before it, where it is one of Gaussians.
        before, slope = x.rectified
        return _of_leaky(_of_maximum(before, taps), slope)
    mean, variance = maximum_of_normals(taps)
    return Moments(x.mean + mean * np.sqrt(x.variance), x.variance * variance)


def _of_bits(share: Array) -> Moments:
    return Moments(2 * share - 1, 4 * share * (1 - share), bits=True)


def _share_above_zero(x: Moments) -> Array:
    if x.bits:
        return (x.mean + 1) / 2
    ratios = x.mean / np.sqrt(2 * x.variance)
    return np.array([(1 + math.erf(ratio)) / 2 for ratio in ratios])
