"""What it takes to compute a constant: operations and bytes, from shapes alone."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from phonebit.budget import Kind, spend
from phonebit.converter.importers.torch.calls import FLOATS, Call

VIEWS: Final = frozenset({"literal", "expand", "permute", "transpose", "t", "getitem"})
"""Calls whose results are other views of their operands' memory, or made already."""
FACTORS: Final = {
    "matmul": "self",
    "mm": "self",
    "bmm": "self",
    "linear": "input",
    "addmm": "mat1",
    "baddbmm": "batch1",
}
"""The operand whose last axis is summed over."""
BLAS: Final = 16
"""Products of floats that a library of matrix products computes while one other is computed."""

SLOW: Final = {"erf": 32, "gelu": 32, "mish": 4, "softplus": 4, "remainder": 4, "fmod": 4}
"""Operations that an element of these counts for; NumPy has no erf, so Python computes it."""


def spend_for(call: Call) -> None:
    """Counts what evaluating a constant takes.

    Raises:
        ConversionError: It is too much.
    """
    if call.op in VIEWS:
        return
    spend(Kind.OPERATIONS, operations_of(call), call.name)
    spend(Kind.BYTES, math.prod(call.shape) * _item_size(call.dtype), call.name)


def operations_of(call: Call) -> int:
    """Numbers that are read or multiplied, at most; what BLAS multiplies counts for less."""
    size = math.prod(call.shape)
    if call.op == "einsum":
        return _einsum_operations(call)
    if call.op in FACTORS:
        first = call[FACTORS[call.op]]
        products = size * first.shape[-1] if first.shape else size
        return products // BLAS if first.dtype in FLOATS else products
    weight, kernel = call["weight"], call["kernel_size"]
    if "conv" in call.op and isinstance(weight, Call):
        read = math.prod(call["input"].shape) if isinstance(call["input"], Call) else 0
        return max(size, read) * math.prod(weight.shape[1:])
    if kernel is not None:
        taps = [int(tap) for tap in np.atleast_1d(kernel)]
        return size * (math.prod(taps) if len(taps) > 1 else taps[0] ** 2)
    largest = max((math.prod(operand.shape) for operand in call.operands()), default=0)
    return (largest + size) * SLOW.get(call.op, 1)


def _einsum_operations(call: Call) -> int:
    """Every combination of the labels' positions."""
    terms = str(call["equation"]).replace(" ", "").partition("->")[0].split(",")
    sizes: dict[Any, int] = {}
    for term, tensor in zip(terms, call["tensors"], strict=False):
        labels = [*term] if len(term) == len(tensor.shape) else range(len(tensor.shape))
        for label, size in zip(labels, tensor.shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return math.prod(sizes.values())


def _item_size(dtype: str | None) -> int:
    try:
        return np.dtype(dtype).itemsize if dtype else 0
    except TypeError:  # bfloat16 and other types that NumPy lacks become float32
        return 4
