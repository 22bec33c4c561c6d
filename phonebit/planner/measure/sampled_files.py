"""A layer of a given shape as a ``.pbit`` file of its own, with random numbers in it.

Networks take in bytes or floats, so an op over packed bits reads what element-wise ops in front of
it make of floats.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.format.constants import ConstantPool
from phonebit.format.contents import INDEX, FileContents, Records
from phonebit.format.records import (
    NONE,
    OP,
    STEP,
    TENSOR,
    DataType,
    OpKind,
    StepKind,
    ThresholdKind,
)
from phonebit.format.strings import StringPool
from phonebit.planner.predict.layer_shape import PAD_FIELDS, WINDOW_FIELDS, LayerShape

_WEIGHT_TYPES: Final = {1: DataType.BIT, 8: DataType.I8, 16: DataType.F16, 32: DataType.F32}
_DEFAULTS: Final = {
    **dict.fromkeys((*WINDOW_FIELDS, "input_mul"), 1),
    **dict.fromkeys(("value_output", "bits_output", "weights", "threshold", "flip_mask"), NONE),
}
"""Of an op's record; its other fields are 0."""


def layer_file(layer: LayerShape, seed: int = 0) -> tuple[FileContents, int]:
    """A network that holds one layer of this shape, and the layer's index in it.

    Padding below and on the right is what the output's size needs; weights, thresholds and the
    epilogue's numbers are random.
    """
    return _File(seed).build(layer), layer_index(layer)


def layer_index(layer: LayerShape) -> int:
    """The layer's index in its file: after the ops that make bits of its inputs."""
    return len(layer.operand_channels) if layer.input == "bit" else 0


class _File:
    """Tables that grow."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = StringPool()
        self.tensors: list[Records] = []
        self.constants = ConstantPool()
        self.operands: list[int] = []
        self.steps: list[Records] = []
        self.ops: list[Records] = []
        self.inputs: list[int] = []

    def build(self, layer: LayerShape) -> FileContents:
        operands = [self.source(layer.input, *size) for size in layer.operand_sizes]
        op = self.op(layer.op, operands, **_geometry(layer))
        size = layer.out_h, layer.out_w, layer.out_c
        if layer.values:
            op["value_output"] = self.tensor("f32", *size)
        if layer.bits:
            planes = [self.tensor("bit", *size) for _ in range(layer.planes)]
            op["bits_output"], op["planes"] = planes[0], len(planes)
        self.weigh(op, layer)
        self.finish_epilogue(op, layer)
        return FileContents(
            strings=self.names.content(),
            tensors=np.array(self.tensors, TENSOR),
            constants=self.constants.records(),
            operands=np.array(self.operands, INDEX),
            steps=np.array(self.steps, STEP),
            ops=np.array(self.ops, OP),
            inputs=np.array(self.inputs, INDEX),
            outputs=np.array(FileContents.outputs_of(op), INDEX),
            data=self.constants.data(),
            metadata={"name": "a measured layer", "producer": "phonebit collect"},
        )

    def source(self, dtype: str, *size: int) -> int:
        """An input of the network, or the bits that an element-wise op makes of one."""
        tensor = self.tensor("u8" if dtype == "u8" else "f32", *size)
        self.inputs.append(tensor)
        if dtype != "bit":
            return tensor
        op = self.op("elementwise", [tensor], threshold_kind=ThresholdKind.F32)
        op["bits_output"] = bits = self.tensor("bit", *size)
        return bits

    def op(self, kind: str, operands: list[int], **fields: int) -> Records:
        """An op whose outputs, constants and steps are still missing."""
        record = _record(OP, kind=OpKind[kind.upper()], **{**_DEFAULTS, **fields})
        record["name_offset"] = self.names.add(f"{kind}_{len(self.ops)}")
        record["operand_begin"], record["operand_count"] = len(self.operands), len(operands)
        self.operands += operands
        self.ops.append(record)
        return record

    def weigh(self, op: Records, layer: LayerShape) -> None:
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
        op["weights"] = self.constants.add(numbers, dtype)

    def finish_epilogue(self, op: Records, layer: LayerShape) -> None:
        """Steps and thresholds."""
        if layer.thresholds:
            reach = max(1, int(np.sqrt(layer.taps)))
            limits = self.rng.integers(-reach, reach + 1, layer.out_c)
            op["threshold"] = self.constants.add(limits, DataType.I32)
            op["threshold_kind"] = ThresholdKind.I32
        elif layer.bits and layer.family not in ("max_pool2d_bits", "concat_bits", "bit_planes"):
            op["threshold_kind"] = ThresholdKind.F32
        op["step_begin"], op["step_count"] = len(self.steps), layer.steps
        for kind in _step_kinds(layer):
            step = _record(STEP, kind=kind, tensor=NONE, constant_a=NONE, constant_b=NONE)
            if kind == StepKind.ADD:
                step["tensor"] = self.source("f32", layer.out_h, layer.out_w, layer.out_c)
            elif kind == StepKind.CLAMP:
                step["value_b"] = np.inf
            else:
                for side in ("constant_a", "constant_b"):
                    numbers = self.rng.normal(size=layer.out_c)
                    step[side] = self.constants.add(numbers, DataType.F32)
            self.steps.append(step)

    def words(self, pixels: int, channels: int) -> NDArray[np.uint32]:
        """Packed random bits; those beyond the channels are 0."""
        count = -(-channels // 32)
        words = self.rng.integers(0, 1 << 32, (pixels, count), np.uint32)
        if channels % 32:
            words[:, -1] &= (1 << channels % 32) - 1
        return words

    def tensor(self, dtype: str, height: int, width: int, channels: int) -> int:
        name = self.names.add(f"tensor_{len(self.tensors)}")
        kind = DataType[dtype.upper()]
        size = {"height": height, "width": width, "channels": channels}
        self.tensors.append(_record(TENSOR, name_offset=name, dtype=kind, **size))
        return len(self.tensors) - 1


def _record(layout: np.dtype[Any], **fields: int) -> Records:
    record = np.zeros((), layout)
    for name, value in fields.items():
        record[name] = value
    return record


def _step_kinds(layer: LayerShape) -> list[StepKind]:
    """In the order of residual blocks: ReLU, scale and bias, shortcuts; kernels know it."""
    count = layer.steps - layer.step_tensors
    before = [StepKind.CLAMP, StepKind.SCALE_BIAS] if count > 1 else [StepKind.SCALE_BIAS] * count
    after = [StepKind.SCALE_BIAS] * (count - len(before))
    return [*before, *[StepKind.ADD] * layer.step_tensors, *after]


def _geometry(layer: LayerShape) -> dict[str, int]:
    """Of an op's record."""
    fields: dict[str, int] = {name: getattr(layer, name) for name in WINDOW_FIELDS + PAD_FIELDS}
    if layer.input == "u8" and layer.op == "conv2d":
        fields |= {"input_mul": 2, "input_add": layer.input_add}
    if layer.is_convolution or layer.op in ("max_pool2d", "average_pool2d", "pad"):
        rows = layer.out_h, layer.stride_h, layer.pad_top, layer.kernel_h, layer.dilation_h
        columns = layer.out_w, layer.stride_w, layer.pad_left, layer.kernel_w, layer.dilation_w
        fields["pad_bottom"] = _pad_after(layer.in_h, *rows)
        fields["pad_right"] = _pad_after(layer.in_w, *columns)
    return fields


def _pad_after(size: int, out: int, stride: int, before: int, kernel: int, dilation: int) -> int:
    """Padding after the map: what the last window needs of it."""
    return max(0, (out - 1) * stride - before + (kernel - 1) * dilation + 1 - size)
