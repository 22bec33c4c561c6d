"""Scenes as tensors on one device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phonebit.detection import Truth
from training.fashion_mnist_torch.images import real_values
from training.garment_scenes.loss import Targets
from training.garment_scenes.network import STRIDE
from training.garment_scenes.scenes import MAX_GARMENTS, SIDE, Scene


@dataclass
class SceneSet:
    """Scenes on a device.

    Attributes:
        images: u8[N][3][416][416], channels last in memory.
        targets: the same scenes' boxes in cells.
        truths: and in parts of the image, as ``mean_average_precision`` wants them.
    """

    images: Tensor
    targets: Targets
    truths: list[Truth]

    @classmethod
    def collect(cls, scenes: Iterable[Scene], count: int, device: str = "cpu") -> SceneSet:
        """Takes ``count`` scenes as they come."""
        images = torch.empty((count, SIDE, SIDE, 3), dtype=torch.uint8, device=device)
        boxes = np.zeros((count, MAX_GARMENTS, 4), np.float32)
        classes = np.full((count, MAX_GARMENTS), -1, np.int64)
        truths = []
        for index, scene in zip(range(count), scenes, strict=True):
            images[index] = torch.from_numpy(scene.image).to(device)
            things = len(scene.classes)
            boxes[index, :things] = _centred(scene.boxes) / STRIDE
            classes[index, :things] = scene.classes
            truths.append(Truth(scene.classes, scene.boxes.astype(np.float64) / SIDE))
        targets = Targets(torch.from_numpy(boxes).to(device), torch.from_numpy(classes).to(device))
        return cls(images.permute(0, 3, 1, 2), targets, truths)

    def __len__(self) -> int:
        """Number of scenes."""
        return len(self.images)

    def inputs(self, begin: int, end: int) -> Tensor:
        """float32[N][3][416][416]: some scenes as the network reads them."""
        return real_values(self.images[begin:end])

    def augmented(self, chosen: Tensor, generator: torch.Generator) -> tuple[Tensor, Targets]:
        """Chosen scenes, half of them mirrored left to right.

        Args:
            chosen: i64[N], which.
            generator: on the tensors' device.

        Returns:
            float32[N][3][416][416], and what is there.
        """
        draw = torch.rand(len(chosen), device=chosen.device, generator=generator)
        mirrored = draw < 0.5
        levels = self.images[chosen]
        levels = torch.where(mirrored[:, None, None, None], levels.flip(3), levels)
        boxes, classes = self.targets.boxes[chosen], self.targets.classes[chosen]
        turned = torch.where(mirrored[:, None], SIDE / STRIDE - boxes[..., 0], boxes[..., 0])
        boxes = torch.cat([turned[..., None], boxes[..., 1:]], -1)
        return real_values(levels), Targets(boxes, classes)


def _centred(corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 4): left, top, right, bottom -> centre x, centre y, width, height."""
    low, high = corners[:, :2], corners[:, 2:]
    return np.concatenate([(low + high) / 2, high - low], axis=1)
