"""All that a predictor may know of a layer: what a ``.pbit`` file says, and no measurement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from phonebit.format.contents import FileContents
from phonebit.format.records import NONE, DataType, OpKind, ThresholdKind
from phonebit.planner.plan.execution_plan import WORD_CHANNELS, OutputPart
from phonebit.planner.plan.operators import CHANNELS_READ, CUTS, cuts_channels

TYPE_BITS: Final = {
    DataType.BIT: 1, DataType.U8: 8, DataType.I8: 8, DataType.F16: 16, DataType.F32: 32,
    DataType.I32: 32,
}  # fmt: skip
WINDOW_FIELDS: Final = (
    "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups",
)  # fmt: skip
"""Of records as of shapes; 1 where an op has no window or groups."""
PAD_FIELDS: Final = ("pad_top", "pad_left")
_CONVOLUTIONS: Final = frozenset({"binary_conv2d", "binary_depthwise_conv2d", "conv2d"})


@dataclass(frozen=True)
class LayerShape:
    """The geometry of one op. Channels are those of the whole layer, whatever its groups.

    Args:
        op: The kind, as "binary_conv2d".
        in_h: Rows of the first operand.
        in_c: Its channels.
        input: Element type of the operands: "bit", "u8" or "f32".
        operand_channels: Channels of each operand; several for a concatenation or a product.
        kernel_h: Rows of the window; 1 for ops without one, as the other window fields.
        stride_h: Rows from one window to the next.
        dilation_h: Rows from tap to tap.
        pad_top: Rows of padding above the map.
        groups: Of a convolution or a product.
        values: Whether it writes float32 values.
        bits: Whether it writes packed bits.
        thresholds: Whether the bits come from integer comparisons, without an epilogue.
        steps: Steps of its epilogue.
        step_tensors: How many of them read a tensor.
        weight_bits: Bits of a stored weight; 0: it has none.
        input_add: Of u8 convolutions, which see ``input_mul * x + input_add``.
        planes: Tensors of packed bits, where it writes bits: several of BIT_PLANES.
    """

    op: str
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    input: str
    operand_channels: tuple[int, ...]
    kernel_h: int = 1
    kernel_w: int = 1
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    pad_top: int = 0
    pad_left: int = 0
    groups: int = 1
    values: bool = False
    bits: bool = False
    thresholds: bool = False
    steps: int = 0
    step_tensors: int = 0
    weight_bits: int = 0
    input_add: int = 0
    planes: int = 1

    @classmethod
    def of(cls, contents: FileContents, index: int) -> LayerShape:
        """An op of a file."""
        op = contents.ops[index]
        operands = [contents.tensors[tensor] for tensor in contents.operands_of(op)]
        out_h, out_w, out_c = contents.output_shape(op)
        constant = int(op["weights"])
        weights = contents.constants[constant]["dtype"] if constant != NONE else None
        kind = OpKind(int(op["kind"]))
        return cls(
            op=kind.name.lower(),
            in_h=int(operands[0]["height"]),
            in_w=int(operands[0]["width"]),
            in_c=int(operands[0]["channels"]),
            out_h=out_h,
            out_w=out_w,
            out_c=out_c,
            input=DataType(int(operands[0]["dtype"])).name.lower(),
            operand_channels=tuple(int(operand["channels"]) for operand in operands),
            **{name: max(int(op[name]), 1) for name in WINDOW_FIELDS},
            **{name: int(op[name]) for name in PAD_FIELDS},
            values=int(op["value_output"]) != NONE,
            bits=int(op["bits_output"]) != NONE,
            thresholds=int(op["threshold_kind"]) == ThresholdKind.I32,
            steps=int(op["step_count"]),
            step_tensors=len(contents.step_tensors_of(op)),
            weight_bits=0 if weights is None else TYPE_BITS[DataType(int(weights))],
            input_add=int(op["input_add"]) if kind == OpKind.CONV2D else 0,
            planes=int(op["planes"]) if kind == OpKind.BIT_PLANES else 1,
        )

    @property
    def whole(self) -> OutputPart:
        """All of its output."""
        return OutputPart(0, self.out_h, 0, self.out_c)

    @property
    def family(self) -> str:
        """The kind and what it reads, as tuning tables name it: "conv2d_u8", "max_pool2d_bits"."""
        match self.op, self.input:
            case "conv2d", "f32" if self.groups > 1:
                is_depthwise = self.groups == self.in_c == self.out_c
                return "depthwise_conv2d_f32" if is_depthwise else "conv2d_f32_grouped"
            case "conv2d", _:
                return f"conv2d_{self.input}"
            case "max_pool2d" | "concat", "bit":
                return f"{self.op}_bits"
            case "matmul" | "matmul_transposed", "bit":
                return "matmul_bits"
        return self.op

    @cached_property
    def kind(self) -> OpKind:
        """The kind, as files have it."""
        return OpKind[self.op.upper()]

    @property
    def can_cut_rows(self) -> bool:
        """Whether a row of its output comes from a range of its operands' rows."""
        return CUTS[self.kind] != "none" and self.out_h > 1

    @property
    def can_cut_channels(self) -> bool:
        """Whether each output channel is computed by itself."""
        return cuts_channels(self.kind, self.groups)

    @cached_property
    def reads_same_channels(self) -> bool:
        """Whether an output channel comes from that channel of its operands alone."""
        return CHANNELS_READ[self.kind] == "same"

    @property
    def is_convolution(self) -> bool:
        """Whether it multiplies with weights."""
        return self.op in _CONVOLUTIONS

    @property
    def is_product(self) -> bool:
        """Whether it multiplies its two operands as matrices."""
        return self.op in ("matmul", "matmul_transposed")

    @property
    def operand_sizes(self) -> tuple[tuple[int, int, int], ...]:
        """Height, width and channels of each operand."""
        sizes = [(self.in_h, self.in_w, channels) for channels in self.operand_channels]
        if self.is_product:
            rows = self.taps if self.op == "matmul" else self.out_c // self.groups
            sizes[1] = (1, rows, self.operand_channels[1])
        return tuple(sizes)

    @property
    def taps(self) -> int:
        """Input elements under the window of one output element."""
        taps = self.kernel_h * self.kernel_w
        is_weighted = self.is_convolution or self.is_product
        if self.op == "binary_depthwise_conv2d" or not is_weighted:
            return taps
        return taps * (self.in_c // self.groups)

    @property
    def word_taps(self) -> int:
        """The same where bits are read in whole words."""
        if self.op != "binary_conv2d" or self.groups > 1:
            return self.taps
        words = -(-self.in_c // WORD_CHANNELS)
        return self.kernel_h * self.kernel_w * words * WORD_CHANNELS

    def outputs_of(self, part: OutputPart) -> int:
        """Output elements of a part."""
        return part.rows * self.out_w * part.channels

    def operations(self, part: OutputPart) -> int:
        """Multiply-accumulates of a part, or for other ops the elements that it looks at."""
        return self.outputs_of(part) * self.taps

    def input_bytes(self, part: OutputPart) -> float:
        """Bytes of what a part reads, without what its steps read."""
        if self.op == "reshape":
            rows_read = self.in_h * part.rows / self.out_h
        else:
            window = (part.rows - 1) * self.stride_h + (self.kernel_h - 1) * self.dilation_h + 1
            rows_read = min(window, self.in_h)
        channels = part.channels if self.reads_same_channels else sum(self.operand_channels)
        return rows_read * self.in_w * channels * TYPE_BITS[DataType[self.input.upper()]] / 8

    def output_bytes(self, part: OutputPart) -> float:
        """Bytes that a part writes."""
        bits = 32 * self.values + self.bits * self.planes
        return self.outputs_of(part) * bits / 8

    def weight_bytes(self, part: OutputPart) -> float:
        """Bytes of the weights that a part needs, as stored."""
        if not self.is_convolution:
            return 0.0
        return part.channels * self.taps * self.weight_bits / 8
