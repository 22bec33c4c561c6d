"""All that a predictor may know of a layer: what a ``.pbit`` file says, and no measurement."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from phonebit.errors import InputError
from phonebit.format.contents import FileContents
from phonebit.format.records import NONE, DataType, OpKind, StepKind, ThresholdKind
from phonebit.planner.plan.execution_plan import WORD_CHANNELS, OutputPart

_TYPE_BITS: Final = {"bit": 1, "u8": 8, "f32": 32}
_WINDOW_FIELDS: Final = (
    "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w",
)  # fmt: skip
_CONVOLUTIONS: Final = frozenset({"binary_conv2d", "binary_depthwise_conv2d", "conv2d"})


@dataclass(frozen=True)
class LayerShape:
    """The geometry of one op. Channels are those of the whole layer, whatever its groups.

    Args:
        op: The kind, as "binary_conv2d".
        in_h: Rows of the first operand.
        in_w: Its columns.
        in_c: Its channels.
        out_h: Rows of the output.
        out_w: Its columns.
        out_c: Its channels.
        input: Element type of the operands: "bit", "u8" or "f32".
        operand_channels: Channels of each operand; several only for a concatenation.
        kernel_h: Rows of the window; 1 for ops without one, as the other window fields.
        kernel_w: Its columns.
        stride_h: Rows from one window to the next.
        stride_w: Columns likewise.
        dilation_h: Rows from tap to tap.
        dilation_w: Columns likewise.
        pad_top: Rows of padding above the map.
        pad_left: Columns of padding beside it.
        groups: Of a convolution.
        values: Whether it writes float32 values.
        bits: Whether it writes packed bits.
        thresholds: Whether the bits come from integer comparisons, without an epilogue.
        steps: Steps of its epilogue.
        step_tensors: How many of them read a tensor.
        weight_bits: Bits of a stored weight; 0: it has none.
        input_add: Of u8 convolutions, which see ``input_mul * x + input_add``.
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

    @classmethod
    def of(cls, contents: FileContents, index: int) -> LayerShape:
        """An op of a file.

        Args:
            contents: What ``phonebit.format.reader.read_contents`` gives.
            index: The op's.
        """
        op = contents.ops[index]
        begin, count = int(op["operand_begin"]), int(op["operand_count"])
        operands = [contents.tensors[tensor] for tensor in contents.operands[begin : begin + count]]
        outputs = [int(op[side]) for side in ("value_output", "bits_output")]
        out = contents.tensors[next(tensor for tensor in outputs if tensor != NONE)]
        first, steps = int(op["step_begin"]), int(op["step_count"])
        reading = (StepKind.ADD, StepKind.MULTIPLY)
        kind = OpKind(int(op["kind"])).name.lower()
        return cls(
            op=kind,
            in_h=int(operands[0]["height"]),
            in_w=int(operands[0]["width"]),
            in_c=int(operands[0]["channels"]),
            out_h=int(out["height"]),
            out_w=int(out["width"]),
            out_c=int(out["channels"]),
            input=DataType(int(operands[0]["dtype"])).name.lower(),
            operand_channels=tuple(int(operand["channels"]) for operand in operands),
            **{name: max(int(op[name]), 1) for name in _WINDOW_FIELDS},
            pad_top=int(op["pad_top"]),
            pad_left=int(op["pad_left"]),
            groups=max(int(op["groups"]), 1),
            values=outputs[0] != NONE,
            bits=outputs[1] != NONE,
            thresholds=int(op["threshold_kind"]) == ThresholdKind.I32,
            steps=steps,
            step_tensors=sum(
                int(step["kind"]) in reading for step in contents.steps[first : first + steps]
            ),
            weight_bits=_weight_bits(contents, int(op["weights"])),
            input_add=int(op["input_add"]) if kind == "conv2d" else 0,
        )

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> LayerShape:
        """The inverse of ``to_dict``.

        Raises:
            InputError: A field is missing, unknown or of another type.
        """
        known = {field.name: field.type for field in fields(cls)}
        wrong = [name for name in record if name not in known]
        wrong += [name for name, value in record.items() if not _fits(known.get(name), value)]
        if wrong:
            raise InputError("geometry of a layer", expected=", ".join(known), got=", ".join(wrong))
        try:
            values = {**record, "operand_channels": tuple(record["operand_channels"])}
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise InputError("geometry of a layer: a field is missing", got=str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return {**asdict(self), "operand_channels": list(self.operand_channels)}

    @property
    def whole(self) -> OutputPart:
        """All of its output."""
        return OutputPart(0, self.out_h, 0, self.out_c)

    @property
    def family(self) -> str:
        """The kind and what it reads, as tuning tables name it: "conv2d_u8", "max_pool2d_bits"."""
        name = self.op
        if name == "conv2d":
            name += f"_{self.input}"
            if self.groups > 1 and self.input == "f32":
                is_depthwise = self.groups == self.in_c == self.out_c
                return "depthwise_conv2d_f32" if is_depthwise else "conv2d_f32_grouped"
        elif self.input == "bit" and name in ("max_pool2d", "concat"):
            name += "_bits"
        return name

    @property
    def is_convolution(self) -> bool:
        """Whether it multiplies with weights."""
        return self.op in _CONVOLUTIONS

    @property
    def taps(self) -> int:
        """Input elements under the window of one output element."""
        taps = self.kernel_h * self.kernel_w
        if self.op == "binary_depthwise_conv2d" or not self.is_convolution:
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
        rows, channels = _extent(part)
        return rows * self.out_w * channels

    def operations(self, part: OutputPart) -> int:
        """Multiply-accumulates of a part, or for other ops the elements that it looks at."""
        return self.outputs_of(part) * self.taps

    def input_bytes(self, part: OutputPart) -> float:
        """Bytes of the rows that a part reads, without those that its steps read."""
        rows, _ = _extent(part)
        if self.op == "reshape":
            rows_read = self.in_h * rows / self.out_h
        else:
            window = (rows - 1) * self.stride_h + (self.kernel_h - 1) * self.dilation_h + 1
            rows_read = min(window, self.in_h)
        return rows_read * self.in_w * self.pixel_bytes(self.input, sum(self.operand_channels))

    def output_bytes(self, part: OutputPart) -> float:
        """Bytes that a part writes."""
        rows, channels = _extent(part)
        pixels = rows * self.out_w
        values = pixels * self.pixel_bytes("f32", channels) if self.values else 0.0
        return values + (pixels * self.pixel_bytes("bit", channels) if self.bits else 0.0)

    def weight_bytes(self, part: OutputPart) -> float:
        """Bytes of the weights that a part needs, as stored."""
        if not self.is_convolution:
            return 0.0
        _, channels = _extent(part)
        return channels * self.taps * self.weight_bits / 8

    @staticmethod
    def pixel_bytes(dtype: str, channels: int) -> float:
        """Bytes of some channels of a pixel."""
        return channels * _TYPE_BITS[dtype] / 8


def _extent(part: OutputPart) -> tuple[int, int]:
    return part.row_end - part.row_begin, part.channel_end - part.channel_begin


def _weight_bits(contents: FileContents, constant: int) -> int:
    bits = {DataType.BIT: 1, DataType.I8: 8, DataType.F16: 16, DataType.F32: 32, DataType.I32: 32}
    return 0 if constant == NONE else bits[DataType(int(contents.constants[constant]["dtype"]))]


def _fits(declared: object, value: object) -> bool:
    """Whether a value of a JSON file has the type that a field declares."""
    if declared == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if declared == "tuple[int, ...]":
        return isinstance(value, list) and all(isinstance(item, int) for item in value)
    return isinstance(value, bool if declared == "bool" else str)
