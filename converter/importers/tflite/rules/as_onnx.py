"""ONNX's operators for TensorFlow Lite's, which have maps (N, H, W, C) and fused activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules import STANDARD
from phonebit.converter.importers.onnx.rules.elementwise import clamp
from phonebit.converter.importers.onnx.rules.moving import permuted
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

PADDINGS: Final = {0: "SAME_UPPER", 1: "VALID"}
RANGES: Final[dict[int, tuple[float | None, float | None]]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""What fused activations limit a result to, by their numbers in the file."""
TO_FRONT: Final = (0, 3, 1, 2)
TO_BACK: Final = (0, 2, 3, 1)


def standard(
    builder: Builder, node: Node, op: str, inputs: Sequence[Call | None], **attributes: Any
) -> Call:
    """The first result of ONNX's operator of this name."""
    changed = replace(node, op=op, version=13, inputs=list(inputs), attributes=attributes)
    made: Any = STANDARD[op](builder, changed)
    return made if isinstance(made, Call) else made[0]


def on_map(
    builder: Builder, node: Node, op: str, inputs: Sequence[Call | None], **attributes: Any
) -> Call:
    """The same of an operator whose first operand and result are maps (N, C, H, W)."""
    first, *others = inputs
    if first is None or len(first.shape) != 4:
        raise UnsupportedError(f"reads {first and first.shape}; expected (N, H, W, C)")
    front = permuted(builder, first, TO_FRONT)
    made = standard(builder, node, op, [front, *others], **attributes)
    return permuted(builder, made, TO_BACK)


def window_options(node: Node) -> dict[str, Any]:
    """Strides, dilations and padding as ONNX calls them."""
    padding = PADDINGS.get(node.get("Padding", -1))
    if padding is None:
        raise UnsupportedError(f"has the padding {node.get('Padding')}")
    names = [("StrideH", "StrideW"), ("DilationHFactor", "DilationWFactor")]
    strides, dilations = ([node.get(name, 1) for name in pair] for pair in names)
    return {"auto_pad": padding, "strides": strides, "dilations": dilations}


def limited(builder: Builder, call: Call, activation: int) -> Call:
    """A result with a fused activation, by its number in the file."""
    if activation not in RANGES:
        raise UnsupportedError(f"has the fused activation {activation}")
    return clamp(builder, call, *RANGES[activation]) if activation else call


def activated(builder: Builder, node: Node, call: Call) -> Call:
    """A result with the activation that its node says."""
    return limited(builder, call, node.get("FusedActivationFunction", 0))
