"""Layers of real numbers as plain NumPy, and their kernels launched as their headers say.

float32 arithmetic is NumPy's, one rounding an operation; only the fused multiply-add is built here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from kernel_driver import pack_bits, round_up, run_kernel
from numpy.typing import NDArray

from phonebit.bnn_kernels.sources import kernel_paths, tunables

Array = NDArray[Any]
Floats = NDArray[np.float32]
GUARD = 64


@dataclass(frozen=True)
class Layer:
    """Geometry of a layer; pairs are (vertical, horizontal), pads (top, left, bottom, right)."""

    size: tuple[int, int]
    in_c: int
    out_c: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    batch: int = 1

    @property
    def out_size(self) -> tuple[int, int]:
        spans = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        return (
            (self.size[0] + self.pads[0] + self.pads[2] - spans[0]) // self.stride[0] + 1,
            (self.size[1] + self.pads[1] + self.pads[3] - spans[1]) // self.stride[1] + 1,
        )

    @property
    def pixels(self) -> int:
        return self.batch * self.out_size[0] * self.out_size[1]

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return (self.batch, *self.out_size, self.out_c)

    def random(self, rng: np.random.Generator) -> Floats:
        """A random input map."""
        return rng.standard_normal((self.batch, *self.size, self.in_c), np.float32)

    def defines(self) -> dict[str, int | str]:
        (out_h, out_w), names = self.out_size, ("H", "W")
        values: dict[str, int | str] = {
            "IN_C": self.in_c,
            "IN_WORDS": ceil(self.in_c / 32),
            "OUT_C": self.out_c,
            "OUT_WORDS": ceil(self.out_c / 32),
            "PAD_TOP": self.pads[0],
            "PAD_LEFT": self.pads[1],
            "GROUPS": self.groups,
            "PADDED": int(not all_inside(self)),
            "ROW_CLASSES": 1,
            "COLUMN_CLASSES": 1,
        }
        for axis, name in enumerate(names):
            values[f"IN_{name}"] = self.size[axis]
            values[f"OUT_{name}"] = (out_h, out_w)[axis]
            values[f"KERNEL_{name}"] = self.kernel[axis]
            values[f"STRIDE_{name}"] = self.stride[axis]
            values[f"DILATION_{name}"] = self.dilation[axis]
        return values


def tap_places(layer: Layer, axis: int) -> NDArray[np.int64]:
    """[output place][tap]: input row or column, outside the map where padded."""
    starts = np.arange(layer.out_size[axis]) * layer.stride[axis] - layer.pads[axis]
    return starts[:, None] + np.arange(layer.kernel[axis]) * layer.dilation[axis]


def all_inside(layer: Layer) -> bool:
    places = [tap_places(layer, axis) for axis in (0, 1)]
    return all(((p >= 0) & (p < n)).all() for p, n in zip(places, layer.size, strict=True))


def taps(layer: Layer, x: Array) -> list[tuple[Array, NDArray[np.bool_]]]:
    """For each tap in (kh, kw) order: [batch][out_h][out_w][in_c] values, 0 outside; the inside."""
    rows, columns = tap_places(layer, 0), tap_places(layer, 1)
    result = []
    for ky in range(layer.kernel[0]):
        for kx in range(layer.kernel[1]):
            y, column = rows[:, ky], columns[:, kx]
            inside_y, inside_x = (
                (y >= 0) & (y < layer.size[0]),
                (column >= 0) & (column < layer.size[1]),
            )
            inside = inside_y[:, None] & inside_x
            values = x[:, np.where(inside_y, y, 0)][:, :, np.where(inside_x, column, 0)]
            result.append((np.where(inside[None, :, :, None], values, x.dtype.type(0)), inside))
    return result


def fused_multiply_add(a: Floats, b: Floats, c: Floats) -> Floats:
    """a * b + c, rounded once.

    The product of two float32 is exact in float64. Its sum with c is rounded to odd there (an
    inexact even result moves to its neighbour towards the exact one), so that rounding it again,
    to float32, gives what one rounding would.
    """
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)  # Knuth's two-sum
    even = (total.view(np.int64) & 1) == 0
    towards = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, towards, total).astype(np.float32)


def convolution(layer: Layer, x: Floats, weights: Floats) -> Floats:
    """The chain of fused multiply-adds; weights [out_c][kh][kw][in_c / groups]."""
    share, filters = layer.in_c // layer.groups, layer.out_c // layer.groups
    result = np.zeros(layer.output_shape, np.float32)
    flat = weights.reshape(layer.out_c, -1, share)
    for tap, (values, _) in enumerate(taps(layer, x)):
        for group in range(layer.groups):
            of_group = slice(group * filters, (group + 1) * filters)
            for c in range(share):
                value = values[..., group * share + c, None]
                weight = flat[of_group, tap, c]
                result[..., of_group] = fused_multiply_add(
                    *np.broadcast_arrays(value, weight), result[..., of_group]
                )
    return result


def depthwise(layer: Layer, x: Floats, weights: Floats) -> Floats:
    """Taps outside the map are left out; weights [kh][kw][channels]."""
    result = np.zeros(layer.output_shape, np.float32)
    flat = weights.reshape(-1, layer.in_c)
    for tap, (values, inside) in enumerate(taps(layer, x)):
        added = fused_multiply_add(values, np.broadcast_to(flat[tap], values.shape), result)
        result = np.where(inside[None, :, :, None], added, result)
    return result


def integer_convolution(
    layer: Layer, x: Array, signs: Array, mul: int, add: int
) -> NDArray[np.int32]:
    """sum w * (mul x + add) over taps inside the map; signs [out_c][kh][kw][in_c / groups]."""
    share, filters = layer.in_c // layer.groups, layer.out_c // layer.groups
    result = np.zeros(layer.output_shape, np.int64)
    flat = signs.astype(np.int64).reshape(layer.out_c, -1, share)
    for tap, (values, inside) in enumerate(taps(layer, x.astype(np.int64))):
        seen = np.where(inside[None, :, :, None], mul * values + add, 0)
        for group in range(layer.groups):
            of_group = slice(group * filters, (group + 1) * filters)
            channels = seen[..., group * share : (group + 1) * share]
            result[..., of_group] += channels @ flat[of_group, tap].T
    return result.astype(np.int32)


def pool(layer: Layer, x: Floats, maximum: bool) -> Floats:
    start = -np.inf if maximum else 0.0
    result = np.full(layer.output_shape, start, np.float32)
    count = np.zeros(layer.out_size, np.float32)
    for values, inside in taps(layer, x):
        after = np.maximum(result, values) if maximum else result + values
        result = np.where(inside[None, :, :, None], after, result)
        count += inside
    return result if maximum else result / count[None, :, :, None]


def rounded(x: Floats, half: bool) -> Floats:
    """What memory holds of x."""
    return x.astype(np.float16).astype(np.float32) if half else x


def stored(x: Floats, half: bool) -> Array:
    """The array in memory."""
    return x.astype(np.float16) if half else x


@dataclass
class Sink:
    """An epilogue: macros and arrays for a kernel, and the same steps in NumPy."""

    layer: Layer
    values: bool = True
    bits: bool = False
    half: bool = False
    steps: list[str] = field(default_factory=list)
    constants: list[Floats] = field(default_factory=list)
    tensors: list[Array] = field(default_factory=list)
    tensor_half: list[bool] = field(default_factory=list)
    actions: list[Callable[[Floats], Floats]] = field(default_factory=list)
    threshold: Floats | None = None

    def place(self, array: Floats) -> int:
        self.constants.append(array.ravel())
        return sum(c.size for c in self.constants[:-1])

    def scale_bias(self, scale: Floats, bias: Floats) -> Sink:
        self.steps.append(f"STEP_SCALE_BIAS({self.place(scale)}, {self.place(bias)})")
        self.actions.append(lambda v: v * scale + bias)
        return self

    def tensor(self, name: str, tensor: Floats, half: bool = False) -> Sink:
        """``name`` ADD or MULTIPLY; a (batch, 1, 1, C) tensor serves all pixels of its image."""
        index, pixelwise = len(self.tensors), int(tensor.shape[1:3] == self.layer.out_size)
        self.steps.append(f"STEP_{name}(tensor{index}, TENSOR{index}_HALF, {pixelwise})")
        self.tensors.append(stored(tensor, half))
        self.tensor_half.append(half)
        held = rounded(tensor, half)
        self.actions.append(lambda v: v + held if name == "ADD" else v * held)
        return self

    def clamp(self, low: float, high: float) -> Sink:
        text = [
            str(v).replace("inf", "INFINITY") if np.isinf(v) else f"{float(v).hex()}f"
            for v in (low, high)
        ]
        self.steps.append(f"STEP_CLAMP({text[0]}, {text[1]})")
        self.actions.append(lambda v: np.minimum(np.maximum(v, np.float32(low)), np.float32(high)))
        return self

    def prelu(self, slope: Floats) -> Sink:
        """Slopes of C elements or (H, W, C)."""
        self.steps.append(f"STEP_PRELU({self.place(slope)}, {int(slope.ndim == 3)})")
        self.actions.append(lambda v: np.where(v >= 0, v, v * slope))
        return self

    def function(self, name: str, reference: Callable[[Floats], Floats]) -> Sink:
        self.steps.append(f"STEP_{name}")
        self.actions.append(reference)
        return self

    def expected(self, main: Floats) -> tuple[Floats, NDArray[np.uint32]]:
        """Values before storage rounds them, and packed bits."""
        v = main
        for action in self.actions:
            v = action(v)
        limits = np.float32(0) if self.threshold is None else self.threshold
        return v, pack_bits(np.where(v >= limits, 1, -1))

    def defines(self) -> dict[str, int | str]:
        result: dict[str, int | str] = {"EPILOGUE": 1, "STEPS": " ".join(self.steps)}
        names = [f"tensor{i}" for i in range(len(self.tensors))]
        kinds = ["const void*"] * len(names)
        for index, half in enumerate(self.tensor_half):
            result[f"TENSOR{index}_HALF"] = int(half)
        if self.values:
            result |= {"HAS_VALUES": 1, "VALUES_HALF": int(self.half)}
            names, kinds = [*names, "values"], [*kinds, "void*"]
        if self.bits:
            result["HAS_BITS"] = 1
            names, kinds = [*names, "bits"], [*kinds, "uint*"]
        if self.threshold is not None:
            result |= {"HAS_FLOAT_THRESHOLD": 1, "FLOAT_THRESHOLD_AT": self.place(self.threshold)}
        pairs = [f", __global {kind} {name}" for kind, name in zip(kinds, names, strict=True)]
        result["SINK_PARAMS"] = ", __global const float* constants" + "".join(pairs)
        result["SINK_ARGS"] = ", constants" + "".join(f", {name}" for name in names)
        return result

    def outputs(self) -> list[Array]:
        shapes: list[Array] = []
        if self.values:
            shapes.append(guarded(self.layer.output_shape, np.float16 if self.half else np.float32))
        if self.bits:
            shapes.append(
                guarded((*self.layer.output_shape[:3], ceil(self.layer.out_c / 32)), np.uint32)
            )
        return shapes


def guarded(shape: Sequence[int], dtype: Any) -> Array:
    """An output that is no number anywhere, and GUARD elements behind it that must stay so."""
    count = int(np.prod(shape)) + GUARD
    return np.full(count * np.dtype(dtype).itemsize, 0xFD, np.uint8).view(dtype)


def content(array: Array, shape: Sequence[int]) -> Array:
    """A guarded output's elements; fails where something was written behind them."""
    untouched = array[-GUARD:].view(np.uint8)
    assert (untouched == 0xFD).all(), "written beyond the output"
    return array[:-GUARD].reshape(shape)


def geometry(kernel: str, values: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Global and local size, from the header's own formulas."""
    text = kernel_paths()[kernel].read_text(encoding="utf-8")
    found = re.search(r"^// @geometry global = (\(.*\)), local = (\(.*\))$", text, re.MULTILINE)
    assert found, f"{kernel}: no @geometry"
    functions = {"ceil": ceil, "roundup": round_up}
    sizes = [eval(part, {**functions, **values}) for part in found.groups()]
    return tuple([size] if isinstance(size, int) else list(size) for size in sizes)  # type: ignore[return-value]


def launch(
    kernel: str, layer: Layer, defines: dict[str, Any], arguments: Sequence[Any]
) -> list[Array]:
    """Runs a kernel of a layer; ``arguments`` follow the batch."""
    chosen = {tunable.name: tunable.default for tunable in tunables(kernel)}
    macros = {**layer.defines(), **chosen, **defines}
    window_words = ceil(layer.kernel[0] * layer.kernel[1] * layer.in_c / 32)
    sizes = geometry(kernel, {**macros, "batch": layer.batch, "WINDOW_WORDS": window_words})
    return run_kernel(kernel, macros, *sizes, [layer.batch, *arguments])


def run_layer(
    kernel: str, sink: Sink, defines: dict[str, Any], inputs: Sequence[Array]
) -> list[Array]:
    """Launches a kernel with a sink; its values (as stored), then its bits, where they exist."""
    macros = sink.defines()
    constants = np.concatenate(sink.constants or [np.zeros(1, np.float32)])
    outputs = sink.outputs()
    results = launch(
        kernel, sink.layer, {**macros, **defines}, [*inputs, constants, *sink.tensors, *outputs]
    )
    shapes = [sink.layer.output_shape] if sink.values else []
    if sink.bits:
        shapes.append((*sink.layer.output_shape[:3], ceil(sink.layer.out_c / 32)))
    return [content(a, s) for a, s in zip(results[-len(shapes) :], shapes, strict=True)]


def assert_layer(
    kernel: str,
    sink: Sink,
    main: Floats,
    defines: dict[str, Any],
    inputs: Sequence[Array],
    tolerance: float = 0.0,
) -> None:
    """The kernel's values and bits are those of ``main`` through the sink's steps."""
    sink = replace(sink, constants=list(sink.constants))
    results = run_layer(kernel, sink, defines, inputs)
    values, bits = sink.expected(main)
    if sink.values:
        got = results[0]
        if tolerance:
            np.testing.assert_allclose(got, values, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, stored(values, sink.half))
    if sink.bits:
        np.testing.assert_array_equal(results[-1], bits)
