"""From a detector's output to the boxes that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.detection.head import DetectionHead
from phonebit.detection.overlap import area, suppress
from phonebit.detection.yolov2 import decode
from phonebit.images.placement import Placement

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Limits:
    """What counts as found.

    Attributes:
        score: the minimum objectness times class probability.
        overlap: two boxes of one class that overlap by more (intersection over union) are one.
    """

    score: float = 0.3
    overlap: float = 0.45


@dataclass(frozen=True)
class Detection:
    """One thing in an image.

    Attributes:
        index: class.
        label: its name.
        score: objectness times class probability, 0..1.
        box: left, top, right, bottom in pixels of the image; (0, 0) is its upper left corner.
    """

    index: int
    label: str
    score: float
    box: Box

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        box = [round(side, 2) for side in self.box]
        return {"index": self.index, "label": self.label, "score": self.score, "box": box}


def find_boxes(
    output: NDArray[np.floating], head: DetectionHead, limits: Limits
) -> list[tuple[int, float, NDArray[np.float64]]]:
    """Decode and suppress: (class, score, box in parts of the input), best first.

    A box is a candidate for every class that it has the score for; classes do not compete.

    Args:
        output: (H, W, A * (5 + C)) of one image.
        head: its anchors.
        limits: what counts.
    """
    candidates = decode(output, head)
    found = []
    for index in range(candidates.scores.shape[1]):
        scores = candidates.scores[:, index]
        chosen = np.flatnonzero(scores >= limits.score)
        for kept in suppress(candidates.boxes[chosen], scores[chosen], limits.overlap):
            found.append((index, float(scores[chosen[kept]]), candidates.boxes[chosen[kept]]))
    return sorted(found, key=lambda item: -item[1])


def detect(
    output: NDArray[np.floating],
    head: DetectionHead,
    placement: Placement,
    labels: Sequence[str] = (),
    limits: Limits | None = None,
) -> list[Detection]:
    """What is in an image.

    Args:
        output: (H, W, A * (5 + C)): what the network gave for it.
        head: from ``Network.detection``.
        placement: where the image lay in the input, from ``Preprocessing.fit``.
        labels: class names, or none.
        limits: what counts; None: the usual.

    Returns:
        Detections, best first, their boxes cut at the image's border; those outside are gone.
    """
    detections = []
    for index, score, parts in find_boxes(output, head, limits or Limits()):
        box = placement.to_image(parts)
        if area(box) > 0:
            label = labels[index] if index < len(labels) else f"class {index}"
            left, top, right, bottom = (float(side) for side in box)
            detections.append(Detection(index, label, score, (left, top, right, bottom)))
    return detections
