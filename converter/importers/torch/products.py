"""Sums of products: matrix products of two tensors, einsum and attention.

Each axis has a label, as in einsum. An axis of both operands is summed over or, if the result has
it, too, one whose places are multiplied each by itself: a group. All others are pixels of the first
operand, or of the second. With those of one kind side by side this is MatMul's form, or that of a
grouped convolution where one operand is a constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import (
    ZERO,
    Indices,
    UnsupportedError,
    View,
    distance,
)
from phonebit.converter.importers.torch.emission import float_array
from phonebit.converter.importers.torch.layers import linear, softmax_along, weighted
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.pointwise import affine
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.ops.matmul import MatMul

Labels = tuple[Any, ...]
MASKED: Final = np.float32(-1e30)
"""In place of minus infinity: softmax makes exactly 0 of it, too."""


@dataclass
class _Operand:
    """A tensor or a constant with a label for each axis; the batch has none."""

    source: Call
    array: NDArray[Any]
    labels: Labels
    view: View | None = None

    def sizes(self) -> dict[Any, int]:
        return dict(zip(self.labels, self.array.shape, strict=True))

    def without(self, dropped: set[Any]) -> _Operand:
        """Without axes of size 1 that others have longer."""
        kept = tuple(label for label in self.labels if label not in dropped)
        sizes = self.sizes()
        return replace(self, array=self.array.reshape([sizes[k] for k in kept]), labels=kept)

    def arranged(self, *kinds: Labels) -> NDArray[Any]:
        """With one axis for all labels of each kind."""
        order = [self.labels.index(label) for kind in kinds for label in kind]
        sizes = self.sizes()
        shape = [math.prod(sizes[label] for label in kind) for kind in kinds]
        return self.array.transpose(order).reshape(shape)


def matmul(context: Context, call: Call) -> Value:
    """matmul, bmm and mm; a constant second factor of two axes makes a linear layer."""
    first, second = call["self"], call["mat2"] or call["other"]
    if second.constant and len(second.shape) == 2:
        return linear(context, call)
    names, ranks = count(), (len(first.shape), len(second.shape))
    lead = [next(names) for _ in range(max(*ranks, 2) - 2)]
    row, inner, column = (next(names) for _ in range(3))
    one = (*lead[len(lead) - ranks[0] + 2 :], row, inner) if ranks[0] > 1 else (inner,)
    other = (*lead[len(lead) - ranks[1] + 2 :], inner, column) if ranks[1] > 1 else (inner,)
    result = (*lead, *[row] * (ranks[0] > 1), *[column] * (ranks[1] > 1))
    return _product(context, call, (first, one), (second, other), result)


def einsum(context: Context, call: Call) -> Value:
    """Of one or two operands.

    Raises:
        UnsupportedError: It has more, a diagonal, or an ellipsis.
    """
    equation, operands = str(call["equation"]).replace(" ", ""), list(call["tensors"])
    terms, arrow, result = equation.partition("->")
    labels = terms.split(",")
    if not arrow:
        once = [label for label in terms if label.isalpha() and terms.count(label) == 1]
        result = "".join(sorted(once))
    if "." in equation or any(len(set(term)) < len(term) for term in labels):
        raise UnsupportedError(f"{equation!r} has an ellipsis or a diagonal")
    if len(operands) == 1 and set(labels[0]) == set(result):
        view = context.real(context.operand(operands[0]))
        moved = view.indices.transpose([labels[0].index(label) for label in result])
        return context.viewed(call, replace(view, indices=moved))
    if len(operands) != 2:
        raise UnsupportedError(f"{equation!r} is no product of two tensors")
    first, second = zip(operands, map(tuple, labels), strict=True)
    return _product(context, call, first, second, tuple(result))


def attention(context: Context, call: Call) -> Value:
    """scaled_dot_product_attention: softmax(scale q k^T + mask) v.

    Raises:
        UnsupportedError: Its mask depends on an input.
    """
    name = context.emission.name(call)
    query, key, value = (_operand(context, call[part]) for part in ("query", "key", "value"))
    lead = tuple(range(query.array.ndim - 2))
    assert query.view is not None
    scale = call["scale"] or 1 / math.sqrt(query.array.shape[-1])
    number = np.full(1, scale, np.float32)
    scaled = affine(context, query.view, number, number * 0, f"{name}/scaled")
    query = replace(query, array=scaled.sample(), view=scaled, labels=(*lead, "m", "k"))
    key = replace(key, labels=(*lead, "n", "k"))
    value = replace(value, labels=(*lead, "n", "d"))
    scores = _contracted(context, query, key, (*lead, "m", "n"), f"{name}/scores")
    mask = _mask(context, call, scores.sample().shape[-2:])
    if mask is not None:
        one = np.ones(1, np.float32)
        scores = affine(context, scores, one, mask, f"{name}/masked")
    shares = softmax_along(context, scores, scores.indices.ndim - 1, False, f"{name}/softmax")
    weights = _Operand(call, shares.sample(), (*lead, "m", "n"), shares)
    result = _contracted(context, weights, value, (*lead, "m", "d"), name)
    return _viewed(context, call, result)


def _mask(context: Context, call: Call, shape: tuple[int, ...]) -> NDArray[Any] | None:
    if call["is_causal"]:
        return np.where(np.tri(*shape, dtype=np.bool_), np.float32(0), MASKED)
    if call["attn_mask"] is None:
        return None
    mask = context.constant(call["attn_mask"], "mask")
    if mask.dtype == np.bool_:
        return np.where(mask, np.float32(0), MASKED)
    return np.maximum(float_array(mask), MASKED)


def _operand(context: Context, argument: Call) -> _Operand:
    """Without its batch, and without labels."""
    if argument.constant:
        return _Operand(argument, float_array(context.constants.value(argument)), ())
    view = context.real(context.operand(argument))
    return _Operand(argument, view.sample(), (), view)


def _product(
    context: Context,
    call: Call,
    first: tuple[Call, Labels],
    second: tuple[Call, Labels],
    out: Labels,
) -> Value:
    operands, batches = [], set()
    for argument, labels in (first, second):
        operand = _operand(context, argument)
        lost = len(labels) - operand.array.ndim
        if operand.view is not None and lost:
            batches.add(labels[0])
        operands.append(replace(operand, labels=labels[lost:] if operand.view else labels))
    inner = tuple(label for label in out if label not in batches)
    if context.batch > 1 and (len(batches) != 1 or out[:1] != tuple(batches)):
        raise UnsupportedError("mixes the images of a batch")
    ones = [{k for k, n in operand.sizes().items() if n == 1} for operand in operands]
    # A size of 1 meets any other; a constant may have the batch's axis, of size 1.
    shared = set(operands[0].labels) & set(operands[1].labels)
    longer = {k for operand in operands for k, n in operand.sizes().items() if n > 1}
    parts = [
        operand.without(one & ((shared & longer) | batches))
        for operand, one in zip(operands, ones, strict=True)
    ]
    result = _contracted(context, parts[0], parts[1], inner, context.emission.name(call))
    return _viewed(context, call, result)


def _viewed(context: Context, call: Call, view: View) -> Value:
    return context.viewed(call, replace(view, indices=view.indices.reshape(call.shape)))


def _contracted(context: Context, a: _Operand, b: _Operand, out: Labels, name: str) -> View:
    """A view of the result, its batch first and then the axes of ``out``.

    Raises:
        UnsupportedError: An axis is summed over that only one operand has, or a constant does not
            fit.
    """
    if a.view is None:
        a, b = b, a
    shared = [label for label in a.labels if label in b.labels]
    groups = tuple(label for label in shared if label in out)
    summed = tuple(label for label in shared if label not in out)
    rows = tuple(label for label in a.labels if label not in shared)
    columns = tuple(label for label in b.labels if label not in shared)
    if set(rows + columns) - set(out) or a.view is None:
        raise UnsupportedError("sums over an axis of one operand alone")
    sizes = {**b.sizes(), **a.sizes()}
    pixels = math.prod(sizes[label] for label in rows)
    channels = math.prod(sizes[label] for label in groups + columns)
    count = math.prod(sizes[label] for label in groups)
    left = _map(context, a, (rows, groups + summed), f"{name}/first")
    hwc = (1, pixels, channels)
    if b.view is None:
        kernel = b.arranged(groups + columns, summed)[:, None, None, :]
        layer = Conv2D(np.ascontiguousarray(kernel, np.float32), Window((1, 1)), count)
        value = weighted(context, layer, left, b.source, name)
    else:
        quantized = a.view.quantized and b.view.quantized
        transposed = quantized or _is_transposed(b, summed, columns)
        kinds = (columns, groups + summed) if transposed else (summed, groups + columns)
        right = _map(context, b, kinds, f"{name}/second")
        op = MatMul(count, transposed)
        value = context.emission.emit(op, [left.value, right.value], hwc, name)
    order = rows + groups + columns
    places = np.arange(pixels * channels).reshape([sizes[label] for label in order])
    missing = [label for label in out if label not in order]
    sample = places.transpose([order.index(label) for label in out if label in order])
    sample = np.expand_dims(sample, tuple(out.index(label) for label in missing))
    return _of_batch(context, value, hwc, sample)


def _map(context: Context, operand: _Operand, kinds: tuple[Labels, Labels], name: str) -> View:
    """A map of one row whose columns and channels are those of two kinds of labels."""
    assert operand.view is not None
    sample = operand.arranged(*kinds)
    hwc, batch = operand.view.hwc, context.batch
    moved = _of_batch(context, operand.view.value, hwc, sample)
    if batch == 1 and sample.shape[0] != 1:
        moved = replace(moved, indices=moved.indices[0])
    moved = replace(moved, quantized=operand.view.quantized)
    return relayout(context.emission, moved, "channels_last", name)


def _of_batch(context: Context, value: str, hwc: tuple[int, int, int], sample: Indices) -> View:
    images = np.arange(context.batch).reshape(-1, *(1,) * sample.ndim) * math.prod(hwc)
    indices = np.where(sample == ZERO, ZERO, sample + images)
    return View(value, hwc, indices, context.batch)


def _is_transposed(b: _Operand, summed: Labels, columns: Labels) -> bool:
    """Whether what is summed over lies closer together than what is not."""
    return _step(b, summed) < _step(b, columns)


def _step(b: _Operand, labels: Labels) -> float:
    steps = (distance(b.array, b.labels.index(label)) for label in labels)
    return min(filter(None, steps), default=math.inf)


PRODUCTS: Final = {
    **dict.fromkeys(("matmul", "mm", "bmm"), matmul),
    "einsum": einsum,
    "scaled_dot_product_attention": attention,
}
"""Rules by the names of PyTorch's operators."""
