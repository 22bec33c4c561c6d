"""Type inference: shape and element type of every value, and whether they fit together.

The rules cover source and engine operators alike; what only the file format forbids is checked by
``converter/engine_rules.py``.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import (
    AddTensor,
    AveragePool2D,
    BatchNorm,
    BinaryConv2D,
    BinaryDepthwiseConv2D,
    Concat,
    Conv2D,
    Dequantize,
    Divide,
    Elementwise,
    Epilogue,
    Graph,
    Input,
    MaxPool2D,
    MultiplyTensor,
    Node,
    Pad,
    PlaneSum,
    PRelu,
    Quantize,
    Reshape,
    ScaleBias,
    SelectChannels,
    Shape,
    Sign,
    Softmax,
    TensorType,
    Window,
)
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

BIT, U8, F32 = DataType.BIT, DataType.U8, DataType.F32
PlainOp = (
    Sign
    | Quantize
    | PlaneSum
    | Divide
    | Dequantize
    | BatchNorm
    | Concat
    | Pad
    | Reshape
    | SelectChannels
    | Softmax
)
"""Operators without an epilogue: they define one value, of whatever type."""

MAX_EXTENT: Final = 1 << 20
MAX_ELEMENTS: Final = 1 << 31


def infer(graph: Graph) -> dict[str, TensorType]:
    """Derives the type of every value from those of the graph's inputs.

    Args:
        graph: Graph whose ``types`` hold at least the inputs.

    Returns:
        The type of every value.

    Raises:
        ConversionError: A value is read before it is written or written twice, shapes do not fit,
            or parameters do not match their channels. The message names the node.
    """
    types: dict[str, TensorType] = {}
    for node in graph.nodes:
        missing = [name for name in node.inputs if name not in types]
        if missing:
            raise ConversionError(f"reads {missing[0]!r} before it is written", where=node.name)
        for name, kind in _node_types(graph, node, types).items():
            if name in types:
                raise ConversionError(f"value {name!r} is written twice", where=node.name)
            _check_extent(node, kind.shape)
            types[name] = kind
    for name in (*graph.inputs, *graph.outputs):
        if name not in types:
            raise ConversionError(f"graph input or output {name!r} is never written")
    return types


def _node_types(graph: Graph, node: Node, types: dict[str, TensorType]) -> dict[str, TensorType]:
    op = node.op
    operands = [types[name] for name in node.inputs]
    _check_arity(node)
    if isinstance(op, Input):
        name = node.outputs[0]
        if name not in graph.types:
            raise ConversionError(f"input {name!r} has no type", where=node.name)
        return {name: graph.types[name]}
    main = operands[0]
    if isinstance(op, PlainOp):
        if node.value is None or node.bits is not None:
            _fail(node, f"{type(op).__name__} defines exactly one value, its main one")
        return {node.value: _plain_type(node, op, operands)}
    shape = _main_shape(node, op, main)
    if isinstance(op, MaxPool2D) and main.dtype == BIT:
        if node.value is None or node.bits is not None or op.epilogue.steps:
            _fail(node, "max-pooling of bits defines its main value only and has no steps")
        return {node.value: TensorType(shape, BIT)}
    integer = isinstance(op, BinaryConv2D | BinaryDepthwiseConv2D) or (
        isinstance(op, Conv2D) and main.dtype == U8
    )
    return _epilogue_types(node, op.epilogue, shape, operands, integer)


def _check_arity(node: Node) -> None:
    if isinstance(node.op, Input):
        if node.inputs or len(node.outputs) != 1:
            _fail(node, "an Input reads nothing and defines one value")
        return
    least = 2 if isinstance(node.op, Concat) else 1
    if len(node.inputs) < least:
        _fail(node, "too few operands", expected=f"at least {least}", got=len(node.inputs))
    if not node.outputs:
        _fail(node, "defines no value")


def _plain_type(
    node: Node,
    op: PlainOp,
    operands: list[TensorType],
) -> TensorType:
    main = operands[0]
    height, width, channels = main.shape
    if isinstance(op, Sign):
        return TensorType(main.shape, BIT)
    if isinstance(op, Dequantize):
        if main.dtype != U8:
            _fail(node, "dequantizes a value that is not u8", got=main.dtype.name)
        _per_channel(node, channels, scale=op.scale, offset=op.offset)
        return TensorType(main.shape, F32)
    if isinstance(op, Quantize):
        _check_levels(node, op)
        return TensorType(main.shape, F32)
    if isinstance(op, PlaneSum):
        planes = (len(operands), channels)
        if op.scales.shape != planes:
            _fail(node, "scales have the wrong shape", expected=planes, got=op.scales.shape)
        _per_channel(node, channels, offset=op.offset)
        if any(operand != TensorType(main.shape, BIT) for operand in operands):
            _fail(node, "planes must be bits of one shape", got=operands)
        return TensorType(main.shape, F32)
    if isinstance(op, Divide):
        _per_channel(node, channels, divisor=op.divisor)
        if not np.all(op.divisor):
            _fail(node, "divides by zero")
        return TensorType(main.shape, F32)
    if isinstance(op, SelectChannels):
        if op.indices.ndim != 1 or not op.indices.size:
            _fail(node, "needs a list of channels", got=op.indices.shape)
        if op.indices.min() < -1 or op.indices.max() >= channels:
            _fail(node, "selects channels that do not exist", expected=f"-1..{channels - 1}")
        return TensorType((height, width, op.indices.size), F32)
    if isinstance(op, BatchNorm):
        _check_batch_norm(node, op, channels)
        return TensorType(main.shape, F32)
    if isinstance(op, Concat):
        for operand in operands:
            if operand.shape[:2] != (height, width):
                _fail(node, "operands differ in size", expected=main.shape, got=operand.shape)
        every_bit = all(operand.dtype == BIT for operand in operands)
        total = sum(operand.shape[2] for operand in operands)
        return TensorType((height, width, total), BIT if every_bit else F32)
    if isinstance(op, Pad):
        top, left, bottom, right = op.pads
        if min(op.pads) < 0:
            _fail(node, "negative padding", got=op.pads)
        stays_bit = main.dtype == BIT and op.value in (-1.0, 1.0)
        shape = (height + top + bottom, width + left + right, channels)
        return TensorType(shape, BIT if stays_bit else F32)
    if isinstance(op, Reshape):
        if int(np.prod(op.shape)) != height * width * channels or min(op.shape) < 1:
            _fail(node, "new shape has another element count", expected=main.shape, got=op.shape)
        return TensorType(op.shape, main.dtype)
    return TensorType(main.shape, F32)


def _check_levels(node: Node, op: Quantize) -> None:
    count = op.thresholds.size
    if op.thresholds.shape != (count,) or op.values.shape != (count + 1,) or not count:
        _fail(node, "a quantizer has one value more than thresholds", got=op.values.shape)
    if not np.all(np.diff(op.thresholds) > 0):
        _fail(node, "thresholds of a quantizer must ascend", got=op.thresholds)


def _check_batch_norm(node: Node, op: BatchNorm, channels: int) -> None:
    _per_channel(node, channels, gamma=op.gamma, beta=op.beta, mean=op.mean, variance=op.variance)
    spread = op.variance.astype(np.float32) + np.float32(op.epsilon)
    if not np.all(spread > 0):
        got = float(np.min(spread))
        _fail(node, "variance + epsilon must be positive", expected="> 0", got=got)


def _main_shape(
    node: Node,
    op: Conv2D | BinaryConv2D | BinaryDepthwiseConv2D | MaxPool2D | AveragePool2D | Elementwise,
    main: TensorType,
) -> Shape:
    if isinstance(op, Elementwise):
        return main.shape
    size = _window_size(node, op.window, main.shape)
    if isinstance(op, MaxPool2D | AveragePool2D):
        _check_pool_window(node, op.window, main.shape, size)
        flip = op.flip if isinstance(op, MaxPool2D) else None
        if flip is not None:
            if main.dtype != BIT:
                _fail(node, "a flip mask needs bits", got=main.dtype.name)
            _per_channel(node, main.shape[2], flip=flip)
        return (*size, main.shape[2])
    groups = main.shape[2] if isinstance(op, BinaryDepthwiseConv2D) else op.groups
    _check_weights(node, op, main, groups)
    return (*size, op.weights.shape[0])


def _check_weights(
    node: Node, op: Conv2D | BinaryConv2D | BinaryDepthwiseConv2D, main: TensorType, groups: int
) -> None:
    cout, channels = op.weights.shape[0], main.shape[2]
    if groups < 1 or channels % groups or cout % groups:
        got = f"groups={groups}, in_channels={channels}, out_channels={cout}"
        _fail(node, "groups must divide the input and output channels", got=got)
    expected = (cout, *op.window.kernel, channels // groups)
    if op.weights.shape != expected:
        _fail(node, "weights do not fit the input", expected=expected, got=op.weights.shape)
    if isinstance(op, BinaryDepthwiseConv2D) and cout != channels:
        _fail(node, "one filter a channel", expected=channels, got=cout)
    if not isinstance(op, Conv2D):
        if main.dtype != BIT:
            _fail(node, "a binary convolution reads bits", got=main.dtype.name)
        if op.pad_value not in (-1, 0, 1):
            _fail(node, "padding of bits", expected="-1, 0 or 1", got=op.pad_value)
    elif op.bias is not None:
        _per_channel(node, cout, bias=op.bias)


def _window_size(node: Node, window: Window, shape: Shape) -> tuple[int, int]:
    if min((*window.kernel, *window.strides, *window.dilation)) < 1 or min(window.pads) < 0:
        _fail(node, "kernel, strides and dilation must be >= 1, padding >= 0", got=window)
    size = window.output_size(shape[0], shape[1])
    if min(size) < 1:
        _fail(node, "the window is larger than the padded map", expected=window, got=shape)
    if max(size) > MAX_EXTENT:  # checked here, before anything of this length is computed with
        _fail(node, "output too large", expected=f"<= {MAX_EXTENT} a side", got=size)
    return size


def _check_pool_window(node: Node, window: Window, shape: Shape, size: tuple[int, int]) -> None:
    """Every window must see at least one pixel: an empty maximum or mean means nothing."""
    for axis in range(2):
        dilation = window.dilation[axis]
        start = np.arange(size[axis], dtype=np.int64) * window.strides[axis] - window.pads[axis]
        first = np.maximum(0, -(start // dilation))  # the first tap at or behind the map's edge
        if not np.all((first < window.kernel[axis]) & (start + first * dilation < shape[axis])):
            _fail(node, "a pooling window lies wholly in the padding", expected=shape, got=window)


def _epilogue_types(
    node: Node, epilogue: Epilogue, shape: Shape, operands: list[TensorType], integer: bool
) -> dict[str, TensorType]:
    for step in epilogue.steps:
        if isinstance(step, ScaleBias):
            _per_channel(node, shape[2], scale=step.scale, bias=step.bias)
        elif isinstance(step, PRelu):
            if step.slope.size != int(np.prod(shape)):
                _per_channel(node, shape[2], slope=step.slope)
            if step.positive is not None and step.positive.shape != step.slope.shape:
                got = step.positive.shape
                _fail(node, "slopes differ in shape", expected=step.slope.shape, got=got)
        elif isinstance(step, AddTensor | MultiplyTensor):
            if not 0 <= step.operand < len(operands):
                _fail(node, "step refers to a missing operand", got=step.operand)
            other = operands[step.operand].shape
            if other not in (shape, (1, 1, shape[2])):
                expected = f"{shape} or {(1, 1, shape[2])}"
                _fail(node, "second operand does not fit", expected=expected, got=other)
    threshold = epilogue.threshold
    if (threshold is None) != (node.bits is None):
        _fail(node, "bits and threshold come together")
    result: dict[str, TensorType] = {}
    if node.value is not None:
        result[node.value] = TensorType(shape, F32)
    if node.bits is not None and threshold is not None:
        _per_channel(node, shape[2], threshold=threshold)
        if threshold.dtype == np.int32 and (
            node.value is not None or epilogue.steps or not integer
        ):
            _fail(node, "an integer threshold needs a bare integer accumulator")
        if threshold.dtype not in (np.int32, np.float32):
            _fail(node, "threshold type", expected="int32 or float32", got=threshold.dtype)
        result[node.bits] = TensorType(shape, BIT)
    return result


def _per_channel(node: Node, channels: int, **arrays: NDArray[Any]) -> None:
    for name, array in arrays.items():
        if array.shape != (channels,):
            _fail(node, f"{name} has the wrong shape", expected=(channels,), got=array.shape)


def _check_extent(node: Node, shape: Shape) -> None:
    if (
        not all(1 <= extent <= MAX_EXTENT for extent in shape)
        or np.prod(shape, dtype=np.int64) > MAX_ELEMENTS
    ):
        _fail(node, "tensor too large", expected="1..2^20 a side, 2^31 elements", got=shape)


def _fail(node: Node, what: str, *, expected: object = None, got: object = None) -> NoReturn:
    raise ConversionError(what, where=node.name, expected=expected, got=got)
