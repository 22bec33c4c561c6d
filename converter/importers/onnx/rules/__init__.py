"""What each operator of ONNX is in ATen's terms: a function that makes the calls of one node."""

from __future__ import annotations

from typing import Final

from phonebit.converter.importers.onnx.node_reader import Rule
from phonebit.converter.importers.onnx.nodes import is_of_quantizers
from phonebit.converter.importers.onnx.rules.activations import ACTIVATIONS
from phonebit.converter.importers.onnx.rules.elementwise import ELEMENTWISE
from phonebit.converter.importers.onnx.rules.layers import LAYERS
from phonebit.converter.importers.onnx.rules.moving import MOVING
from phonebit.converter.importers.onnx.rules.normalising import NORMALISING
from phonebit.converter.importers.onnx.rules.pooling import POOLING
from phonebit.converter.importers.onnx.rules.quantizers import QDQ, QUANTIZERS
from phonebit.converter.importers.onnx.rules.recurrent import RECURRENT
from phonebit.converter.importers.onnx.rules.resizing import RESIZING
from phonebit.converter.importers.onnx.rules.shapes import SHAPES

STANDARD: Final[dict[str, Rule]] = {
    **ELEMENTWISE,
    **ACTIVATIONS,
    **LAYERS,
    **RECURRENT,
    **POOLING,
    **NORMALISING,
    **MOVING,
    **RESIZING,
    **SHAPES,
    **QDQ,
}


def rule_of(domain: str, op: str) -> Rule | None:
    """The rule for an operator, if there is one.

    Some files have quantizers in ONNX's own domain, which has no operators of these names.
    """
    if is_of_quantizers(domain):
        return QUANTIZERS.get(op)
    return STANDARD.get(op, QUANTIZERS.get(op)) if domain == "" else None
