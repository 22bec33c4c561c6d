"""Binary ops from the mathematics, in plain NumPy integers, and how tests run their kernels.

Nothing here counts bits: maps and weights are arrays of -1/+1, accumulators sums of products.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kernel_driver import pack_bits, run_pixels, unpack_bits
from kernel_parts import Part, check_parts
from numpy.typing import NDArray

from phonebit.bnn_kernels.sources import tunables

Array = NDArray[Any]
Defines = dict[str, int | str]

GUARD_ELEMENTS = 64
GUARD_WORD = 0xA5A5A5A5
GUARD_FLOAT = np.float32(-777.0)


def words(channels: int) -> int:
    """32-bit words of a packed pixel."""
    return -(-channels // 32)


@dataclass(frozen=True)
class Case:
    """A window op. ``pads`` are top, left, bottom, right."""

    in_c: int
    out_c: int
    in_hw: tuple[int, int] = (5, 6)
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    pad_value: int = 0
    groups: int = 1
    batch: int = 1
    tune: Mapping[str, int] = field(default_factory=dict)
    sink: str = "threshold"

    def __str__(self) -> str:
        default = {name: spec.default for name, spec in self.__dataclass_fields__.items()}
        default |= {"in_c": None, "out_c": None, "tune": None}
        parts = [f"{self.in_c}to{self.out_c}"]
        for name, value in vars(self).items():
            if name == "tune":
                parts += [f"{key}{number}" for key, number in value.items()]
            elif name not in ("in_c", "out_c") and value != default[name]:
                text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
                parts.append(f"{name}={text}")
        return "-".join(parts)

    @property
    def out_hw(self) -> tuple[int, int]:
        def size(axis: int) -> int:
            padded = self.in_hw[axis] + self.pads[axis] + self.pads[axis + 2]
            window = (self.kernel[axis] - 1) * self.dilation[axis] + 1
            return (padded - window) // self.stride[axis] + 1

        return size(0), size(1)

    @property
    def pixels(self) -> int:
        return self.batch * self.out_hw[0] * self.out_hw[1]

    @property
    def random(self) -> np.random.Generator:
        """The same numbers every time, others for other cases."""
        return np.random.default_rng([ord(letter) for letter in str(self)])

    def tap_inside(self, axis: int, out: int, tap: int) -> bool:
        at = out * self.stride[axis] + tap * self.dilation[axis] - self.pads[axis]
        return 0 <= at < self.in_hw[axis]

    def spans(self, axis: int) -> list[tuple[bool, ...]]:
        """For each output row (0) or column (1), which taps lie inside the map."""
        return [
            tuple(self.tap_inside(axis, out, tap) for tap in range(self.kernel[axis]))
            for out in range(self.out_hw[axis])
        ]

    def classes(self, axis: int) -> list[int]:
        """Border class of each output row (0) or column (1)."""
        if self.pad_value != 0:
            return [0] * self.out_hw[axis]
        different: list[tuple[bool, ...]] = []
        for span in self.spans(axis):
            if span not in different:
                different.append(span)
        return [different.index(span) for span in self.spans(axis)]

    def defines(self) -> Defines:
        """All that every program of the op has, and the tunables."""
        padded = not all(all(span) for axis in (0, 1) for span in self.spans(axis))
        return {
            "IN_H": self.in_hw[0],
            "IN_W": self.in_hw[1],
            "IN_C": self.in_c,
            "IN_WORDS": words(self.in_c),
            "OUT_H": self.out_hw[0],
            "OUT_W": self.out_hw[1],
            "OUT_C": self.out_c,
            "OUT_WORDS": words(self.out_c),
            "KERNEL_H": self.kernel[0],
            "KERNEL_W": self.kernel[1],
            "STRIDE_H": self.stride[0],
            "STRIDE_W": self.stride[1],
            "DILATION_H": self.dilation[0],
            "DILATION_W": self.dilation[1],
            "PAD_TOP": self.pads[0],
            "PAD_LEFT": self.pads[1],
            "GROUPS": self.groups,
            "PADDED": int(padded),
            "PAD_BITS": int(self.pad_value == 1),
            "ROW_CLASSES": max(self.classes(0)) + 1,
            "COLUMN_CLASSES": max(self.classes(1)) + 1,
            **self.tune,
        }


def signs(random: np.random.Generator, *shape: int) -> NDArray[np.int8]:
    """Random -1/+1."""
    return (2 * random.integers(0, 2, shape) - 1).astype(np.int8)


def map_taps(case: Case, x: Array, outside: int) -> dict[tuple[int, int], NDArray[np.int64]]:
    """For each tap (ky, kx) its inputs [N][OUT_H][OUT_W][C], ``outside`` where the map ends."""
    top, left, bottom, right = case.pads
    padded = np.pad(
        x.astype(np.int64),
        ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=outside,
    )
    (stride_h, stride_w), (out_h, out_w) = case.stride, case.out_hw
    taps = {}
    for ky in range(case.kernel[0]):
        for kx in range(case.kernel[1]):
            rows = padded[:, ky * case.dilation[0] :: stride_h][:, :out_h]
            taps[ky, kx] = rows[:, :, kx * case.dilation[1] :: stride_w][:, :, :out_w]
    return taps


def convolve(case: Case, x: Array, weights: Array) -> NDArray[np.int64]:
    """Sums of w * x, [N][OUT_H][OUT_W][OUT_C]; weights [OUT_C][KH][KW][IN_C / GROUPS]."""
    group_c, group_out_c = case.in_c // case.groups, case.out_c // case.groups
    acc = np.zeros((case.batch, *case.out_hw, case.out_c), np.int64)
    for (ky, kx), tap in map_taps(case, x, case.pad_value).items():
        for o in range(case.out_c):
            first = o // group_out_c * group_c
            acc[..., o] += tap[..., first : first + group_c] @ weights[o, ky, kx].astype(np.int64)
    return acc


def bases(case: Case, weights: Array) -> NDArray[np.int64]:
    """[ROW_CLASSES * COLUMN_CLASSES][TABLE_C] with acc = base - 2 d; see README.md of bnn_kernels.

    The kernel's d makes K - 2 d the accumulator of a map whose padding has a sign. Where padding
    should count as 0 but reads as -1, the padded taps' weights were subtracted: base adds them.
    """
    window = case.kernel[0] * case.kernel[1] * (case.in_c // case.groups)
    row_classes, column_classes = case.classes(0), case.classes(1)
    columns = max(column_classes) + 1
    table = np.zeros(((max(row_classes) + 1) * columns, 32 * words(case.out_c)), np.int64)
    for row_class, row_span in zip(row_classes, case.spans(0), strict=True):
        for column_class, column_span in zip(column_classes, case.spans(1), strict=True):
            base = np.full(case.out_c, window, np.int64)
            if case.pad_value == 0:
                outside = ~np.outer(row_span, column_span)
                base += (weights.sum(axis=3, dtype=np.int64) * outside).sum(axis=(1, 2))
            table[row_class * columns + column_class, : case.out_c] = base
    return table


def borders(case: Case) -> NDArray[np.uint16]:
    """Row classes, then column classes; a dummy where there is one class."""
    classes = case.classes(0) + case.classes(1)
    return np.array(classes if max(classes) > 0 else [0xFFFF] * 2, np.uint16)


def draw_thresholds(case: Case, acc: Array) -> NDArray[np.int64]:
    """One accumulator of each channel: equality occurs. Some channels always or never pass."""
    flat = acc.reshape(-1, case.out_c)
    chosen = flat[case.random.integers(0, len(flat), case.out_c), np.arange(case.out_c)].copy()
    chosen[3::7] += 1
    chosen[5::11] = 1 << 30
    chosen[6::13] = -(1 << 30)
    return chosen


def limits(base: Array, thresholds: Array) -> NDArray[np.int32]:
    """acc >= T <=> 2 d <= base - T <=> d < floor((base - T) / 2) + 1; 0 for missing channels.

    None is farther from 0 than 2^27, which no count reaches.
    """
    table = np.zeros(base.shape, np.int32)
    found = (base[:, : len(thresholds)] - thresholds) // 2 + 1
    table[:, : len(thresholds)] = np.clip(found, -(1 << 27), 1 << 27)
    return table


def guarded(count: int, kind: type) -> Array:
    """An output array, filled with a pattern, that is longer than what the kernel shall write."""
    fill = GUARD_WORD if kind is np.uint32 else GUARD_FLOAT
    return np.full(count + GUARD_ELEMENTS, fill, kind)


def unguarded(array: Array) -> Array:
    """The output itself, when nothing was written after it."""
    fill = GUARD_WORD if array.dtype == np.uint32 else GUARD_FLOAT
    assert (array[-GUARD_ELEMENTS:] == fill).all(), "written after the output"
    return array[:-GUARD_ELEMENTS]


def read_bits(array: Array, pixels: int, channels: int) -> NDArray[np.int8]:
    """Packed output as -1/+1 [pixels][channels]."""
    return unpack_bits(unguarded(array).reshape(pixels, words(channels)), channels)


class Epilogue:
    """A sink with every kind of tensor and constant; all numbers are exact in float32.

    ``kind``: "values", "bits" or "values+bits" (the last with float thresholds).
    """

    def __init__(self, case: Case) -> None:
        random, channels = case.random, case.out_c
        self.case, self.kind = case, case.sink
        self.stride = 32 * words(channels)
        dyadic = random.integers(-8, 9, (4, self.stride)) / 8
        self.constants = dyadic.astype(np.float32)
        self.tensor = (random.integers(-64, 65, (case.pixels, channels)) / 4).astype(np.float32)
        image_tensor = random.integers(-64, 65, (case.batch, channels)) / 4
        self.image_tensor = image_tensor.astype(np.float32)

    def defines(self) -> Defines:
        at = self.stride
        parameters = ["__global const float* constants"]
        parameters += [f"__global const void* tensor{i}" for i in (0, 1)]
        parameters += ["__global void* values"] * ("values" in self.kind)
        parameters += ["__global uint* bits"] * ("bits" in self.kind)
        defines: Defines = {
            "EPILOGUE": 1,
            "APPLY_STEPS(W)": (
                f"STEP_SCALE_BIAS(W, 0, {at}) STEP_ADD(W, tensor0, TENSOR0_HALF, 1) "
                "STEP_CLAMP(W, -0x1p+6f, 0x1p+6f) STEP_ADD(W, tensor1, TENSOR1_HALF, 0) "
                f"STEP_PRELU(W, {2 * at}, 0)"
            ),
            "TENSOR0_HALF": 0,
            "TENSOR1_HALF": 0,
            "VALUES_HALF": 0,
            "SINK_PARAMS": "".join(f", {parameter}" for parameter in parameters),
            "SINK_ARGS": "".join(f", {re.split(r'[ *]+', p)[-1]}" for p in parameters),
        }
        if "values" in self.kind:
            defines["HAS_VALUES"] = 1
        if "bits" in self.kind:
            defines["HAS_BITS"] = 1
        if self.kind == "values+bits":
            defines |= {"HAS_FLOAT_THRESHOLD": 1, "FLOAT_THRESHOLD_AT": 3 * at}
        return defines

    def arguments(self) -> list[Array]:
        outputs = []
        if "values" in self.kind:
            outputs.append(guarded(self.case.pixels * self.case.out_c, np.float32))
        if "bits" in self.kind:
            outputs.append(guarded(self.case.pixels * words(self.case.out_c), np.uint32))
        return [self.constants, self.tensor, self.image_tensor, *outputs]

    def check(self, acc: Array, results: Sequence[Array]) -> None:
        channels = self.case.out_c
        scale, bias, slope, minimum = self.constants[:, :channels]
        value = acc.reshape(-1, channels).astype(np.float32)
        value = np.clip(value * scale + bias + self.tensor, -64, 64).astype(np.float32)
        value += np.repeat(self.image_tensor, len(value) // len(self.image_tensor), axis=0)
        value = np.where(value >= 0, value, value * slope)
        if "values" in self.kind:
            written = results[-1 - ("bits" in self.kind)]
            np.testing.assert_array_equal(unguarded(written).reshape(value.shape), value)
        if "bits" in self.kind:
            expected = value >= (minimum if self.kind == "values+bits" else 0)
            np.testing.assert_array_equal(read_bits(results[-1], *value.shape) > 0, expected)


def tiled_weights(packed: Array, case: Case, kernel: str) -> Array:
    """Weights [OUT_C][taps * IN_WORDS] in the order of ``@weights tiled``."""
    chosen = {tunable.name: tunable.default for tunable in tunables(kernel)} | dict(case.tune)
    filters, vector = chosen["TILE_FILTERS"], chosen["VECTOR_WORDS"]
    while words(case.in_c) % vector != 0:
        vector //= 2
    tiles = -(-case.out_c // filters)
    padded = np.zeros((tiles * filters, packed.shape[1]), np.uint32)
    padded[: case.out_c] = packed
    return padded.reshape(tiles, filters, -1, vector).transpose(0, 2, 1, 3).copy()


def check_convolution(kernel: str, case: Case, parts: Sequence[Part] = ()) -> None:
    """Runs a kernel (pixels, input, weights, table, borders, SINK) and compares all results."""
    random = case.random
    x = signs(random, case.batch, *case.in_hw, case.in_c)
    weights = signs(random, case.out_c, *case.kernel, case.in_c // case.groups)
    acc = convolve(case, x, weights)
    packed = pack_bits(weights).reshape(case.out_c, -1)
    if kernel in ("bconv2d_tiled", "bconv2d_lanes"):
        packed = tiled_weights(packed, case, kernel)
    check_sink(kernel, case, [pack_bits(x), packed], acc, bases(case, weights), parts=parts)


def check_sink(
    kernel: str,
    case: Case,
    operands: Sequence[Any],
    acc: Array,
    base: Array,
    extra: Mapping[str, int | str] | None = None,
    after_borders: Sequence[Any] = (),
    parts: Sequence[Part] = (),
    has_one_buffer: bool = False,
) -> None:
    """Runs a kernel with the case's sink; ``operands`` come between pixels and table.

    ``has_one_buffer``: the last of them, table and borders are one argument.
    Then the parts, which have to be what the whole result has there.
    """
    defines = case.defines() | dict(extra or {})
    epilogue = None
    if case.sink == "threshold":
        thresholds = draw_thresholds(case, acc)
        table = limits(base, thresholds)
        defines |= threshold_defines()
        sink = [guarded(case.pixels * words(case.out_c), np.uint32)]
    else:
        epilogue = Epilogue(case)
        table = base.astype(np.int32)
        defines |= epilogue.defines()
        sink = epilogue.arguments()
    constants = [table, borders(case), *after_borders]
    if has_one_buffer:
        *operands, weights = operands
        joined = [array.ravel().view(np.uint8) for array in (weights, *constants)]
        constants = [np.concatenate(joined)]
    arguments = [*operands, *constants, *sink]
    results = run_pixels(kernel, defines, case.pixels, arguments)
    check_parts(kernel, defines, case.pixels, arguments, results, parts)
    if epilogue is not None:
        epilogue.check(acc, results)
        return
    expected = acc.reshape(-1, case.out_c) >= thresholds
    np.testing.assert_array_equal(
        read_bits(results[-1], case.pixels, case.out_c) > 0, expected, err_msg=str(case)
    )


def threshold_defines() -> Defines:
    """The THRESHOLD sink."""
    return {"THRESHOLD": 1, "SINK_PARAMS": ", __global uint* bits", "SINK_ARGS": ", bits"}
