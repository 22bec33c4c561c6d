"""Quantizers of many evenly spaced levels, as arithmetic.

Bit-planes pay for a few levels; an 8-bit input quantizer has 256, and is rounded as it was
trained.
"""

from __future__ import annotations

from typing import Final

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import View
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.piecewise_functions import Pieces
from phonebit.converter.importers.torch.pointwise import whole, write_step
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.passes.uniform_steps import uniform_steps

MANY_THRESHOLDS: Final = 16
"""From here on a quantizer is computed, not compared."""


def write_uniform(context: Context, call: Call, root: Value, pieces: Pieces) -> View | None:
    """Writes a quantizer of a tensor as arithmetic.

    Args:
        context: Receives the nodes.
        call: What the last of them is called after.
        root: What is rounded.
        pieces: The quantizer.

    Returns:
        None if it has not evenly spaced levels.
    """
    levels = pieces.levels()
    if levels is None or not pieces.thresholds.size:
        return None
    name = context.emission.inner_name(call, "quantize")
    view = whole(context, context.real(root), name)
    steps = uniform_steps(pieces.thresholds, float_array(levels), view.hwc[2])
    for step in (steps or [])[:-1]:
        view = write_step(context, view, step, f"{name}/step")
    return None if steps is None else write_step(context, view, steps[-1], name)
