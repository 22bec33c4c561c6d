"""Converts the checkpoints to the files of ``phonebit models``, models/trained/NAME.pbit.

    python -m training.trained_files     # in a checkout, with PyTorch

The classifiers of training/fashion_mnist_torch read images of 32x32 with a border of level 0. In
these files the border is part of the network, so they read Fashion-MNIST's 28x28.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Final

import torch
from torch import nn

import phonebit
from phonebit.cli.demo import convert_demo
from phonebit.models.trained import trained_file
from training.fashion_mnist_torch.images import CLASS_NAMES, INPUT_RANGE
from training.fashion_mnist_torch.networks import BINARY
from training.garment_scenes.evaluate import convert as convert_detector
from training.garment_scenes.train import NETWORKS
from training.packed_checkpoint import load

HERE: Final = Path(__file__).parent
CLASSIFIERS: Final = {"fashion-resnet18": "resnet18_small"}
"""The smallest checkpoint is the most accurate one, too."""


def write_classifier(checkpoint: str, path: Path) -> None:
    """Converts a checkpoint of training/fashion_mnist_torch, by its name."""
    _, network = load(HERE / "fashion_mnist_torch" / f"{checkpoint}.pth", BINARY)
    border = nn.ConstantPad2d(2, INPUT_RANGE[0])
    phonebit.convert(
        nn.Sequential(OrderedDict(border=border, network=network)).eval(),
        torch.zeros(1, 1, 28, 28),
        path,
        input_dtype="u8",
        input_range=INPUT_RANGE,
        labels=CLASS_NAMES,
        strict=True,
    )


def main() -> None:
    """Writes all files."""
    convert_demo(HERE.parent / "models" / "fashion_mnist", trained_file("fashion-larq"))
    for name, checkpoint in CLASSIFIERS.items():
        write_classifier(checkpoint, trained_file(name))
    name, network = load(HERE / "garment_scenes" / "yolov2_tiny_half.pth", NETWORKS)
    trained_file("garments-yolov2-tiny").write_bytes(convert_detector(network, name).content)


if __name__ == "__main__":
    main()
