"""A layer of a given shape as a ``.pbit`` file of its own, with random numbers in it.

Networks take in bytes or floats, so an op over packed bits reads what element-wise ops in front of
it make of floats.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.format.contents import CONSTANT_TYPES, INDEX, FileContents
from phonebit.format.records import (
    ALIGNMENT,
    CONSTANT,
    NONE,
    OP,
    STEP,
    TENSOR,
    DataType,
    OpKind,
    StepKind,
    ThresholdKind,
)
from phonebit.planner.predict.layer_shape import LayerShape

_WEIGHT_TYPES: Final = {1: DataType.BIT, 8: DataType.I8, 16: DataType.F16, 32: DataType.F32}
_WINDOW: Final = (
    "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top",
    "pad_left",
)  # fmt: skip


def layer_file(layer: LayerShape, seed: int = 0) -> tuple[FileContents, int]:
    """A network that holds one layer of this shape, and the layer's index in it.

    Padding below and on the right is what the output's size needs; weights, thresholds and the
    epilogue's numbers are random.
    """
    return _File(seed).build(layer), layer_index(layer)


def layer_index(layer: LayerShape) -> int:
    """The layer's index in its file: behind the ops that make bits of its inputs."""
    return len(layer.operand_channels) if layer.input == "bit" else 0


class _File:
    """Tables that grow."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.strings = bytearray()
        self.tensors: list[NDArray[np.void]] = []
        self.constants: list[NDArray[np.void]] = []
        self.operands: list[int] = []
        self.steps: list[NDArray[np.void]] = []
        self.ops: list[NDArray[np.void]] = []
        self.inputs: list[int] = []
        self.data = bytearray()

    def build(self, layer: LayerShape) -> FileContents:
        operands = [self.source(layer.input, *size) for size in layer.operand_sizes]
        record = _op(layer)
        self.begin(record, layer.op, operands)
        size = layer.out_h, layer.out_w, layer.out_c
        if layer.values:
            record["value_output"] = self.tensor("f32", *size)
        if layer.bits:
            planes = [self.tensor("bit", *size) for _ in range(layer.planes)]
            record["bits_output"], record["planes"] = planes[0], len(planes)
        self.weigh(record, layer)
        self.finish_epilogue(record, layer)
        self.ops.append(record)
        return FileContents(
            strings=bytes(self.strings),
            tensors=np.array(self.tensors, TENSOR),
            constants=np.array(self.constants, CONSTANT),
            operands=np.array(self.operands, INDEX),
            steps=np.array(self.steps, STEP),
            ops=np.array(self.ops, OP),
            inputs=np.array(self.inputs, INDEX),
            outputs=np.array(FileContents.outputs_of(record), INDEX),
            data=bytes(self.data),
            metadata={"name": "a measured layer", "producer": "phonebit collect"},
        )

    def source(self, dtype: str, *size: int) -> int:
        """An input of the network, or the bits that an element-wise op makes of one."""
        tensor = self.tensor("u8" if dtype == "u8" else "f32", *size)
        self.inputs.append(tensor)
        if dtype != "bit":
            return tensor
        record = np.zeros((), OP)
        self.begin(record, "elementwise", [tensor])
        record["bits_output"] = self.tensor("bit", *size)
        record["threshold_kind"] = ThresholdKind.F32
        self.ops.append(record)
        return int(record["bits_output"])

    def begin(self, record: NDArray[np.void], op: str, operands: list[int]) -> None:
        """What every op has; the rest of its record has been filled in, or is 0."""
        record["kind"] = OpKind[op.upper()]
        record["name_offset"] = self.name(f"{op}_{len(self.ops)}")
        record["operand_begin"], record["operand_count"] = len(self.operands), len(operands)
        self.operands += operands
        for field in ("value_output", "bits_output", "weights", "threshold", "flip_mask"):
            record[field] = NONE
        for field in (*_WINDOW[:6], "groups", "input_mul"):
            record[field] = max(int(record[field]), 1)

    def weigh(self, record: NDArray[np.void], layer: LayerShape) -> None:
        """Weights, or the channels that are selected."""
        numbers: NDArray[Any]
        dtype = _WEIGHT_TYPES.get(layer.weight_bits, DataType.I32)
        if layer.op == "select_channels":
            dtype, numbers = DataType.I32, self.rng.integers(0, layer.in_c, layer.out_c)
        elif not layer.is_convolution:
            return
        elif dtype == DataType.BIT:
            filters = 1 if layer.op == "binary_depthwise_conv2d" else layer.out_c
            taps = layer.kernel_h * layer.kernel_w
            numbers = self.words(filters * taps, layer.in_c // layer.groups)
        else:
            numbers = self.rng.integers(-100, 101, layer.out_c * layer.taps)
            if dtype != DataType.I8:
                numbers = numbers / 128
        record["weights"] = self.constant(dtype, numbers)

    def finish_epilogue(self, record: NDArray[np.void], layer: LayerShape) -> None:
        """Steps and thresholds."""
        if layer.thresholds:
            reach = max(1, int(np.sqrt(layer.taps)))
            limits = self.rng.integers(-reach, reach + 1, layer.out_c)
            record["threshold"] = self.constant(DataType.I32, limits)
            record["threshold_kind"] = ThresholdKind.I32
        elif layer.bits and layer.family not in ("max_pool2d_bits", "concat_bits", "bit_planes"):
            record["threshold_kind"] = ThresholdKind.F32
        record["step_begin"], record["step_count"] = len(self.steps), layer.steps
        for kind in _step_kinds(layer):
            step = np.zeros((), STEP)
            step["kind"] = kind
            step["tensor"] = step["constant_a"] = step["constant_b"] = NONE
            if kind == StepKind.ADD:
                step["tensor"] = self.source("f32", layer.out_h, layer.out_w, layer.out_c)
            elif kind == StepKind.CLAMP:
                step["value_b"] = np.inf
            else:
                for side in ("constant_a", "constant_b"):
                    step[side] = self.constant(DataType.F32, self.rng.normal(size=layer.out_c))
            self.steps.append(step)

    def words(self, pixels: int, channels: int) -> NDArray[np.uint32]:
        """Packed random bits; those beyond the channels are 0."""
        count = -(-channels // 32)
        words = self.rng.integers(0, 1 << 32, (pixels, count), np.uint32)
        if channels % 32:
            words[:, -1] &= (1 << channels % 32) - 1
        return words

    def tensor(self, dtype: str, height: int, width: int, channels: int) -> int:
        record = np.zeros((), TENSOR)
        record["name_offset"] = self.name(f"tensor_{len(self.tensors)}")
        record["dtype"] = DataType[dtype.upper()]
        record["height"], record["width"], record["channels"] = height, width, channels
        self.tensors.append(record)
        return len(self.tensors) - 1

    def constant(self, dtype: DataType, values: NDArray[Any]) -> int:
        stored = np.ascontiguousarray(values, CONSTANT_TYPES[dtype])
        self.data += bytes(-len(self.data) % ALIGNMENT)
        record = np.zeros((), CONSTANT)
        record["dtype"], record["count"] = dtype, stored.size
        record["offset"], record["size_bytes"] = len(self.data), stored.nbytes
        self.data += stored.tobytes()
        self.constants.append(record)
        return len(self.constants) - 1

    def name(self, name: str) -> int:
        place = len(self.strings)
        self.strings += name.encode() + b"\0"
        return place


def _step_kinds(layer: LayerShape) -> list[StepKind]:
    """In the order of residual blocks: ReLU, scale and bias, shortcuts; kernels know it."""
    count = layer.steps - layer.step_tensors
    before = [StepKind.CLAMP, StepKind.SCALE_BIAS] if count > 1 else [StepKind.SCALE_BIAS] * count
    after = [StepKind.SCALE_BIAS] * (count - len(before))
    return [*before, *[StepKind.ADD] * layer.step_tensors, *after]


def _op(layer: LayerShape) -> NDArray[np.void]:
    """The geometry of an op's record."""
    record = np.zeros((), OP)
    for field in _WINDOW:
        record[field] = getattr(layer, field)
    record["groups"] = layer.groups
    if layer.input == "u8" and layer.op == "conv2d":
        record["input_mul"], record["input_add"] = 2, layer.input_add
    if layer.is_convolution or layer.op in ("max_pool2d", "average_pool2d", "pad"):
        rows = layer.out_h, layer.stride_h, layer.pad_top, layer.kernel_h, layer.dilation_h
        columns = layer.out_w, layer.stride_w, layer.pad_left, layer.kernel_w, layer.dilation_w
        record["pad_bottom"] = _pad_behind(layer.in_h, *rows)
        record["pad_right"] = _pad_behind(layer.in_w, *columns)
    return record


def _pad_behind(size: int, out: int, stride: int, before: int, kernel: int, dilation: int) -> int:
    """Padding behind the map: what the last window needs of it."""
    return max(0, (out - 1) * stride - before + (kernel - 1) * dilation + 1 - size)
