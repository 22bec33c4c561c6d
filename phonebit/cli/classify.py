"""Classification of images for ``phonebit run`` and ``phonebit demo``."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.images.image_files import ImageInput
    from phonebit.network import Network

LATENCY_RUNS = 9
LATENCY_BUDGET_MS = 100.0
"""An image's latency is measured this often, or until this much time is spent."""


@dataclass(frozen=True)
class Guess:
    """One class with what the network thinks of it."""

    index: int
    label: str
    score: float
    probability: float


@dataclass(frozen=True)
class Classification:
    """One image's result; latency is the median of its inferences alone."""

    image: Path
    changes: tuple[str, ...]
    guesses: list[Guess]
    latency_ms: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "image": str(self.image),
            "changes": list(self.changes),
            "top": [asdict(guess) for guess in self.guesses],
            "latency_ms": self.latency_ms,
        }


def classify(network: Network, image: ImageInput, top: int) -> Classification:
    """Run one image and rank the classes.

    Args:
        network: a classifier.
        image: from ``load_image``.
        top: classes to keep.

    Returns:
        The best classes, best first, and the latency.
    """
    from phonebit.network.tasks import class_probabilities, label_of

    result, latency_ms = timed_forward(network, image)
    scores = np.asarray(result, np.float64).ravel()
    probabilities = class_probabilities(network, scores)
    labels = network.labels
    order = np.argsort(-scores, kind="stable")[:top]
    guesses = [
        Guess(int(i), label_of(labels, int(i)), float(scores[i]), float(probabilities[i]))
        for i in order
    ]
    return Classification(image.path, image.changes, guesses, latency_ms)


def timed_forward(network: Network, image: ImageInput) -> tuple[NDArray[np.float32], float]:
    """Run one image through a network of one output.

    The first pass through a network touches its weights for the first time and wakes its threads,
    so the latency is the median of the inferences after it.

    Returns:
        The output without the batch, and the latency in ms.
    """
    batch = image.array[None]
    result = network.forward(batch)
    latencies: list[float] = []
    while len(latencies) < LATENCY_RUNS and sum(latencies) < LATENCY_BUDGET_MS:
        start = time.perf_counter()
        network.forward(batch)
        latencies.append((time.perf_counter() - start) * 1e3)
    return np.asarray(result)[0], float(np.median(latencies))


def print_classification(console: Console, result: Classification) -> None:
    """One image's classes on the terminal."""
    print_heading(console, result.image, result.latency_ms, result.changes)
    console.print(_guess_table(result.guesses, "█" if "utf" in console.encoding else "#"))


def print_heading(
    console: Console, image: Path, latency_ms: float, changes: tuple[str, ...]
) -> None:
    """The line above an image's results: its name, its latency and what was done to it."""
    changed = f"  [dim]{escape(', '.join(changes))}[/]" if changes else ""
    console.print(f"[bold]{escape(str(image))}[/]  {latency_ms:.3f} ms{changed}", soft_wrap=True)


def _guess_table(guesses: list[Guess], dot: str) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(justify="right")
    table.add_column()
    table.add_column(style="cyan")
    for guess in guesses:
        bar = dot * round(20 * guess.probability)
        table.add_row(f"{100 * guess.probability:.2f} %", escape(guess.label), bar)
    return table
