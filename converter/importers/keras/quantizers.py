"""Larq quantizers: which function of the weights or activations a configuration means.

A quantizer is written as a name (``"ste_sign"``), as a registered name (``"Larq>SteSign"``), as a
class with its config, or as the name of a function of the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from phonebit.converter.importers.keras.probing import recognise
from phonebit.converter.importers.keras.qkeras import qkeras_quantizer
from phonebit.converter.importers.keras.quantizer_functions import (
    KINDS,
    Quantizer,
    UnsupportedQuantizerError,
    none,
)
from phonebit.errors import ConversionError

LARQ_NAMES: Final = {
    "ste_sign": "sign",
    "SteSign": "sign",
    "approx_sign": "sign",
    "ApproxSign": "sign",
    "swish_sign": "sign",
    "SwishSign": "sign",
    "magnitude_aware_sign": "magnitude_aware_sign",
    "MagnitudeAwareSign": "magnitude_aware_sign",
    "magnitude_aware_sign_unclipped": "magnitude_aware_sign_unclipped",
    "xnor_weight_scale": "xnor_weight_scale",
    "ste_heaviside": "heaviside",
    "SteHeaviside": "heaviside",
    "ste_tern": "ternary",
    "SteTern": "ternary",
    "dorefa_quantizer": "dorefa",
    "DoReFa": "dorefa",
    "DoReFaQuantizer": "dorefa",
    "NoOp": "none",
    "NoOpQuantizer": "none",
}
"""The kinds of Larq's quantizers and of those that larq-zoo defines."""


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
    """Finds out what serialised quantizers compute.

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
        unknown = sorted(set(self._custom.values()) - set(KINDS))
        if unknown:
            raise ConversionError(
                f"custom_quantizers: unknown kind {unknown[0]!r}",
                expected="one of " + ", ".join(sorted(KINDS)),
            )
        self._find_callable = find_callable
        self._recognised: dict[tuple[tuple[str, ...], str], Quantizer] = {}

    def resolve(self, value: object, path: tuple[str, ...] = (), key: str = "") -> Quantizer:
        """What the serialised quantizer ``value`` of the layer at ``path`` computes.

        Raises:
            UnsupportedQuantizerError: if it is not known.
        """
        if value is None:
            return none()
        name = str(callable_name(value))
        quantizer = None if name in self._custom else qkeras_quantizer(value)
        if quantizer is not None:
            return quantizer
        known = self.known(value)
        function = self._find_callable(path, key) if self._find_callable else None
        if name in self._custom or (known and function is None):
            assert known is not None
            return known
        if function is not None:
            if (path, key) not in self._recognised:  # which evaluates it
                self._recognised[path, key] = recognise(function, name, known)
            return self._recognised[path, key]
        raise UnsupportedQuantizerError(
            f"quantizer {name} is not one of Larq's or QKeras's; if it is a sign (x >= 0 -> +1, "
            f'else -1), pass custom_quantizers={{"{name}": "sign"}}'
        )

    def known(self, value: object) -> Quantizer | None:
        """What a quantizer computes by its name and configuration, or None."""
        name = callable_name(value)
        kind = self._custom.get(name or "", LARQ_NAMES.get(name or ""))
        if name is None or kind is None:
            return None
        config = value.get("config") if isinstance(value, dict) else None
        return KINDS[kind](name, config if isinstance(config, dict) else {})
