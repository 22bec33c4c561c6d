"""Mean average precision, the usual measure of a detector, as PASCAL VOC and COCO have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.detection.overlap import area, intersection_over_union

Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
Found = Sequence[tuple[int, float, Values]]
"""(class, score, box) of one image, as ``find_boxes`` gives them."""
COCO_OVERLAPS: Final = np.linspace(0.5, 0.95, 10)
COCO_RECALLS: Final = np.linspace(0.0, 1.0, 101)
COCO_MOST: Final = 100
"""Boxes of one class in one image that count, the best ones."""


@dataclass(frozen=True)
class Truth:
    """What is in one image.

    Attributes:
        classes: (N,) integers.
        boxes: (N, 4): left, top, right, bottom in the unit of the found boxes.
        ignored: (N,): whether finding it is neither right nor wrong: VOC's "difficult", COCO's
            "iscrowd"; None: nothing.
    """

    classes: NDArray[np.integer]
    boxes: Values
    ignored: Flags | None = None

    def of(self, index: int) -> tuple[Values, Flags]:
        """Boxes of one class, and which of them are ignored."""
        chosen = self.classes == index
        ignored = np.zeros(len(self.classes), np.bool_) if self.ignored is None else self.ignored
        return self.boxes[chosen], ignored[chosen]


@dataclass(frozen=True)
class CocoPrecision:
    """COCO's average precisions: the means over the classes that occur.

    Attributes:
        mean: of the overlaps 0.5, 0.55, ... 0.95: AP.
        at_50: AP50.
        at_75: AP75.
        classes: AP of each class; NaN if it does not occur.
    """

    mean: float
    at_50: float
    at_75: float
    classes: list[float] = field(repr=False)


def mean_average_precision(
    found: Sequence[Found], truths: Sequence[Truth], classes: int, overlap: float = 0.5
) -> tuple[float, list[float]]:
    """As PASCAL VOC has measured it since 2010: all points of the curve.

    For each class the boxes of all images are taken in the order of their scores. One is right if
    the true box of its class that it overlaps most is overlapped by at least ``overlap`` and was
    not found before. Precision at each place is the share of right ones so far, recall the share
    of true boxes found; precision is made monotone from the right and summed over recall.

    Args:
        found: what was found, one entry an image.
        truths: what is there, in the same order.
        classes: how many.
        overlap: minimum intersection over union.

    Returns:
        The mean over the classes that occur, and each class's value (NaN if it does not occur).

    Source: Everingham et al., The PASCAL VOC Challenge (IJCV 2015), section 3.4.1.
    """
    each = []
    for index in range(classes):
        judged = _Judged.of(found, truths, index, partial(_match_voc, overlap=overlap))
        each.append(area_under_curve(judged.right, judged.total) if judged.total else np.nan)
    return _mean(each), each


def coco_precision(found: Sequence[Found], truths: Sequence[Truth], classes: int) -> CocoPrecision:
    """As COCO measures it: ten overlaps, precision read at 101 recalls, 100 boxes per image.

    A box takes the true box of its class that it overlaps most of those that no better one has
    taken. Ignored true boxes may be taken by several, which overlap them by a share of their own
    area.

    Args:
        found: what was found, one entry an image.
        truths: what is there, in the same order.
        classes: how many.

    Source: cocodataset.org, Detection Evaluation.
    """
    table = np.full((len(COCO_OVERLAPS), classes), np.nan)
    for place, overlap in enumerate(COCO_OVERLAPS):
        for index in range(classes):
            match = partial(_match_coco, overlap=overlap)
            judged = _Judged.of(found, truths, index, match, COCO_MOST)
            if judged.total:
                table[place, index] = _precision_at_recalls(judged.right, judged.total)
    each = [float(np.mean(column)) for column in table.T]
    return CocoPrecision(_mean(each), _mean(table[0].tolist()), _mean(table[5].tolist()), each)


Match = tuple[Flags, Flags]
"""Of the boxes of one class in an image, best first: whether each is right, and whether ignored."""


@dataclass(frozen=True)
class _Judged:
    """One class in all images.

    Attributes:
        right: whether each found box is right, best score first, ignored ones left out.
        total: true boxes that are not ignored.
    """

    right: Flags
    total: int

    @classmethod
    def of(
        cls,
        found: Sequence[Found],
        truths: Sequence[Truth],
        index: int,
        match: Callable[[Values, Values, Flags], Match],
        maximum: int | None = None,
    ) -> _Judged:
        total = 0
        scores, rights, kept = [np.zeros(0)], [np.zeros(0, np.bool_)], [np.zeros(0, np.bool_)]
        for items, truth in zip(found, truths, strict=True):
            boxes, ignored = truth.of(index)
            total += int(np.count_nonzero(~ignored))
            ranked = sorted((item for item in items if item[0] == index), key=lambda i: -i[1])
            if not (ranked := ranked[:maximum]):
                continue
            right, without = match(np.stack([item[2] for item in ranked]), boxes, ignored)
            scores.append(np.array([item[1] for item in ranked]))
            rights.append(right)
            kept.append(~without)
        order = np.argsort(-np.concatenate(scores), kind="stable")
        return cls(np.concatenate(rights)[order][np.concatenate(kept)[order]], total)


def _match_voc(found: Values, boxes: Values, ignored: Flags, overlap: float) -> Match:
    right, without = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    taken = np.zeros(len(boxes), np.bool_)
    for place, box in enumerate(found):
        overlaps = intersection_over_union(box, boxes)
        best = int(overlaps.argmax()) if overlaps.size else -1
        if best < 0 or overlaps[best] < overlap:
            continue
        without[place] = ignored[best]
        right[place] = not taken[best] and not ignored[best]
        taken[best] = True
    return right, without


def _match_coco(found: Values, boxes: Values, ignored: Flags, overlap: float) -> Match:
    right, without = np.zeros(len(found), np.bool_), np.zeros(len(found), np.bool_)
    free = ~ignored
    for place, box in enumerate(found):
        overlaps = intersection_over_union(box, boxes)
        wanted = np.flatnonzero(free & (overlaps >= overlap))
        if wanted.size:
            free[wanted[np.flatnonzero(overlaps[wanted] == overlaps[wanted].max())[-1]]] = False
            right[place] = True
        else:
            without[place] = bool((_share_within(box, boxes[ignored]) >= overlap).any())
    return right, without


def _share_within(box: Values, boxes: Values) -> Values:
    """Part of a box's area that lies in each of others."""
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    own = max(float(area(box)), np.finfo(np.float64).tiny)
    return np.asarray(np.prod(np.maximum(sides, 0), axis=1) / own)


def _mean(values: Sequence[float]) -> float:
    occurring = [value for value in values if not np.isnan(value)]
    return float(np.mean(occurring)) if occurring else float("nan")


def area_under_curve(right: Flags, total: int) -> float:
    """Area under the monotone precision-recall curve.

    Args:
        right: whether each found box is right, best score first.
        total: true boxes.
    """
    return float(_monotone_precision(right)[right].sum() / total)


def _precision_at_recalls(right: Flags, total: int) -> float:
    precision = np.append(_monotone_precision(right), 0.0)
    places = np.searchsorted(np.cumsum(right) / total, COCO_RECALLS, side="left")
    return float(precision[places].mean())


def _monotone_precision(right: Flags) -> Values:
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return np.asarray(np.maximum.accumulate(precision[::-1])[::-1])
