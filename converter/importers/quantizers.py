"""Larq quantizers: which function of the weights or activations a configuration means.

A quantizer is written as a name (``"ste_sign"``), as a registered name (``"Larq>SteSign"``), as a
class with its config, or as the name of a function of the user's own. Here it becomes one of three
kinds; the forward pass is all that matters, so everything about gradients is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

import numpy as np

from phonebit.converter.ir import FloatArray
from phonebit.errors import ConversionError

QuantizerKind = Literal["sign", "magnitude_aware_sign", "none"]
"""sign: v >= 0 -> +1, else -1. magnitude_aware_sign: sign(w) * mean|w| over all axes but the last.
none: the values themselves (no quantizer, or Larq's NoOp marker)."""

KINDS: Final[dict[str, QuantizerKind]] = {
    "ste_sign": "sign",
    "SteSign": "sign",
    "approx_sign": "sign",
    "ApproxSign": "sign",
    "swish_sign": "sign",
    "SwishSign": "sign",
    "magnitude_aware_sign": "magnitude_aware_sign",
    "MagnitudeAwareSign": "magnitude_aware_sign",
    "NoOp": "none",
    "NoOpQuantizer": "none",
}

UNSUPPORTED: Final[dict[str, str]] = {
    "ste_heaviside": "its values are 0 and 1, not -1 and +1",
    "SteHeaviside": "its values are 0 and 1, not -1 and +1",
    "ste_tern": "its values are ternary",
    "SteTern": "its values are ternary",
    "dorefa_quantizer": "it has several bits",
    "DoReFa": "it has several bits",
    "DoReFaQuantizer": "it has several bits",
}

PROBES: Final = np.array([-2.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.5, 2.0], np.float32)
_SIGNS: Final = np.array([-1, -1, -1, 1, 1, 1, 1, 1], np.float32)


class UnsupportedQuantizerError(Exception):
    """A quantizer is none of the known kinds; the message says why."""


def callable_name(value: object) -> str | None:
    """The name in a serialised function or object: "f", "Pkg>f" or a ``class_name`` dict."""
    if isinstance(value, dict):
        class_name, config = value.get("class_name"), value.get("config")
        if class_name in ("function", "Function") and isinstance(config, str):
            value = config
        elif class_name == "__lambda__":
            return "lambda"
        else:
            value = class_name
    return value.split(">")[-1] if isinstance(value, str) else None


class QuantizerResolver:
    """Maps serialised quantizers to kinds.

    Args:
        custom: Kinds of the user's own quantizers by the name under which they are saved.
        find_callable: For a live model: (layer path, config key) -> the quantizer object, or None.
    """

    def __init__(
        self,
        custom: Mapping[str, str] | None = None,
        find_callable: Callable[[tuple[str, ...], str], Any] | None = None,
    ) -> None:
        self._custom = dict(custom or {})
        unknown = sorted(set(self._custom.values()) - set(KINDS.values()))
        if unknown:
            raise ConversionError(
                f"custom_quantizers: unknown kind {unknown[0]!r}",
                expected="one of " + ", ".join(sorted(set(KINDS.values()))),
            )
        self._find_callable = find_callable

    def kind(self, value: object, path: tuple[str, ...] = (), key: str = "") -> QuantizerKind:
        """The kind of the serialised quantizer ``value`` of the layer at ``path``.

        Raises:
            UnsupportedQuantizerError: if it is not one of the kinds.
        """
        if value is None:
            return "none"
        name = callable_name(value)
        if name in self._custom:
            return cast(QuantizerKind, self._custom[name])
        if name in UNSUPPORTED:
            raise UnsupportedQuantizerError(
                f"quantizer {name}: {UNSUPPORTED[name]}; not yet supported"
            )
        function = self._find_callable(path, key) if self._find_callable else None
        if function is not None:
            return probe(function, str(name))
        if name in KINDS:
            return KINDS[name]
        raise UnsupportedQuantizerError(
            f"quantizer {name} is not one of Larq's; if it is a sign (x >= 0 -> +1, else -1), "
            f'pass custom_quantizers={{"{name}": "sign"}}'
        )

    def knows_as_sign(self, value: object) -> bool:
        """Whether an *activation* function is in truth a sign quantizer."""
        name = callable_name(value)
        return name is not None and (KINDS.get(name) == "sign" or self._custom.get(name) == "sign")


def probe(function: Callable[[Any], Any], name: str) -> QuantizerKind:
    """Recognises a live quantizer by what it makes of a few values around its decision point.

    The values are laid out as a kernel with two output channels, the second one doubled, so that a
    scale per output channel shows too.
    """
    values = np.stack([PROBES, 2 * PROBES], axis=-1).reshape(1, 1, PROBES.size, 2)
    try:
        result = np.asarray(function(values), np.float32)
    except Exception as error:  # user code of any kind
        raise UnsupportedQuantizerError(
            f"quantizer {name} fails on a test array: {error}"
        ) from error
    if result.shape != values.shape:
        raise UnsupportedQuantizerError(f"quantizer {name} changes the shape of its input")
    columns = result.reshape(PROBES.size, 2)
    if np.array_equal(columns, np.stack([PROBES, 2 * PROBES], axis=-1)):
        return "none"
    signs = np.stack([_SIGNS, _SIGNS], axis=-1)
    if np.array_equal(columns, signs):
        return "sign"
    scales = np.abs(values.reshape(PROBES.size, 2)).mean(axis=0)
    if np.allclose(columns, signs * scales, rtol=1e-5, atol=0):
        return "magnitude_aware_sign"
    nonzero = PROBES != 0
    if np.array_equal(columns[nonzero], signs[nonzero]):
        raise UnsupportedQuantizerError(
            f"quantizer {name} maps -0 and 0 to {columns[3, 0]:g} and {columns[4, 0]:g}; "
            "PhoneBit's sign maps both to +1"
        )
    shown = ", ".join(f"{x:g} -> {y:g}" for x, y in zip(PROBES, columns[:, 0], strict=True))
    raise UnsupportedQuantizerError(f"quantizer {name} is not a sign: {shown}")


def quantize_kernel(kernel: FloatArray, kind: QuantizerKind) -> FloatArray:
    """The weights that the layer multiplies by, from its latent ones (Keras axis order)."""
    if kind == "none":
        return kernel
    # TensorFlow flushes subnormal numbers to 0, so they count as +1.
    negative = kernel <= -np.finfo(np.float32).tiny
    signs: FloatArray = np.where(negative, np.float32(-1), np.float32(1))
    if kind == "sign":
        return signs
    axes = tuple(range(kernel.ndim - 1))
    scale = np.abs(kernel).mean(axis=axes, dtype=np.float64).astype(np.float32)
    scaled: FloatArray = signs * scale
    return scaled
