"""Decoding of the YOLOv2 head.

The output has H x W cells and, for each of A anchors in turn, the channels
x, y, w, h, objectness, class 0, ..., class C-1. With (i, j) the cell's column and row and
(a_w, a_h) the anchor in cells, a box is

    centre  ((i + sigmoid(x)) / W, (j + sigmoid(y)) / H)
    size    (a_w exp(w) / W, a_h exp(h) / H)
    score   of class c: sigmoid(objectness) * exp(c) / sum over the classes of exp

in parts of the input's width and height.

Source: Redmon and Farhadi, YOLO9000 (CVPR 2017), section 2 and figure 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.detection.head import DetectionHead
from phonebit.format.records import BOX_NUMBERS

Values = NDArray[np.float64]

MAX_EXPONENT = 50.0
"""A box e^50 times its anchor is nonsense; its size must still be a number."""


@dataclass(frozen=True)
class Candidates:
    """Everything that the head proposes, in the order row, column, anchor.

    Attributes:
        boxes: float64 (N, 4): left, top, right, bottom in parts of the input; may reach beyond it.
        scores: float64 (N, C), 0..1.
    """

    boxes: Values
    scores: Values


def decode(output: NDArray[np.floating], head: DetectionHead) -> Candidates:
    """Boxes and scores from the numbers of one image.

    Args:
        output: (H, W, A * (5 + C)), real.
        head: its anchors.

    Returns:
        All H * W * A candidates.

    Raises:
        InputError: if the channels do not fit the anchors.
    """
    height, width, channels = output.shape
    classes = head.classes(channels)
    anchors = np.array(head.anchors)
    cells = output.astype(np.float64).reshape(height, width, len(anchors), BOX_NUMBERS + classes)
    grid = np.array([width, height], np.float64)
    corners = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1)[:, :, None]
    centres = (corners + sigmoid(cells[..., 0:2])) / grid
    sizes = anchors * np.exp(np.minimum(cells[..., 2:4], MAX_EXPONENT)) / grid
    boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=-1)
    scores = sigmoid(cells[..., 4:5]) * _softmax(cells[..., BOX_NUMBERS:])
    return Candidates(boxes.reshape(-1, 4), scores.reshape(-1, classes))


def sigmoid(x: Values) -> Values:
    """1 / (1 + exp(-x)), written with tanh, which does not overflow."""
    return np.asarray(0.5 * (1 + np.tanh(x / 2)), np.float64)


def _softmax(x: Values) -> Values:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float64)
