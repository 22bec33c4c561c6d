"""The emulated phone's networks, with what x86 computes of them.

python phone_networks.py FOLDER

VGG-small, QuickNet and YOLOv2-Tiny, the last two on small images: an emulator runs them. Each is
FOLDER/NAME.pbit and FOLDER/NAME.npz, in the form of the golden files: a random input and the
outputs that this machine's processor computes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from phonebit import Network
from phonebit.converter.convert import write_conversion
from phonebit.models.networks import NETWORKS, converted
from phonebit.models.networks.quicknet import quicknet
from phonebit.models.networks.yolov2_tiny import yolov2_tiny
from phonebit.network.random_inputs import random_inputs

SIZE: Final = 64
"""Pixels of a side: both halve the map five times."""
SMALL: Final = {
    "vgg_small": NETWORKS["vgg_small"].layers,
    "quicknet": partial(quicknet, size=SIZE),
    "yolov2_tiny": partial(yolov2_tiny, size=SIZE),
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, layers in SMALL.items():
        definition = replace(NETWORKS[name], layers=layers)
        file = folder / f"{name}.pbit"
        write_conversion(converted(name, networks={name: definition}), file)
        network = Network.load(file, device="cpu")
        inputs = random_inputs(network.inputs, 1)
        arrays = {f"in:{tensor}": array for tensor, array in inputs.items()}
        outputs = network.forward(inputs)
        arrays |= {f"out:{tensor}": array for tensor, array in outputs.items()}
        np.savez(file.with_suffix(".npz"), **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
