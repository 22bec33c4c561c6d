"""Fashion-MNIST as tensors on one device, and what the networks see of an image.

An image of 28x28 levels gets a border of two pixels of level 0, its background. Level u stands for
(2 u - 255) / 256: like -1..1, but a multiple of 2^-8, so that float32 sums of such values are exact
in any order. ``INPUT_RANGE`` says the same to the converter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from training.fashion_mnist.dataset import CLASS_NAMES, DEFAULT_DIR, load_split
from training.fashion_mnist_torch.layers import SIDE

__all__ = ["CLASS_NAMES", "DEFAULT_DIR", "INPUT_RANGE", "TensorSplit"]

INPUT_RANGE: Final = (-255 / 256, 255 / 256)
"""What the levels 0 and 255 stand for."""
MAX_SHIFT: Final = 2
"""Pixels by which training shifts images, in both directions: the image stays whole."""


def real_values(levels: Tensor) -> Tensor:
    """(2 u - 255) / 256 of u8 levels, exactly, as float32."""
    return (2 * levels.float() - 255) / 256


@dataclass(frozen=True)
class TensorSplit:
    """One half of the data set on a device.

    Attributes:
        canvas: u8[N][36][36], the images in the middle of level 0: room for every shift.
        labels: i64[N], 0..9.
    """

    canvas: Tensor
    labels: Tensor

    @classmethod
    def load(
        cls, folder: Path, split: str, device: str = "cpu", limit: int | None = None
    ) -> TensorSplit:
        """Reads a half of the data set.

        Args:
            folder: of the four .gz files.
            split: "train" or "t10k".
            device: of the tensors, as PyTorch names it.
            limit: keep only the first so many images.

        Raises:
            FileNotFoundError: a file is absent.
            ValueError: a file is malformed.
        """
        arrays = load_split(folder, split)
        images = torch.from_numpy(arrays.images[:limit, ..., 0].copy()).to(device)
        margin = (SIDE - images.shape[-1]) // 2 + MAX_SHIFT
        labels = torch.from_numpy(arrays.labels[:limit].copy()).long().to(device)
        return cls(F.pad(images, (margin,) * 4), labels)

    def __len__(self) -> int:
        """Number of images."""
        return len(self.labels)

    def levels(self, begin: int = 0, end: int | None = None) -> Tensor:
        """u8[N][32][32]: images as they are, in their border."""
        return self.canvas[begin:end, MAX_SHIFT:-MAX_SHIFT, MAX_SHIFT:-MAX_SHIFT]

    def inputs(self, begin: int = 0, end: int | None = None) -> Tensor:
        """float32[N][1][32][32]: the same as the networks read them."""
        return real_values(self.levels(begin, end))[:, None]

    def augmented(self, chosen: Tensor, generator: torch.Generator) -> Tensor:
        """Images shifted by up to ``MAX_SHIFT`` pixels, half of them mirrored left to right.

        Args:
            chosen: i64[N], which images.
            generator: on the tensors' device.

        Returns:
            float32[N][1][32][32].
        """
        count, device = len(chosen), chosen.device
        offsets = torch.randint(
            0, 2 * MAX_SHIFT + 1, (2, count, 1), device=device, generator=generator
        )
        mirrored = torch.randint(0, 2, (count, 1), device=device, generator=generator).bool()
        steps = torch.arange(SIDE, device=device)
        rows = offsets[0] + steps
        columns = offsets[1] + torch.where(mirrored, SIDE - 1 - steps, steps)
        return real_values(self.canvas[chosen[:, None, None], rows[:, :, None], columns[:, None]])[
            :, None
        ]
