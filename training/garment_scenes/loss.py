"""The loss of YOLOv2 for scenes with few things in them.

Each true box belongs to the cell that holds its centre and, there, to the anchor whose shape is
most like it. That place learns the box (squared errors of sigmoid(x), sigmoid(y), w and h, small
boxes counting more), its class, and as objectness how well the predicted box overlaps the true one.
All other places learn objectness 0, unless they overlap a true box well by chance.

Differs from the paper: objectness and classes are learned by cross entropy, not by squared errors
of probabilities, whose gradients vanish where a network is wrong and sure.

Source: Redmon and Farhadi, YOLO9000 (CVPR 2017), section 2; Redmon et al., You Only Look Once (CVPR
2016), equation 3, for the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

BOX_WEIGHT: Final = 5.0
OBJECT_WEIGHT: Final = 5.0
IGNORED_OVERLAP: Final = 0.6
"""A place that overlaps a true box by more than this is not told that it sees nothing."""


@dataclass(frozen=True)
class Targets:
    """What is in N scenes, at most M things each.

    Attributes:
        boxes: float32[N][M][4]: centre x, centre y, width, height in cells.
        classes: i64[N][M]; -1 where there are fewer things.
    """

    boxes: Tensor
    classes: Tensor


def predicted_boxes(outputs: Tensor, anchors: Tensor) -> Tensor:
    """Boxes in cells.

    Args:
        outputs: float32[N][A][5 + C][H][W].
        anchors: float32[A][2], width and height in cells.

    Returns:
        float32[N][A][H][W][4]: centre x, centre y, width, height.
    """
    height, width = outputs.shape[-2:]
    x = torch.arange(width, device=outputs.device)
    y = torch.arange(height, device=outputs.device)[:, None]
    sizes = outputs[:, :, 2:4].clamp(max=6).exp() * anchors[:, :, None, None]
    centre_x, centre_y = outputs[:, :, 0].sigmoid() + x, outputs[:, :, 1].sigmoid() + y
    return torch.stack([centre_x, centre_y, sizes[:, :, 0], sizes[:, :, 1]], -1)


def overlaps(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of boxes (..., 4) given by centre and size."""
    low = torch.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = torch.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - shared).clamp(min=1e-9)


def detection_loss(outputs: Tensor, targets: Targets, anchors: Tensor) -> Tensor:
    """Mean loss of a scene.

    Args:
        outputs: float32[N][A * (5 + C)][H][W].
        targets: what is there.
        anchors: float32[A][2].
    """
    count, _, height, width = outputs.shape
    outputs = outputs.view(count, len(anchors), -1, height, width)
    there = targets.classes >= 0
    with torch.no_grad():
        boxes = predicted_boxes(outputs, anchors)
        # [N][A][H][W][M]: absent things have no area, so they overlap nothing.
        best = overlaps(boxes[..., None, :], targets.boxes[:, None, None, None]).amax(-1)
        nothing = best <= IGNORED_OVERLAP
    scene, thing = there.nonzero(as_tuple=True)
    true_box, true_class = targets.boxes[scene, thing], targets.classes[scene, thing]
    column = true_box[:, 0].long().clamp(0, width - 1)
    row = true_box[:, 1].long().clamp(0, height - 1)
    shape_only = torch.zeros_like(true_box)
    shape_only[:, 2:] = true_box[:, 2:]
    priors = F.pad(anchors, (2, 0))
    anchor = overlaps(shape_only[:, None], priors).argmax(1)
    nothing[scene, anchor, row, column] = False

    mine = outputs[scene, anchor, :, row, column]
    corner = torch.stack([column, row], 1)
    offset = mine[:, :2].sigmoid() - (true_box[:, :2] - corner)
    stretch = mine[:, 2:4] - (true_box[:, 2:] / anchors[anchor]).log()
    small = 2 - true_box[:, 2:].prod(1) / (height * width)
    box_loss = small * (offset.square().sum(1) + stretch.square().sum(1))
    overlap = overlaps(boxes[scene, anchor, row, column], true_box)
    object_loss = F.binary_cross_entropy_with_logits(mine[:, 4], overlap, reduction="sum")
    class_loss = F.cross_entropy(mine[:, 5:], true_class, reduction="sum")
    empty_loss = F.softplus(outputs[:, :, 4][nothing]).sum()
    total = BOX_WEIGHT * box_loss.sum() + OBJECT_WEIGHT * object_loss + class_loss + empty_loss
    return total / count
