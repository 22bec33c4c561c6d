"""Questions that every writer asks of a source graph's operators."""

from __future__ import annotations

from phonebit.converter.importers.keras.convolutions import same_padding
from phonebit.converter.ir import Node, Shape, Window
from phonebit.converter.ops import Conv2D, Elementwise
from phonebit.converter.ops.epilogue import EpilogueOp
from phonebit.errors import ConversionError


def covers_map(op: Conv2D, shape: Shape) -> bool:
    """Whether a convolution is a dense layer: one window over the whole map."""
    return op.window.kernel == shape[:2] and not any(op.window.pads) and op.groups == 1


def single_step(op: Elementwise) -> EpilogueOp:
    """The step of a source graph's elementwise operator; each has one."""
    (step,) = op.epilogue.steps
    return step


def unsupported(node: Node, form: str, got: object) -> ConversionError:
    """The error of a writer that meets an operator, or a setting of it, that it cannot express."""
    return ConversionError(
        f"no {form} form of this layer",
        where=node.name,
        got=got if isinstance(got, str) else type(got).__name__,
        hint="add it to the writer in benchmarks/peers/formats/",
    )


def same_pads(window: Window, height: int, width: int) -> tuple[int, int, int, int]:
    """What TensorFlow's padding "same" adds to a map: (top, left, bottom, right)."""
    sides = zip((height, width), window.kernel, window.strides, window.dilation, strict=True)
    (top, bottom), (left, right) = (same_padding(*side) for side in sides)
    return top, left, bottom, right
