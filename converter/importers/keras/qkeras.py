"""QKeras quantizers: what they compute of kernels, and of activations as calls of operators.

A quantizer returns x + stop_gradient(q - x). Here it is q, the forward value as it is meant: the
two additions round, so that QKeras's own result may differ from q in its last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.qkeras_names import OTHERS, PARAMETERS, spelled
from phonebit.converter.importers.keras.quantizer_functions import (
    PER_BATCH,
    Quantizer,
    UnsupportedQuantizerError,
)
from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Quantize, Sign

Config = Mapping[str, Any]
F32: Final = np.float32
EPSILON: Final = F32(1e-7)
"""Keras's, with which QKeras keeps divisors and logarithms from 0."""
MAX_BITS: Final = 24
"""From here on float32 cannot count."""


def qkeras_quantizer(value: object) -> Quantizer | None:
    """What one of QKeras's quantizers computes, or None if it is none of them.

    Raises:
        UnsupportedQuantizerError: PhoneBit does not have it, or not with these arguments.
    """
    found = spelled(value)
    if found is None:
        return None
    name, config = found
    if name in OTHERS:
        raise UnsupportedQuantizerError(
            f"QKeras's {name} is not supported; use one of {', '.join(PARAMETERS)}, or export the "
            "model to QONNX (qonnx.converters.from_keras)"
        )
    if config.get("qnoise_factor", 1.0) != 1:
        raise UnsupportedQuantizerError(f"quantizer {name}: qnoise_factor must be 1")
    if config.get("scale_axis") is not None:
        raise UnsupportedQuantizerError(f"quantizer {name}: scale_axis is not supported")
    return KINDS[name](name, config)


def without_scale(value: object) -> object:
    """A bias's quantizer: unlike a kernel's it chooses no scale of its own."""
    found = spelled(value)
    if found is None or "alpha" not in PARAMETERS.get(found[0], ()):
        return value
    name, config = found
    alpha = 1.0 if config.get("alpha") is None else config["alpha"]
    return {"class_name": name, "config": {**config, "alpha": alpha}}


def _number(name: str, config: Config, key: str, default: float) -> float:
    value = config.get(key)
    value = default if value is None else value
    if not isinstance(value, int | float) or not abs(value) < 1e30:
        raise UnsupportedQuantizerError(f"quantizer {name}: {key}={value!r}")
    return float(value)


def _integer(name: str, config: Config, key: str, default: int, minimum: int) -> int:
    value = _number(name, config, key, default)
    if value != int(value) or not minimum <= value <= MAX_BITS:
        raise UnsupportedQuantizerError(f"quantizer {name}: {key}={value:g}")
    return int(value)


def _axes(array: FloatArray) -> tuple[int, ...]:
    """All axes but the last, the output channels; the only one of a bias."""
    return tuple(range(array.ndim - 1)) if array.ndim > 1 else (0,)


def _power_of_two(scale: FloatArray) -> FloatArray:
    exponents = np.rint(np.log(scale + EPSILON) / F32(np.log(2.0)))
    result: FloatArray = np.exp2(exponents).astype(F32)
    return result


def _least_squares(alpha: object, x: FloatArray, q: FloatArray) -> FloatArray:
    """The scale of ``q`` that comes closest to ``x`` in each output channel."""
    if x.ndim > 1:
        axes = _axes(x)
        qx, qq = ((x * q).mean(axes, F32, keepdims=True), (q * q).mean(axes, F32, keepdims=True))
    else:
        qx, qq = x * q, q * q
    scale = (qx / (qq + EPSILON)).astype(F32)
    return _power_of_two(scale) if alpha == "auto_po2" else scale


def _kernel_alpha(name: str, config: Config) -> Any:
    """QKeras's layers choose powers of two where a kernel's quantizer leaves its scale open."""
    alpha = config.get("alpha")
    if alpha is None:
        return "auto_po2"
    if alpha in ("auto", "auto_po2"):
        return alpha
    try:
        return np.asarray(alpha, F32)
    except (TypeError, ValueError) as error:
        raise UnsupportedQuantizerError(f"quantizer {name}: alpha={alpha!r}") from error


def _activation_scale(config: Config) -> float | None:
    """The one scale of an activation's quantizer; None if it depends on the batch."""
    alpha = config.get("alpha")
    number = 1.0 if alpha is None else alpha
    return float(number) if isinstance(number, int | float) else None


def _no_kernel(name: str, _: FloatArray) -> FloatArray:
    raise UnsupportedQuantizerError(f"QKeras's {name} is supported for activations only")


# --- quantizers -----------------------------------------------------------------------------------


def _binary(name: str, config: Config) -> Quantizer:
    low = F32(0 if config.get("use_01") else -1)
    alpha = _kernel_alpha(name, config)

    def kernel(x: FloatArray) -> FloatArray:
        q = np.where(x >= 0, F32(1), low)
        factor = _least_squares(alpha, x, q) if isinstance(alpha, str) else alpha
        return np.asarray(q * factor, F32)

    scale = _activation_scale(config)
    if scale is None:
        return Quantizer(name, kernel, problem=PER_BATCH)
    plain = scale == 1 and not config.get("use_01")
    step = Sign() if plain else Quantize(np.zeros(1, F32), np.array([low, 1], F32) * F32(scale))
    return Quantizer(name, kernel, step)


def _ternary(name: str, config: Config) -> Quantizer:
    alpha, limit = _kernel_alpha(name, config), F32(_number(name, config, "threshold", 0.33))

    def values(x: FloatArray) -> FloatArray:
        return np.where(np.abs(x) >= limit, np.sign(x), F32(0)).astype(F32)

    def kernel(x: FloatArray) -> FloatArray:
        if not isinstance(alpha, str):
            return np.asarray(values(x) * alpha, F32)
        scale = F32(2) * np.abs(x).max(_axes(x), keepdims=True) / F32(3)
        scale = _power_of_two(scale) if alpha == "auto_po2" else scale
        q = x
        for _ in range(_integer(name, config, "number_of_unrolls", 5, 1)):
            v = scale * np.rint(x / scale)
            q = np.where(np.abs(v) >= scale / F32(2), np.sign(x), F32(0)).astype(F32)
            scale = _least_squares(alpha, x, q)
        return np.asarray(scale * q, F32)

    scale = _activation_scale(config)
    if scale is None or not 0 < limit < 1e30:
        return Quantizer(name, kernel, problem=PER_BATCH)
    above_low = np.nextafter(-limit, F32(0))
    step = Quantize(np.array([above_low, limit], F32), np.array([-1, 0, 1], F32) * F32(scale))
    return Quantizer(name, kernel, step)


def _bits(name: str, config: Config) -> Quantizer:
    bits = _integer(name, config, "bits", 8, 1)
    whole = F32(2.0 ** _integer(name, config, "integer", 0, -MAX_BITS))
    signed = bool(config.get("keep_negative", True))
    parts = F32(2.0 ** (bits - signed))
    if bits == 1 and signed:
        binary = {"alpha": config.get("alpha") or 1.0}
        return _binary(name, binary)
    lowest = F32(signed * (-parts + bool(config.get("symmetric", 0))))
    unit = whole / parts

    def levels(x: FloatArray) -> FloatArray:
        return np.asarray(np.clip(np.rint(x * parts / whole), lowest, parts - F32(1)) * unit, F32)

    def kernel(x: FloatArray) -> FloatArray:
        alpha = _kernel_alpha(name, config)
        if isinstance(alpha, str):
            return _auto_scaled(name, alpha, bits, whole, x)
        return np.asarray(levels(x) * alpha, F32)

    scale = _activation_scale(config)
    if scale is None:
        return Quantizer(name, kernel, problem=PER_BATCH)

    def calls(layer: Any) -> Any:
        scaled = layer.onnx("Mul", layer.input, parts / whole)
        rounded = layer.onnx("Round", scaled)
        limited = layer.onnx("Clip", rounded, min=float(lowest), max=float(parts - 1))
        return layer.onnx("Mul", limited, unit * F32(scale))

    return Quantizer(name, kernel, calls=calls)


def _auto_scaled(name: str, alpha: str, bits: int, whole: np.float32, x: FloatArray) -> FloatArray:
    """Symmetric levels with a scale for each output channel."""
    maximum = F32(2 ** (bits - 1) - 1)
    if maximum < 1:
        raise UnsupportedQuantizerError(f"quantizer {name}: alpha={alpha!r} with {bits} bit")
    x = x / whole

    def rounded(scale: FloatArray) -> FloatArray:
        level = np.floor(np.abs(x) / scale + F32(0.5))
        return np.asarray(np.sign(x) * np.minimum(level, maximum), F32)

    scale = np.abs(x).max(_axes(x), keepdims=True) / maximum
    if alpha == "auto":
        return np.asarray(scale * whole * rounded(scale), F32)
    scale, z = _power_of_two(scale), x
    for _ in range(5):
        z = rounded(scale)
        scale = _least_squares(alpha, x, z)
    return np.asarray(scale * whole * z, F32)


def _relu(name: str, config: Config) -> Quantizer:
    slope = _number(name, config, "negative_slope", 0.0)
    bits = _integer(name, config, "bits", 8, 1) - (slope != 0)
    whole = F32(2.0 ** _integer(name, config, "integer", 0, -MAX_BITS))
    parts, gated = F32(2.0**bits), bool(config.get("use_sigmoid"))
    if gated and slope:
        raise UnsupportedQuantizerError(f"quantizer {name}: use_sigmoid with negative_slope")
    if _number(name, config, "relu_upper_bound", 1e29) < whole - whole / parts:
        raise UnsupportedQuantizerError(
            f"quantizer {name}: relu_upper_bound={config['relu_upper_bound']} is below its largest "
            "level, and QKeras does not save whether it limits (is_quantized_clip); leave it out"
        )

    def calls(layer: Any) -> Any:
        x, unit = layer.input, whole / parts
        if gated:
            gate = layer.onnx("HardSigmoid", layer.onnx("Mul", x, 1 / whole), alpha=0.5, beta=0.5)
            level = layer.onnx("Round", layer.onnx("Mul", gate, parts))
            level = layer.onnx("Sub", layer.onnx("Mul", level, 2.0), parts)
        else:
            level = layer.onnx("Round", layer.onnx("Mul", x, parts / whole))
        level = layer.onnx("Clip", level, min=0.0, max=float(parts - 1))
        result = layer.onnx("Mul", level, unit)
        if slope:
            below = layer.onnx("Round", layer.onnx("Mul", x, parts / whole * F32(slope)))
            below = layer.onnx("Clip", below, min=float(-parts * F32(slope)), max=0.0)
            result = layer.onnx("Add", result, layer.onnx("Mul", below, unit))
        return result

    return Quantizer(name, partial(_no_kernel, name), calls=calls)


def _curve(op: str, flag: str, name: str, config: Config) -> Quantizer:
    """quantized_tanh and quantized_sigmoid: levels of the curve, or of lines in its place."""
    is_tanh = op == "Tanh"
    parts = F32(2.0 ** (_integer(name, config, "bits", 8, 1) - is_tanh))
    lowest = F32(bool(config.get("symmetric"))) - (parts if is_tanh else F32(0))

    def calls(layer: Any) -> Any:
        x = layer.input
        if config.get(flag):
            x = layer.onnx(op, x)
        elif is_tanh:
            x = layer.onnx("Clip", x, min=-1.0, max=1.0)
        else:
            x = layer.onnx("HardSigmoid", x, alpha=0.5, beta=0.5)
        level = layer.onnx("Round", layer.onnx("Mul", x, parts))
        level = layer.onnx("Clip", level, min=float(lowest), max=float(parts - 1))
        return layer.onnx("Mul", level, 1 / parts)

    return Quantizer(name, partial(_no_kernel, name), calls=calls)


KINDS: Final[dict[str, Callable[[str, Config], Quantizer]]] = {
    "binary": _binary,
    "quantized_bits": _bits,
    "quantized_relu": _relu,
    "quantized_sigmoid": partial(_curve, "Sigmoid", "use_real_sigmoid"),
    "quantized_tanh": partial(_curve, "Tanh", "use_real_tanh"),
    "ternary": _ternary,
}
"""By name: (name, config) -> Quantizer."""
