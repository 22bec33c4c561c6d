"""Proves that float32 arithmetic is exact in a Keras network, from the magnitudes that occur."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from support.larq_networks import Array, is_batch_norm, kernel_quantizer, replaced_calls

FLOAT32_BITS: Final = 24


@dataclass(frozen=True)
class LayerBits:
    """Bits that the sums of one layer need; up to 24 they are exact in float32 in any order."""

    layer: str
    bits: int


def granularity(values: Array) -> int:
    """The g for which all values are multiples of 2**-g; 60 if there is none up to there."""
    scaled = np.unique(np.abs(np.asarray(values, np.float64)))
    for g in range(-16, 60):
        multiples = np.ldexp(scaled, g)
        if np.array_equal(multiples, np.rint(multiples)):
            return g
    return 60


def exactness(model: Any, image: Array) -> list[LayerBits]:
    """How many bits every convolution, dense and merging layer needs on ``image``.

    A sum of products of multiples of 2**-g is exact in any order if the sum of the magnitudes is
    below 2**(24 - g). Batch normalizations are judged by their results x - mean and y.
    """
    report: list[LayerBits] = []
    with replaced_calls(model.layers, lambda layer, run: _judged(layer, run, report)):
        model(image, training=False)
    return report


def _judged(layer: Any, run: Callable[..., Any], report: list[LayerBits]) -> Callable[..., Any]:
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        output = run(inputs, *args, **kwargs)
        report.append(LayerBits(layer.name, _bits(layer, run, inputs, output)))
        return output

    return call


def _bits(layer: Any, run: Callable[..., Any], inputs: Any, output: Any) -> int:
    kind = type(layer).__name__
    if kind == "AveragePooling2D":
        size = math.prod(layer.pool_size)
        taps = int(math.log2(size)) if size & (size - 1) == 0 else 60
        return _span(np.asarray(inputs), taps)
    weights = [] if is_batch_norm(layer) else layer.get_weights()
    if not weights:
        return _span(np.asarray(output), 0)
    x = np.asarray(inputs)
    if getattr(layer, "input_quantizer", None) is not None:
        x = np.asarray(layer.input_quantizer(inputs))
    fine = granularity(x) + granularity(weights[0])
    layer.set_weights([np.abs(weight) for weight in weights])
    try:
        quantized = kernel_quantizer(layer, layer.weights[0].name.rsplit("/", 1)[-1])
        if quantized:  # a sum of signs: one bit for each tap, times the scale
            return int(math.log2(math.prod(weights[0].shape[:-1]))) + 1 + max(0, granularity(x))
        magnitude = float(np.max(run(abs(inputs * 0 + x))))
    finally:
        layer.set_weights(weights)
    return _width(magnitude, fine)


def _span(values: Array, extra: int) -> int:
    return _width(float(np.max(np.abs(values), initial=0)), granularity(values) + extra)


def _width(magnitude: float, fine: int) -> int:
    return 0 if magnitude == 0 else math.floor(math.log2(magnitude)) + 1 + fine
