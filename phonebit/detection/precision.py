"""Mean average precision, the usual measure of a detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.detection.overlap import intersection_over_union

Values = NDArray[np.float64]
Found = Sequence[tuple[int, float, Values]]
"""(class, score, box) of one image, as ``find_boxes`` gives them."""


@dataclass(frozen=True)
class Truth:
    """What is in one image.

    Attributes:
        classes: (N,) integers.
        boxes: (N, 4): left, top, right, bottom in the unit of the found boxes.
    """

    classes: NDArray[np.integer]
    boxes: Values


def mean_average_precision(
    found: Sequence[Found], truths: Sequence[Truth], classes: int, overlap: float = 0.5
) -> tuple[float, list[float]]:
    """As PASCAL VOC has measured it since 2010: all points of the curve, nothing marked difficult.

    For each class the boxes of all images are taken in the order of their scores. One is right if
    the true box of its class that it overlaps most is overlapped by at least ``overlap`` and was
    not found before. Precision at each place is the share of right ones so far, recall the share
    of true boxes found; precision is made monotone from the right and summed over recall.

    Args:
        found: what was found, one entry an image.
        truths: what is there, in the same order.
        classes: how many.
        overlap: least intersection over union.

    Returns:
        The mean over the classes that occur, and each class's value (NaN if it does not occur).

    Source: Everingham et al., The PASCAL VOC Challenge (IJCV 2015), section 3.4.1.
    """
    precisions = [_average_precision(found, truths, index, overlap) for index in range(classes)]
    occurring = [value for value in precisions if not np.isnan(value)]
    return (float(np.mean(occurring)) if occurring else float("nan")), precisions


def _average_precision(
    found: Sequence[Found], truths: Sequence[Truth], index: int, overlap: float
) -> float:
    true_boxes = [truth.boxes[truth.classes == index] for truth in truths]
    total = sum(map(len, true_boxes))
    if total == 0:
        return float("nan")
    taken = [np.zeros(len(boxes), bool) for boxes in true_boxes]
    ranked = sorted(
        (
            (score, image, box)
            for image, items in enumerate(found)
            for kind, score, box in items
            if kind == index
        ),
        key=lambda item: -item[0],
    )
    right = np.zeros(len(ranked), bool)
    for place, (_, image, box) in enumerate(ranked):
        overlaps = intersection_over_union(box, true_boxes[image])
        best = int(overlaps.argmax()) if overlaps.size else -1
        if best >= 0 and overlaps[best] >= overlap and not taken[image][best]:
            taken[image][best] = right[place] = True
    return area_under_curve(right, total)


def area_under_curve(right: NDArray[np.bool_], total: int) -> float:
    """Area under the monotone precision-recall curve.

    Args:
        right: whether each found box is right, best score first.
        total: true boxes.
    """
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float(precision[right].sum() / total)
