"""Launches kernels of real-valued layers as their headers say; outputs are guarded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from kernel_driver import pack_bits, run_pixels
from kernel_parts import Part, check_parts
from numpy.typing import NDArray
from value_reference import Array, Floats, Layer, rounded, stored

GUARD = 64


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
        self.steps.append(f"STEP_SCALE_BIAS(W, {self.place(scale)}, {self.place(bias)})")
        self.actions.append(lambda v: v * scale + bias)
        return self

    def tensor(self, name: str, tensor: Floats, half: bool = False) -> Sink:
        """``name`` ADD or MULTIPLY; a (batch, 1, 1, C) tensor is for all pixels of its image."""
        index, pixelwise = len(self.tensors), int(tensor.shape[1:3] == self.layer.out_size)
        self.steps.append(f"STEP_{name}(W, tensor{index}, TENSOR{index}_HALF, {pixelwise})")
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
        self.steps.append(f"STEP_CLAMP(W, {text[0]}, {text[1]})")
        self.actions.append(lambda v: np.minimum(np.maximum(v, np.float32(low)), np.float32(high)))
        return self

    def prelu(self, slope: Floats, positive: Floats | None = None) -> Sink:
        """Slopes of C elements or (H, W, C), those of values >= 0 last."""
        below, pixelwise = self.place(slope), int(slope.ndim == 3)
        if positive is None:
            self.steps.append(f"STEP_PRELU(W, {below}, {pixelwise})")
            self.actions.append(lambda v: np.where(v >= 0, v, v * slope))
        else:
            self.steps.append(f"STEP_TWO_SLOPES(W, {below}, {self.place(positive)}, {pixelwise})")
            self.actions.append(lambda v: np.where(v >= 0, v * positive, v * slope))
        return self

    def function(self, name: str, reference: Callable[[Floats], Floats]) -> Sink:
        self.steps.append(f"STEP_FUNCTION(W, {name})")
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
        result: dict[str, int | str] = {"EPILOGUE": 1, "APPLY_STEPS(W)": " ".join(self.steps)}
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
    """An output that is no number anywhere, and GUARD elements after it that must stay so."""
    count = int(np.prod(shape)) + GUARD
    return np.full(count * np.dtype(dtype).itemsize, 0xFD, np.uint8).view(dtype)


def content(array: Array, shape: Sequence[int]) -> Array:
    """A guarded output's elements; fails where something was written after them."""
    untouched = array[-GUARD:].view(np.uint8)
    assert (untouched == 0xFD).all(), "written beyond the output"
    return array[:-GUARD].reshape(shape)


def launch(
    kernel: str,
    layer: Layer,
    defines: dict[str, Any],
    arguments: Sequence[Any],
    parts: Sequence[Part] = (),
) -> list[Array]:
    """Runs a kernel of a layer, then the parts; ``arguments`` follow the pixels'."""
    macros = {**layer.defines(), **defines}
    results = run_pixels(kernel, macros, layer.pixels, arguments)
    check_parts(kernel, macros, layer.pixels, arguments, results, parts)
    return results


def run_layer(
    kernel: str,
    sink: Sink,
    defines: dict[str, Any],
    inputs: Sequence[Array],
    parts: Sequence[Part] = (),
) -> list[Array]:
    """Launches a kernel with a sink; its values (as stored), then its bits, where they exist."""
    macros = sink.defines()
    constants = np.concatenate(sink.constants or [np.zeros(1, np.float32)])
    outputs = sink.outputs()
    arguments = [*inputs, constants, *sink.tensors, *outputs]
    results = launch(kernel, sink.layer, {**macros, **defines}, arguments, parts)
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
    parts: Sequence[Part] = (),
) -> None:
    """The kernel's values and bits are those of ``main`` through the sink's steps."""
    sink = replace(sink, constants=list(sink.constants))
    results = run_layer(kernel, sink, defines, inputs, parts)
    values, bits = sink.expected(main)
    if sink.values:
        got = results[0]
        if tolerance:
            np.testing.assert_allclose(got, values, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, stored(values, sink.half))
    if sink.bits:
        np.testing.assert_array_equal(results[-1], bits)
