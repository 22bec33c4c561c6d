"""Convolutions in ONNX's terms: the transposed ones, and those of three axes."""

from __future__ import annotations

from functools import partial
from typing import Final

from phonebit.converter.importers.keras.convolutions import (
    bias_of,
    kernel_of,
    note_quantizers,
    pad_value,
    quantized_input,
    same_padding,
)
from phonebit.converter.importers.keras.graph import (
    LayerContext,
    Tensor,
    UnsupportedError,
    integers,
)
from phonebit.converter.importers.keras.pointwise import activate, is_linear
from phonebit.converter.importers.keras.shared import Layer, Rule, by_calls, needs_map
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.ops import Conv2D

MOVING: Final = ("/output/", "/slices/")
"""In the names of nodes that only move elements before a convolution or after it."""


def conv_transpose(axes: int, ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Conv1DTranspose, Conv2DTranspose and Larq's."""
    return _in_shared_terms(ctx, inputs, partial(_transposed, axes))


def conv3d(ctx: LayerContext, inputs: list[Tensor]) -> Tensor:
    """Conv3D and Larq's."""
    return _in_shared_terms(ctx, inputs, _depth)


def _in_shared_terms(ctx: LayerContext, inputs: list[Tensor], rule: Rule) -> Tensor:
    """A convolution that a rule makes from the quantized input, then the layer's activation."""
    x = quantized_input(ctx, inputs)
    value, first = ctx.config.get("activation"), len(ctx.graph.nodes)
    (result,) = by_calls(rule, ctx, [x], inner="" if is_linear(value) else "preactivation")
    for node in ctx.graph.nodes[first:]:
        if isinstance(node.op, Conv2D) and not any(part in node.name for part in MOVING):
            note_quantizers(ctx, "kernel_quantizer", node.name)
    return result if is_linear(value) else activate(ctx, result, value, "activation")


def _transposed(axes: int, layer: Layer) -> Call:
    """The gradient of a convolution: TensorFlow's rule of padding holds for its result."""
    call, config = needs_map(layer, axes), layer.config
    kernel, strides, dilation = (
        integers(config, key, axes) for key in ("kernel_size", "strides", "dilation_rate")
    )
    more = config.get("output_padding")
    extra = None if more is None else integers(config, "output_padding", axes, minimum=0)
    begins, ends, after = [], [], []
    for axis, (size, taps, stride) in enumerate(zip(call.shape[1:], kernel, strides, strict=False)):
        span = (taps - 1) * dilation[axis] + 1
        same = config.get("padding", "valid") == "same"
        if extra is None:
            result = size * stride + (0 if same else max(span - stride, 0))
        else:
            result = (size - 1) * stride + span - 2 * (span // 2 if same else 0) + extra[axis]
        begin = same_padding(result, span, stride)[0] if same else 0
        rest = result - ((size - 1) * stride + span - begin)
        begins.append(begin)
        ends.append(max(0, -rest))
        after.append(max(0, rest))
    (filters,) = integers(config, "filters", 1, 0)
    shape = (*kernel, filters, call.shape[-1])
    weights = kernel_of(layer.context, "kernel", shape, "kernel_quantizer")
    weights = weights.transpose(axes + 1, axes, *range(axes))
    options = {"strides": strides, "dilations": dilation, "output_padding": after}
    bias = bias_of(layer.context, filters)
    moved, pads = layer.front(call), [*begins, *ends]
    return layer.back(layer.onnx("ConvTranspose", moved, weights, bias, pads=pads, **options))


def _depth(layer: Layer) -> Call:
    """Three axes; what is padded on one side only is padded in front of the layer."""
    call, config = needs_map(layer, 3), layer.config
    kernel, strides, dilation = (
        integers(config, key, 3) for key in ("kernel_size", "strides", "dilation_rate")
    )
    if config.get("padding") not in ("same", "valid") or pad_value(layer.context):
        raise UnsupportedError(f"padding={config.get('padding')!r} with other values than 0")
    pads = [(0, 0)] * 3
    if config["padding"] == "same":
        axes = zip(call.shape[1:4], kernel, strides, dilation, strict=True)
        pads = [same_padding(*axis) for axis in axes]
    moved = layer.front(call)
    if any(before != after for before, after in pads):
        around = [(0, 0), (0, 0), *pads]
        moved = layer.onnx(
            "Pad", moved, pads=[n for side in (0, 1) for n in (p[side] for p in around)]
        )
        pads = [(0, 0)] * 3
    (filters,), (groups,) = integers(config, "filters", 1, 0), integers(config, "groups", 1, 1)
    shape = (*kernel, call.shape[-1] // groups, filters)
    weights = kernel_of(layer.context, "kernel", shape, "kernel_quantizer").transpose(4, 3, 0, 1, 2)
    sides = [*(pad[0] for pad in pads), *(pad[1] for pad in pads)]
    options = {"strides": strides, "dilations": dilation, "pads": sides, "group": groups}
    bias = bias_of(layer.context, filters)
    return layer.back(layer.onnx("Conv", moved, weights, bias, **options))
