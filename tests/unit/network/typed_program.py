"""A user's program, fully typed: it passes ``mypy --strict`` with the installed package, and runs.

Usage: typed_program.py FILE, a .pbit file with one input of bytes and one output.
"""

from __future__ import annotations

import pickle
import sys

import numpy as np
from numpy.typing import NDArray

import phonebit


def best_classes(network: phonebit.Network, images: NDArray[np.uint8]) -> list[int]:
    scores = network(images)
    return [int(index) for index in scores.reshape(len(images), -1).argmax(axis=1)]


def named_shapes(
    network: phonebit.Network, images: NDArray[np.uint8]
) -> dict[str, tuple[int, ...]]:
    outputs = network.forward({network.inputs[0].name: images})
    return {name: array.shape for name, array in outputs.items()}


def report_line(source: str) -> str:
    report = phonebit.convert(source, input_dtype="u8", input_range=(-1.0, 1.0))
    return f"{report.name}: {report.binary_mac_share:.1%} binary"


def main(path: str) -> None:
    with phonebit.Network.load(path, device="cpu", threads=1) as network:
        height, width, channels = network.inputs[0].shape
        images = np.zeros((2, height, width, channels), np.uint8)
        copy: phonebit.Network = pickle.loads(pickle.dumps(network))
        assert best_classes(copy, images) == best_classes(network, images)
        assert set(named_shapes(network, images)) == {network.outputs[0].name}
        median: float = network.bench(images, runs=3, warmup=0).median_ms
        print(f"{median:.3f} ms, {', '.join(network.labels) or 'no labels'}")
    try:
        network(images)
    except phonebit.InputError as error:
        print(error)


if __name__ == "__main__":
    main(sys.argv[1])
