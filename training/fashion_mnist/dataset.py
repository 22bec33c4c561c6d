"""Fashion-MNIST from its four idx files, in the numeric form that both networks are fed with."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CLASS_NAMES = (
    "t_shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle_boot",
)
DEFAULT_DIR = Path("/usr/share/datasets/fashion-mnist")
# The third byte of an idx file names the element type (8: unsigned byte), the fourth the rank.
_MAGIC_BY_RANK = {1: 0x00000801, 3: 0x00000803}


@dataclass(frozen=True)
class Split:
    """One half of the data set.

    Attributes:
        images: u8[N][28][28][1], 0 = background.
        labels: u8[N], index into `CLASS_NAMES`.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read one gzip-compressed idx file of unsigned bytes.

    Args:
        path: `*-idx1-ubyte.gz` or `*-idx3-ubyte.gz`.

    Returns:
        u8 array of the shape that the file's header states.

    Raises:
        FileNotFoundError: if `path` is not there; the text says where the data set comes from.
        ValueError: if the magic number or the byte count does not fit the header.

    Source: the idx format, http://yann.lecun.com/exdb/mnist.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no such file; install it with `apt-get install dataset-fashion-mnist`, or "
            "take the four .gz files of https://github.com/zalandoresearch/fashion-mnist and give "
            "their folder with --data"
        )
    raw = gzip.decompress(path.read_bytes())
    magic = struct.unpack_from(">I", raw)[0] if len(raw) >= 4 else -1
    rank = magic & 0xFF
    if _MAGIC_BY_RANK.get(rank) != magic:
        raise ValueError(f"{path}: got magic {magic:#010x}, expected 0x00000801 or 0x00000803")
    header_bytes = 4 + 4 * rank
    shape = struct.unpack_from(f">{rank}I", raw, 4) if len(raw) >= header_bytes else (-1,)
    expected_bytes = header_bytes + int(np.prod(shape, dtype=np.int64))
    if len(raw) != expected_bytes:
        raise ValueError(
            f"{path}: got {len(raw)} bytes, expected {expected_bytes} for shape {shape}; "
            "the file is cut short or damaged, fetch it again"
        )
    return np.frombuffer(raw, np.uint8, offset=header_bytes).reshape(shape)


def load_split(folder: Path, split: str) -> Split:
    """Load the training or the test half.

    Args:
        folder: holds the four .gz files.
        split: "train" (60,000 images) or "t10k" (10,000 images).

    Returns:
        Images with a channel axis, and their labels.

    Raises:
        FileNotFoundError: if a file is absent.
        ValueError: if a file is malformed, or images and labels differ in number.
    """
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {split} has {len(images)} images, {len(labels)} labels")
    return Split(images[..., np.newaxis], labels)


def to_network_input(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Map u8 images to the float range that the networks were trained with.

    x = (2 u - 255) / 255. The numerator is an odd integer of at most eight bits, hence exact in
    float32 and never zero: an engine may convolve 2u - 255 in integers and leave the division by
    255 to the batch normalisation that follows.

    Args:
        images: u8[...], 0..255.

    Returns:
        float32 of the same shape, -1..1.
    """
    return (2.0 * images.astype(np.float32) - 255.0) / np.float32(255.0)
