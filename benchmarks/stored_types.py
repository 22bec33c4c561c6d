"""What float maps of trained networks lose when they are stored as halves or as bytes.

    python -m benchmarks.stored_types

µLayer (section 4.2) stores tensors that two processors touch in 8 bits. Here the float tensors
between the layers of two trained Fashion-MNIST networks are rounded by themselves, on test images;
docs/studies/halves.md draws the conclusion. Writes benchmarks/results/stored_types.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import parser_of
from benchmarks.records import RESULTS, Record, run_context, write_results
from phonebit import Network
from phonebit.models.trained import trained_file
from training.fashion_mnist.dataset import DEFAULT_DIR, load_split

FILE: Final = "stored_types.json"
NETWORKS: Final = ("fashion-larq", "fashion-resnet18")
IMAGES: Final = 256
LEVELS: Final = 127
"""Of a byte, on either side of 0."""

Maps = NDArray[np.float32]
"""Of one tensor, one of each image."""


def main() -> None:
    """Writes the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of Fashion-MNIST")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / FILE)
    arguments = parser.parse_args()
    train, test = (load_split(arguments.data, of).images[:IMAGES] for of in ("train", "t10k"))
    rows = [row for name in NETWORKS for row in measure(name, train, test)]
    write_results(arguments.output, {"context": run_context(), "images": IMAGES, "networks": rows})


def measure(name: str, train: NDArray[np.uint8], test: NDArray[np.uint8]) -> Iterator[Record]:
    """The largest loss of a network's maps by each way to store them."""
    with Network.load(trained_file(name), device="cpu") as network:
        largest = {tensor: np.abs(maps).max() for tensor, maps in float_maps(network, train)}
        losses: dict[str, list[tuple[float, float]]] = {}
        for tensor, maps in float_maps(network, test):
            for way, stored in ways(maps, largest[tensor]).items():
                losses.setdefault(way, []).append(loss(maps, stored))
    for way, found in losses.items():
        error, signs = map(max, zip(*found, strict=True))
        yield {"network": name, "stored": way, "maps": len(found), "error": error, "signs": signs}


def float_maps(network: Network, images: NDArray[np.uint8]) -> Iterator[tuple[str, Maps]]:
    """The tensors of floats between layers."""
    ends = {tensor.name for tensor in (*network.inputs, *network.outputs)}
    for tensor, maps in network.activations(images).items():
        if tensor not in ends and maps.dtype == np.float32:
            yield tensor, maps


def ways(maps: Maps, largest: float) -> dict[str, Maps]:
    """Maps as they are read again; bytes of a fixed scale reach to ``largest``."""
    axes = tuple(range(1, maps.ndim))
    own = np.abs(maps).max(axes, keepdims=True)
    return {
        "halves": maps.astype(np.float16).astype(np.float32),
        "bytes, scaled per image": in_bytes(maps, own),
        "bytes, scale fixed by training images": in_bytes(maps, largest),
    }


def in_bytes(maps: Maps, largest: Any) -> Maps:
    """Rounded to whole multiples of a 127th of the largest magnitude, and cut off there."""
    step = np.maximum(largest, np.finfo(np.float32).tiny) / LEVELS
    return np.asarray(np.clip(np.rint(maps / step), -LEVELS, LEVELS) * step, np.float32)


def loss(maps: Maps, stored: Maps) -> tuple[float, float]:
    """Root mean square error relative to the maps' own, and the share of signs that change."""
    error = np.sqrt(np.mean((stored - maps) ** 2) / np.mean(maps**2))
    return round(float(error), 6), round(float(np.mean((stored >= 0) != (maps >= 0))), 6)


if __name__ == "__main__":
    main()
