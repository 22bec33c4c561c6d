"""Embeddings: rows of a table, by numbers that an input or a layer gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, plain_view
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D, Elementwise
from phonebit.converter.ops.epilogue import Clamp, Epilogue, EpilogueOp, PRelu, ScaleBias

MAX_ROWS: Final = 1 << 15


def embedding(context: Context, call: Call) -> Value:
    """embedding: a row is the product of the table with 1 - |x - row|, limited to 0 and 1.

    Raises:
        UnsupportedError: The table is too long, or its numbers are no whole ones.
    """
    name, emit = context.emission.name(call), context.emission.emit
    table = float_array(context.constant(call["weight"], "table"))
    source = call["indices"]
    if len(table) > MAX_ROWS or not str(source.dtype).startswith("int"):
        raise UnsupportedError(
            f"has a table of {len(table)} rows for numbers of type {source.dtype}; expected at "
            f"most {MAX_ROWS} and whole numbers"
        )
    view = context.real(context.operand(source))
    count = int(np.prod(source.shape)) // context.batch
    view = replace(view, indices=view.indices.reshape(context.batch, count, 1))
    view = relayout(context.emission, view, "channels_last", name)
    rows, hwc = len(table), (1, count, len(table))
    one = np.ones(rows, np.float32)
    numbers = Conv2D(
        one[:, None, None, None], Window((1, 1)), bias=-np.arange(rows, dtype=np.float32)
    )
    value = emit(numbers, [view.value], hwc, f"{name}/distance")
    steps: list[EpilogueOp] = [PRelu(-one), ScaleBias(-one, one), Clamp(0.0, 1.0)]
    for step in steps:
        value = emit(Elementwise(Epilogue([step])), [value], hwc, f"{name}/is_row")
    weights = np.ascontiguousarray(table.T[:, None, None, :])
    value = emit(Conv2D(weights, Window((1, 1))), [value], (1, count, table.shape[1]), name)
    shape = (context.batch, count, table.shape[1])
    result = plain_view(value, shape, context.batch, "channels_last")
    return context.viewed(call, replace(result, indices=result.indices.reshape(call.shape)))


LOOKUPS: Final[dict[str, Any]] = {"embedding": embedding}
"""Rules by the names of PyTorch's operators."""
