"""From a detector's output to named boxes in an image, and how good they are.

NumPy only; ``docs/detection.md`` has the formulas. ``DetectionHead`` says what the numbers mean and
travels in the ``.pbit`` file.
"""

from phonebit.detection.detect import Detection, Limits, detect, find_boxes
from phonebit.detection.head import DetectionHead, read_head
from phonebit.detection.precision import Truth, coco_precision, mean_average_precision

__all__ = [
    "Detection",
    "DetectionHead",
    "Limits",
    "Truth",
    "coco_precision",
    "detect",
    "find_boxes",
    "mean_average_precision",
    "read_head",
]
