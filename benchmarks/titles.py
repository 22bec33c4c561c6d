"""Names of networks in tables."""

from typing import Final

TITLES: Final = {
    "vgg16": "VGG16",
    "birealnet18": "Bi-Real-18",
    "yolov2_tiny": "YOLOv2-Tiny",
    "googlenet": "GoogLeNet",
    "alexnet": "AlexNet",
    "quicknet": "QuickNet",
}
