"""AdaBin's ResNet-20 on images of CIFAR-10, exact and with 8-bit full-precision layers.

    python -m benchmarks.adabin --checkpoint resnet20.th --pictures FOLDER

FOLDER has files cifar10_*_CLASS.png, as the package foolbox has in its folder data. Each image
counts as it is, and shifted by up to 4 pixels and mirrored, as the authors' training sees them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import phonebit
from benchmarks.command_line import parser_of
from benchmarks.records import RESULTS, run_context, write_results
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.devices.loading import Precision

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
SIDE: Final = 32
SHIFT: Final = 4
BATCH: Final = 180
PRECISIONS: Final[dict[FloatWeights, Precision]] = {"f32": "exact", "i8": "fast"}
"""By how full-precision layers' weights are stored."""


def images(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Levels (N, 32, 32, 3), and classes (N,)."""
    files = sorted(folder.glob("cifar10_*.png"))
    if not files:
        raise SystemExit(f"{folder}: no cifar10_*_CLASS.png; see python -m benchmarks.adabin -h")
    levels = np.stack([np.asarray(Image.open(file).convert("RGB")) for file in files])
    return levels, np.array([int(file.stem.rsplit("_", 1)[1]) for file in files])


def variants(levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """All images at every shift, black beyond the border, then the same mirrored."""
    wide = np.pad(levels, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)))
    steps = range(2 * SHIFT + 1)
    shifted = np.concatenate([wide[:, y : y + SIDE, x : x + SIDE] for y in steps for x in steps])
    return np.concatenate([shifted, shifted[:, :, ::-1]])


def classified(network: phonebit.Network, levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The class of every image."""
    values = ((levels / 255 - MEAN) / STD).astype(np.float32)
    parts = [values[begin : begin + BATCH] for begin in range(0, len(values), BATCH)]
    scores = [np.asarray(network.forward(part)).reshape(len(part), -1) for part in parts]
    classes: NDArray[np.int64] = np.concatenate(scores).argmax(1)
    return classes


def main() -> None:
    """Counts and writes."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--pictures", dest="images", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--json", type=Path, default=RESULTS / "accuracy_adabin.json")
    options = parser.parse_args()
    levels, labels = images(options.images)
    networks = []
    with tempfile.TemporaryDirectory() as folder:
        for weights, precision in PRECISIONS.items():
            file = Path(folder) / f"{weights}.pbit"
            phonebit.convert(
                options.checkpoint,
                file,
                model="support.torch_networks.adabin:resnet20",
                input_shape=(1, 3, SIDE, SIDE),
                strict=True,
                float_weights=weights,
            )
            networks.append(phonebit.Network.load(file, "cpu", precision=precision))
    document: dict[str, Any] = {"context": run_context(), "sets": {}}
    sets = {"test images of CIFAR-10": levels, "shifted and mirrored": variants(levels)}
    for name, given in sets.items():
        exact, in_8_bits = (classified(network, given) for network in networks)
        right = np.tile(labels, len(given) // len(labels))
        document["sets"][name] = {
            "pictures": len(given),
            "right_exact": int(np.count_nonzero(exact == right)),
            "right_in_8_bits": int(np.count_nonzero(in_8_bits == right)),
            "same_class": int(np.count_nonzero(in_8_bits == exact)),
        }
    write_results(options.json, document)


if __name__ == "__main__":
    main()
