"""How configurations spell QKeras's quantizers."""

from __future__ import annotations

import ast
from typing import Any, Final

from phonebit.converter.importers.keras.quantizer_functions import UnsupportedQuantizerError

PARAMETERS: Final = {
    "binary": ("use_01", "alpha"),
    "quantized_bits": ("bits", "integer", "symmetric", "keep_negative", "alpha"),
    "quantized_relu": ("bits", "integer", "use_sigmoid", "negative_slope"),
    "quantized_sigmoid": ("bits", "symmetric", "use_real_sigmoid"),
    "quantized_tanh": ("bits", "use_stochastic_rounding", "symmetric", "use_real_tanh"),
    "ternary": ("alpha", "threshold"),
}
"""The first parameters of each quantizer, for the spelling "quantized_bits(4, 0, 1)"."""
OTHERS: Final = (
    "bernoulli",
    "quantized_hswish",
    "quantized_po2",
    "quantized_relu_po2",
    "quantized_ulaw",
    "stochastic_binary",
    "stochastic_ternary",
    "binary_sigmoid",
    "binary_tanh",
    "smooth_sigmoid",
    "smooth_tanh",
)

MAX_TEXT: Final = 1000
"""Characters of a quantizer's spelling."""


def qkeras_name(value: object) -> str | None:
    """The name of one of QKeras's quantizers, or None if a configuration means none of them."""
    if isinstance(value, dict):
        name, config = value.get("class_name"), value.get("config")
        value = config if name in ("function", "Function") else name
    name = str(value).split(">")[-1].partition("(")[0]
    return name if name in PARAMETERS or name in OTHERS else None


def spelled(value: object) -> tuple[str, dict[str, Any]] | None:
    """The name and configuration of one of QKeras's quantizers, or None if it is none of them.

    Raises:
        UnsupportedQuantizerError: Its arguments are no constants.
    """
    name = qkeras_name(value)
    if name is None:
        return None
    config = value.get("config") if isinstance(value, dict) else value
    if isinstance(config, str):
        return name, _arguments(name, config)
    return name, dict(config) if isinstance(config, dict) else {}


def _arguments(name: str, text: str) -> dict[str, Any]:
    """The arguments of "quantized_bits(4, 0, alpha='auto')", without running anything."""
    if "(" not in text:
        return {}
    try:
        if len(text) > MAX_TEXT:
            raise ValueError("too long")
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError("no call")
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedQuantizerError(f"quantizer {text[:80]!r}: no plain arguments") from error
    return dict(zip(PARAMETERS.get(name, ()), given, strict=False)) | named
