"""Trained networks as ``.pbit`` files: what ``phonebit models NAME`` writes.

``python -m training.trained_files`` writes the files from the checkpoints in training/ and
models/fashion_mnist/.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["TRAINED", "TrainedNetwork", "trained_file"]


@dataclass(frozen=True)
class TrainedNetwork:
    """What a trained network does, and how well.

    Attributes:
        input: shape and kind of its images.
        task: what it was trained and tested on.
        result: on the whole test set: "93.44 %" accuracy, or "mAP 68.6 %" of a detector.
        recipe: folder of the training in PhoneBit's repository.
    """

    input: str
    task: str
    result: str
    recipe: str


_GARMENTS: Final = ("28x28 gray", "Fashion-MNIST, 10,000 test images")

TRAINED: Final[dict[str, TrainedNetwork]] = {
    "fashion-larq": TrainedNetwork(*_GARMENTS, "92.27 %", "training/fashion_mnist"),
    "fashion-resnet18": TrainedNetwork(*_GARMENTS, "93.44 %", "training/fashion_mnist_torch"),
    "garments-yolov2-tiny": TrainedNetwork(
        "416x416 rgb", "garments, 500 test scenes", "mAP 68.6 %", "training/garment_scenes"
    ),
}


def trained_file(name: str) -> Path:
    """Where the ``.pbit`` file of one of ``TRAINED`` is."""
    return Path(__file__).with_name(f"{name}.pbit")
