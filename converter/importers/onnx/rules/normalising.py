"""Normalisation by the statistics of each image, in front of which ATen's operators stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary
from phonebit.converter.importers.onnx.rules.pooling import reduced
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError


def _normalised(builder: Builder, node: Node, op: str, **more: Any) -> Call:
    call, weight, bias = node.operand(0), node.input(1), node.input(2)
    arguments = {"input": call, "weight": weight, "bias": bias, "eps": node.get("epsilon", 1e-5)}
    return builder.emit(op, {**arguments, **more}, None, call.shape)


def layer(builder: Builder, node: Node) -> Call:
    """LayerNormalization, whose statistics nothing may read."""
    shape, axis = node.operand(0).shape, int(node.get("axis", -1))
    if not -len(shape) <= axis < len(shape) or len([o for o in node.outputs if o]) > 1:
        raise UnsupportedError(f"normalises from axis {axis} of {shape} on, or has more outputs")
    sizes = list(shape[axis:])
    for constant in (node.input(1), node.input(2)):
        if constant is not None and math.prod(constant.shape) != math.prod(sizes):
            raise UnsupportedError(f"has a scale of shape {constant.shape} for {sizes}")
    return _normalised(builder, node, "layer_norm", normalized_shape=sizes)


def instance(builder: Builder, node: Node) -> Call:
    """InstanceNormalization."""
    return _normalised(builder, node, "instance_norm", use_input_stats=True)


def group(builder: Builder, node: Node) -> Call:
    """GroupNormalization with a scale for each channel, as from opset 21 on."""
    channels, groups = node.operand(0).shape[1], int(node.get("num_groups", 1))
    scale = node.operand(1).shape
    if scale != (channels,) or groups < 1 or channels % groups:
        raise UnsupportedError(
            f"has {groups} groups of {channels} channels and a scale of shape {scale}"
        )
    return _normalised(builder, node, "group_norm", num_groups=groups)


def length(builder: Builder, node: Node) -> Call:
    """LpNormalization: division by a norm."""
    call, order = node.operand(0), f"norm{node.get('p', 2)}"
    return binary(builder, "div", call, reduced(builder, call, order, [node.get("axis", -1)], True))


NORMALISING: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    "LayerNormalization": layer,
    "InstanceNormalization": instance,
    "GroupNormalization": group,
    "LpNormalization": length,
}
