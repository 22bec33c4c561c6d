"""The functions that quantizers are, by kind.

The inference is all that matters, so everything about gradients is ignored. Of activations a
quantizer must be a step function of each number alone; of a kernel it may be any function of the
whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.step_functions import (
    TINY,
    Step,
    apply,
    find_steps,
    simplest,
)
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Sign

KernelFunction = Callable[[FloatArray], FloatArray]

MAX_BITS: Final = 4
"""Of a DoReFa quantizer: its 2^k - 1 thresholds become as many bit-planes."""
PER_BATCH: Final = "its scale or threshold would be that of each batch"


@dataclass(frozen=True)
class Quantizer:
    """What a quantizer computes.

    Attributes:
        name: How the model calls it, for messages.
        kernel: The weights that the layer multiplies by, from its latent ones (Keras axis order).
        step: What it computes of activations, number by number; None if it cannot be used there.
        problem: Why it cannot be used there.
        rounding: Whether TensorFlow's rounding of a mean or a tanh decides about some weights.
        calls: In place of a step, what it computes of activations as a rule of ``shared``.
    """

    name: str
    kernel: KernelFunction
    step: Step | None = None
    problem: str = ""
    rounding: bool = False
    calls: Callable[[Any], Any] | None = None

    @property
    def is_none(self) -> bool:
        """Whether it leaves all numbers as they are."""
        return self.step is None and not self.problem and self.calls is None


class UnsupportedQuantizerError(Exception):
    """A quantizer is none that PhoneBit knows; the message says why."""


# --- what they compute ----------------------------------------------------------------------------


def flushed(kernel: FloatArray) -> FloatArray:
    """Subnormal numbers as 0, which is what TensorFlow makes of them."""
    return np.where(np.abs(kernel) < TINY, np.float32(0), kernel)


def _signs(kernel: FloatArray) -> FloatArray:
    return apply(Sign(), flushed(kernel))


def _mean_magnitude(kernel: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    mean: FloatArray = np.abs(kernel).mean(axis=axes, dtype=np.float64, keepdims=True)
    return mean.astype(np.float32)


def _scaled_by_channel(kernel: FloatArray) -> FloatArray:
    """sign(w) * mean|w| over all axes but the last."""
    return _signs(kernel) * _mean_magnitude(kernel, tuple(range(kernel.ndim - 1)))


def _scaled_by_layer(kernel: FloatArray) -> FloatArray:
    """sign(w) * mean|w|."""
    return _signs(kernel) * _mean_magnitude(kernel, tuple(range(kernel.ndim)))


def _clipped_and_scaled(kernel: FloatArray) -> FloatArray:
    """XNOR-Net's: as ``_scaled_by_channel``, the mean taken of the weights clipped to -1..1."""
    return _scaled_by_channel(np.clip(kernel, np.float32(-1), np.float32(1)))


def _ternary(threshold: np.float32, numbers: FloatArray) -> FloatArray:
    """sign(sign(x + t) + sign(x - t)): -1 up to -t, 0 between, 1 from t on."""
    result: FloatArray = np.sign(np.sign(numbers + threshold) + np.sign(numbers - threshold))
    return result


def _ternary_weight_network(kernel: FloatArray) -> FloatArray:
    """The threshold is 0.7 times the mean magnitude."""
    total = np.float32(np.abs(kernel).sum(dtype=np.float64))
    return _ternary(np.float32(0.7) * total / np.float32(kernel.size), flushed(kernel))


def _levels(bits: int, numbers: FloatArray) -> FloatArray:
    """DoReFa: round(x * n) / n with n = 2^k - 1, halves to even; x in 0..1."""
    count = np.float32(2**bits - 1)
    result: FloatArray = np.rint(numbers * count) / count
    return result


def _clipped_levels(bits: int, numbers: FloatArray) -> FloatArray:
    return _levels(bits, np.clip(numbers, np.float32(0), np.float32(1)))


def _dorefa_weights(bits: int, kernel: FloatArray) -> FloatArray:
    """2 * levels(tanh(w) / (2 max|tanh(w)|) + 1/2) - 1."""
    limited = np.tanh(kernel)
    largest = np.float32(2) * np.abs(limited).max(initial=0)
    normed = limited / largest if largest > 0 else np.zeros_like(limited)
    return np.float32(2) * _levels(bits, normed + np.float32(0.5)) - np.float32(1)


# --- by kind --------------------------------------------------------------------------------------


def of_step(name: str, step: Step) -> Quantizer:
    """A quantizer that is a step function."""
    return Quantizer(name, lambda kernel: apply(step, flushed(kernel)), step)


def _sign(name: str, _: Mapping[str, Any]) -> Quantizer:
    return of_step(name, Sign())


def _heaviside(name: str, _: Mapping[str, Any]) -> Quantizer:
    values = np.array([0, 1], np.float32)
    return of_step(name, find_steps(lambda x: np.sign(np.maximum(x, 0)), values, -1, 1))


def _tern(name: str, config: Mapping[str, Any]) -> Quantizer:
    if config.get("ternary_weight_networks"):
        return Quantizer(name, _ternary_weight_network, problem=PER_BATCH, rounding=True)
    threshold = config.get("threshold_value", 0.05)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise UnsupportedQuantizerError(f"quantizer {name}: threshold_value={threshold!r}")
    if not abs(threshold) < 1e30:
        raise UnsupportedQuantizerError(f"quantizer {name}: threshold_value={threshold!r}")
    values = np.array([-1, 0, 1], np.float32)
    limit = 2 * abs(threshold) + 1
    function = partial(_ternary, np.float32(threshold))
    return of_step(name, find_steps(function, values, -limit, limit))


def _dorefa(name: str, config: Mapping[str, Any]) -> Quantizer:
    bits, mode = config.get("k_bit", 2), config.get("mode", "activations")
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MAX_BITS:
        raise UnsupportedQuantizerError(f"quantizer {name}: k_bit={bits!r}; 1 to {MAX_BITS} work")
    if mode == "weights":
        kernel = partial(_dorefa_weights, bits)
        return Quantizer(name, kernel, problem=PER_BATCH, rounding=True)
    if mode != "activations":
        raise UnsupportedQuantizerError(f"quantizer {name}: mode={mode!r}")
    values = _levels(bits, np.linspace(0, 1, 2**bits, dtype=np.float32))
    return of_step(name, simplest(find_steps(partial(_clipped_levels, bits), values, -1, 2)))


def _of_kernels(function: KernelFunction) -> Callable[[str, Mapping[str, Any]], Quantizer]:
    return lambda name, _: Quantizer(name, function, problem=PER_BATCH)


def none(name: str = "none", _: Mapping[str, Any] | None = None) -> Quantizer:
    """No quantizer, or Larq's NoOp marker: the values themselves."""
    return Quantizer(name, lambda kernel: kernel)


KINDS: Final[dict[str, Callable[[str, Mapping[str, Any]], Quantizer]]] = {
    "sign": _sign,
    "magnitude_aware_sign": _of_kernels(_scaled_by_channel),
    "magnitude_aware_sign_unclipped": _of_kernels(_scaled_by_layer),
    "xnor_weight_scale": _of_kernels(_clipped_and_scaled),
    "heaviside": _heaviside,
    "ternary": _tern,
    "dorefa": _dorefa,
    "none": none,
}
"""Kinds by the name that ``custom_quantizers`` uses: (name, config) -> Quantizer."""
