"""Many scenes, made by several processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from training.fashion_mnist.dataset import load_split
from training.garment_scenes.scenes import Scene, Splits, make_scene

CHUNK: Final = 32
"""Scenes that a worker makes at a time."""


def make_scenes(folder: Path, split: Splits, count: int, seed: int) -> Iterator[Scene]:
    """The first ``count`` scenes of a split, in order, whatever the number of processes.

    Args:
        folder: of Fashion-MNIST's four .gz files.
        split: "train" or "t10k".
        count: scenes.
        seed: of all scenes.

    Raises:
        FileNotFoundError: a file is absent.
        ValueError: a file is malformed.
    """
    load_split(folder, split)  # what is wrong with the files is said once, not by each worker
    chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    context = multiprocessing.get_context("spawn")  # a fork would share a GPU's state
    workers = min(len(chunks), os.cpu_count() or 1)
    with context.Pool(workers, _start, (folder, split, seed)) as pool:
        for scenes in pool.imap(_make_chunk, chunks):
            yield from scenes


_makers: list[Callable[[int], Scene]] = []
"""Of a worker: its one way to make scenes, with the garments loaded once."""


def _start(folder: Path, split: Splits, seed: int) -> None:
    _makers.append(partial(make_scene, load_split(folder, split), split, seed=seed))


def _make_chunk(indices: range) -> list[Scene]:
    (make,) = _makers
    return [make(index) for index in indices]
