"""Record layouts of the ``.pbit`` file, version 1: the Python half of the contract.

The C++ half is ``runtime/format/include/format/pbit_records.h``;
``tests/unit/format/test_format_layout.py`` proves that both declare the same sizes, offsets and
numbers. Byte-by-byte documentation: ``docs/format.md``.
All numbers are little-endian. A reference to a record is its index; ``NONE`` means "absent".
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

MAGIC: Final = b"PBIT"
VERSION: Final = 1
ALIGNMENT: Final = 64
"""Every section, and every constant inside the DATA section, starts at a multiple of this."""
NONE: Final = -1
MAX_LABELS: Final = 1 << 16
MAX_NAME_BYTES: Final = 1024
MAX_SIDE: Final = 1 << 20
"""Of what an image is resized to, and of anchors, in cells."""
MAX_LEVEL: Final = 255
MAX_FLOAT32: Final = float(np.finfo(np.float32).max)
PER_CHANNEL: Final = 4
"""Means and deviations of a record: one per channel, or all alike for inputs with more channels."""
BOX_NUMBERS: Final = 5
"""Channels of each anchor before its classes: x, y, w, h, objectness."""


class SectionKind(IntEnum):
    """What a section holds."""

    STRINGS = 1
    TENSORS = 2
    CONSTANTS = 3
    OPERANDS = 4
    STEPS = 5
    OPS = 6
    INPUTS = 7
    OUTPUTS = 8
    DATA = 9
    METADATA = 0x8001
    PREPROCESSING = 0x8002
    LABELS = 0x8003
    DETECTION = 0x8004
    EXECUTION_PLANS = 0x8005
    PLAN_PARTS = 0x8006


class DataType(IntEnum):
    """Element types of tensors (BIT, U8, F32) and of constants (all but U8)."""

    BIT = 0
    U8 = 1
    I32 = 2
    F32 = 3
    F16 = 4
    I8 = 5


class OpKind(IntEnum):
    """What an op computes; the meaning of each is in docs/format.md."""

    BINARY_CONV2D = 1
    BINARY_DEPTHWISE_CONV2D = 2
    CONV2D = 3
    MAX_POOL2D = 4
    AVERAGE_POOL2D = 5
    ELEMENTWISE = 6
    CONCAT = 7
    PAD = 8
    RESHAPE = 9
    SOFTMAX = 10
    SELECT_CHANNELS = 11
    LOG_SOFTMAX = 12
    RESIZE_BILINEAR = 13
    RESIZE_BILINEAR_CORNERS = 14
    RESIZE_BICUBIC = 15
    RESIZE_BICUBIC_CORNERS = 16
    MATMUL = 17
    MATMUL_TRANSPOSED = 18
    BIT_PLANES = 19


class StepKind(IntEnum):
    """One step of an epilogue, applied to a float32 value ``v`` in channel ``c``."""

    SCALE_BIAS = 1
    ADD = 2
    MULTIPLY = 3
    CLAMP = 4
    PRELU = 5
    SIGMOID = 6
    TANH = 7
    ROUND = 8
    GELU = 9
    GELU_TANH = 10
    EXP = 11
    LOG = 12
    SQRT = 13
    RECIPROCAL = 14
    ELU = 15
    SOFTPLUS = 16
    MISH = 17
    COUNT = 18


class ThresholdKind(IntEnum):
    """How the packed bits of an op come about."""

    NONE = 0
    I32 = 1
    F32 = 2


class ColorOrder(IntEnum):
    """What the channels of an image are; NONE: the input is not an image."""

    NONE = 0
    GRAY = 1
    RGB = 2
    BGR = 3
    RGBA = 4


class Resize(IntEnum):
    """How an image of another size gets the size of the input; docs/preprocessing.md."""

    STRETCH = 0
    SHORTER_SIDE = 1
    LETTERBOX = 2


class Interpolation(IntEnum):
    """How an image is resampled; the last two widen their window when they shrink an image."""

    NEAREST = 0
    BILINEAR = 1
    BICUBIC = 2


COLOR_CHANNELS: Final = {
    ColorOrder.GRAY: 1,
    ColorOrder.RGB: 3,
    ColorOrder.BGR: 3,
    ColorOrder.RGBA: 4,
}
"""Channels of an input that reads images."""


class HeadKind(IntEnum):
    """What the numbers of a detector's output mean; docs/detection.md."""

    YOLOV2 = 1


HEADER = np.dtype(
    [
        ("magic", "S4"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("section_count", "<u4"),
        ("file_bytes", "<u8"),
        ("section_table_offset", "<u8"),
        ("crc32", "<u4"),
        ("reserved", "<u4", (7,)),
    ]
)

SECTION = np.dtype(
    [
        ("kind", "<u4"),
        ("record_bytes", "<u4"),
        ("offset", "<u8"),
        ("size_bytes", "<u8"),
        ("count", "<u8"),
    ]
)

TENSOR = np.dtype(
    [
        ("name_offset", "<u4"),
        ("dtype", "<u4"),
        ("height", "<u4"),
        ("width", "<u4"),
        ("channels", "<u4"),
        ("reserved", "<u4", (3,)),
    ]
)

CONSTANT = np.dtype(
    [
        ("dtype", "<u4"),
        ("reserved", "<u4"),
        ("count", "<u8"),
        ("offset", "<u8"),
        ("size_bytes", "<u8"),
    ]
)

STEP = np.dtype(
    [
        ("kind", "<u4"),
        ("tensor", "<i4"),
        ("constant_a", "<i4"),
        ("constant_b", "<i4"),
        ("value_a", "<f4"),
        ("value_b", "<f4"),
        ("reserved", "<u4", (2,)),
    ]
)

OP = np.dtype(
    [
        ("kind", "<u4"),
        ("name_offset", "<u4"),
        ("operand_begin", "<u4"),
        ("operand_count", "<u4"),
        ("value_output", "<i4"),
        ("bits_output", "<i4"),
        ("weights", "<i4"),
        ("threshold", "<i4"),
        ("threshold_kind", "<u4"),
        ("step_begin", "<u4"),
        ("step_count", "<u4"),
        ("flip_mask", "<i4"),
        ("kernel_h", "<u4"),
        ("kernel_w", "<u4"),
        ("stride_h", "<u4"),
        ("stride_w", "<u4"),
        ("dilation_h", "<u4"),
        ("dilation_w", "<u4"),
        ("pad_top", "<u4"),
        ("pad_left", "<u4"),
        ("pad_bottom", "<u4"),
        ("pad_right", "<u4"),
        ("pad_value", "<f4"),
        ("groups", "<u4"),
        ("input_mul", "<i4"),
        ("input_add", "<i4"),
        ("planes", "<u4"),
        ("reserved", "<u4", (5,)),
    ]
)

PREPROCESSING = np.dtype(
    [
        ("input", "<u4"),
        ("color_order", "<u4"),
        ("resize", "<u4"),
        ("resize_to", "<u4"),
        ("fill_level", "<u4"),
        ("interpolation", "<u4"),
        ("low", "<f8"),
        ("high", "<f8"),
        ("mean", "<f8", (4,)),
        ("deviation", "<f8", (4,)),
        ("reserved", "<u4", (6,)),
    ]
)

MAX_ANCHORS: Final = 16
DETECTION = np.dtype(
    [
        ("output", "<u4"),
        ("kind", "<u4"),
        ("anchor_count", "<u4"),
        ("anchors", "<f4", (MAX_ANCHORS, 2)),
        ("reserved", "<u4", (5,)),
    ]
)

PLAN = np.dtype(
    [
        ("device_offset", "<u4"),
        ("method_offset", "<u4"),
        ("part_begin", "<u4"),
        ("part_count", "<u4"),
        ("predicted_ms", "<f8"),
        ("reserved", "<u4", (10,)),
    ]
)

PLAN_PART = np.dtype(
    [
        ("stage", "<u4"),
        ("processor", "<u4"),
        ("layer", "<u4"),
        ("row_begin", "<u4"),
        ("row_end", "<u4"),
        ("channel_begin", "<u4"),
        ("channel_end", "<u4"),
        ("reserved", "<u4"),
    ]
)
