"""Find the anchors: k-means over the boxes of training scenes, 1 - IoU as the distance.

    python -m training.garment_scenes.anchors

writes ``detection.toml``, which ``phonebit convert --detection`` reads, next to this file.

Source: Redmon and Farhadi, YOLO9000 (CVPR 2017), section 2, "Dimension Clusters".
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from training.fashion_mnist.dataset import DEFAULT_DIR
from training.garment_scenes.scene_workers import make_scenes

SEED: Final = 20261122
"""Of all scenes."""
ANCHOR_COUNT: Final = 5
CELL_PIXELS: Final = 32
ROUNDS: Final = 200


def find_anchors(sizes: NDArray[np.float64], count: int, seed: int) -> NDArray[np.float64]:
    """Cluster boxes by their shapes.

    Args:
        sizes: (N, 2), widths and heights.
        count: clusters.
        seed: of the start.

    Returns:
        (count, 2): the clusters' mean sizes, the smallest area first.
    """
    rng = np.random.default_rng(seed)
    centres = sizes[rng.choice(len(sizes), count, replace=False)]
    for _ in range(ROUNDS):
        shared = np.minimum(sizes[:, None], centres).prod(axis=2)
        union = sizes.prod(axis=1)[:, None] + centres.prod(axis=1) - shared
        nearest = (shared / union).argmax(axis=1)
        means = np.array(
            [
                sizes[nearest == i].mean(axis=0) if (nearest == i).any() else centres[i]
                for i in range(count)
            ]
        )
        if np.array_equal(means, centres):
            break
        centres = means
    return np.asarray(centres[centres.prod(axis=1).argsort()], np.float64)


def main() -> None:
    """Write ``detection.toml``."""
    parser = argparse.ArgumentParser(description="Find the anchors for the garment scenes.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--scenes", type=int, default=2000)
    options = parser.parse_args()
    scenes = make_scenes(options.data, "train", options.scenes, SEED)
    boxes = np.concatenate([scene.boxes for scene in scenes]).astype(np.float64)
    anchors = find_anchors((boxes[:, 2:] - boxes[:, :2]) / CELL_PIXELS, ANCHOR_COUNT, SEED)
    pairs = ",\n".join(f"  [{width:.4f}, {height:.4f}]" for width, height in anchors)
    text = f"# width, height in cells of {CELL_PIXELS} pixels; written by anchors.py\n"
    text += f'kind = "yolov2"\nanchors = [\n{pairs},\n]\n'
    (Path(__file__).parent / "detection.toml").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
