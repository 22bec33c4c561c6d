"""What outputs are worth: accuracy of classifiers, average precision of detectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from phonebit.detection import (
    DetectionHead,
    Limits,
    Truth,
    coco_precision,
    detect,
    mean_average_precision,
)
from phonebit.evaluation.classes import ClassNames
from phonebit.images.placement import Placement

Array = NDArray[Any]
MAX_CONFUSED: Final = 3
"""Classes that a class is mistaken for, in a report."""


class Scorer(Protocol):
    """Judges the outputs of one network, image by image."""

    def add(self, output: Array, truth: Any, placement: Placement) -> Any:
        """Judge one output; gives what stands in the image's row."""

    def metrics(self) -> dict[str, Any]:
        """The result for all images, JSON-ready."""


TOP: Final = 5


@dataclass
class ClassificationScorer:
    """Top-1 and top-5 accuracy, and what is mistaken for what."""

    names: ClassNames
    top1: int = 0
    top5: int = 0
    guesses: list[Counter[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guesses = [Counter() for _ in range(self.names.count)]

    def add(self, output: Array, truth: Any, placement: Placement) -> str:
        """See ``Scorer``; the row has the best class."""
        best = np.argsort(-output.ravel(), kind="stable")[:TOP]
        self.top1 += int(best[0] == truth)
        self.top5 += int(truth in best)
        self.guesses[truth][int(best[0])] += 1
        return self.names.name(int(best[0]))

    def metrics(self) -> dict[str, Any]:
        """``top1``, ``top5`` of more classes (0..1), and ``classes`` with those that occur."""
        total = sum(sum(counts.values()) for counts in self.guesses)
        counts = {"top1": self.top1}
        if self.names.count > TOP:
            counts["top5"] = self.top5
        return {
            **{name: right / total if total else float("nan") for name, right in counts.items()},
            "classes": [self._of_class(i) for i, counts in enumerate(self.guesses) if counts],
        }

    def _of_class(self, index: int) -> dict[str, Any]:
        counts = self.guesses[index]
        wrong = Counter({guess: count for guess, count in counts.items() if guess != index})
        return {
            "index": index,
            "label": self.names.name(index),
            "images": counts.total(),
            "top1": counts[index] / counts.total(),
            "mistaken_for": [
                {"index": guess, "label": self.names.name(guess), "images": count}
                for guess, count in wrong.most_common(MAX_CONFUSED)
            ],
        }


@dataclass
class DetectionScorer:
    """Mean average precision as PASCAL VOC and COCO have it."""

    names: ClassNames
    head: DetectionHead
    limits: Limits
    found: list[list[tuple[int, float, NDArray[np.float64]]]] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)

    def add(self, output: Array, truth: Any, placement: Placement) -> int:
        """See ``Scorer``; the row has the number of boxes."""
        boxes = detect(output, self.head, placement, self.names.labels, self.limits)
        self.found.append([(box.index, box.score, np.array(box.box)) for box in boxes])
        self.truths.append(truth)
        return len(boxes)

    def metrics(self) -> dict[str, Any]:
        """``voc_ap50``, ``coco_ap``, ``coco_ap50``, ``coco_ap75`` (0..1), and ``classes``."""
        count = self.names.count
        voc, each = mean_average_precision(self.found, self.truths, count)
        coco = coco_precision(self.found, self.truths, count)
        objects: Counter[int] = Counter()
        for truth in self.truths:
            objects.update(truth.classes.tolist())
        return {
            "voc_ap50": voc,
            "coco_ap": coco.mean,
            "coco_ap50": coco.at_50,
            "coco_ap75": coco.at_75,
            "classes": [
                {
                    "index": index,
                    "label": self.names.name(index),
                    "objects": objects[index],
                    "voc_ap50": each[index],
                    "coco_ap": coco.classes[index],
                }
                for index in sorted(objects)
            ],
        }


def class_text(truth: Any, names: ClassNames) -> str:
    """What an image's row says of the truth: its class, or the objects in it."""
    if isinstance(truth, Truth):
        return _objects_text(truth.classes.tolist(), names)
    return names.name(truth)


def _objects_text(classes: Sequence[int], names: ClassNames) -> str:
    counts = Counter(classes)
    return ", ".join(f"{count} {names.name(index)}" for index, count in sorted(counts.items()))
