"""Files that pages of the documents speak of."""

from __future__ import annotations

import shutil
from pathlib import Path

TRAINED = Path(__file__).parents[2] / "models" / "fashion_mnist"


def write_page_files(folder: Path) -> None:
    """A checkpoint, model.h5; an image, cat.png; the names of its classes, classes.txt."""
    shutil.copy(TRAINED / "fashion_mnist_bnn.h5", folder / "model.h5")
    shutil.copy(next((TRAINED / "images").glob("*.png")), folder / "cat.png")
    shutil.copy(TRAINED / "labels.txt", folder / "classes.txt")
