"""How much boxes overlap, and which of several on one thing stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def intersection_over_union(box: Values, boxes: Values) -> Values:
    """Area that a box shares with others, over the area that the two cover.

    Args:
        box: (4,): left, top, right, bottom.
        boxes: (N, 4).

    Returns:
        (N,), 0..1; 0 where both are empty.
    """
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    shared = np.prod(np.maximum(sides, 0), axis=1)
    union = area(box) + area(boxes) - shared
    return np.asarray(np.divide(shared, union, out=np.zeros(len(boxes)), where=union > 0))


def area(boxes: Values) -> Values:
    """Of boxes (..., 4)."""
    return np.asarray(np.prod(np.maximum(boxes[..., 2:] - boxes[..., :2], 0), axis=-1))


def suppress(boxes: Values, scores: Values, limit: float) -> NDArray[np.intp]:
    """Greedy non-maximum suppression of one class.

    The best box stays, those that overlap it by more than ``limit`` go; then the best of the rest.
    Of equal scores the first counts as better.

    Args:
        boxes: (N, 4).
        scores: (N,).
        limit: intersection over union, 0..1.

    Returns:
        Indices of the boxes that stay, best first.
    """
    waiting = np.argsort(-scores, kind="stable")
    kept = []
    while waiting.size:
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        waiting = waiting[intersection_over_union(boxes[best], boxes[waiting]) <= limit]
    return np.array(kept, np.intp)
