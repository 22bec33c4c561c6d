"""``phonebit.accelerate``: a PyTorch module on PhoneBit, PhoneBit alone, and the module in PyTorch.

    python -m benchmarks.accelerate [--threads 1] [--turns 40]

Batch 1, float32. The three take turns, so that what else runs on the machine disturbs all of them;
printed are medians, and medians of the ratios within a turn. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

import phonebit
from benchmarks.markdown import markdown_table
from benchmarks.turns import times_ms
from support.torch_networks import statistics as made_up

FACTORIES: Final = {"Bi-Real-18": "bireal:birealnet18", "QuickNet": "quicknet:quicknet"}
SHAPE: Final = (3, 224, 224)


def network_of(factory: str) -> Any:
    """A network with random weights and calibrated statistics, in evaluation mode."""
    module, function = factory.split(":")
    make = getattr(importlib.import_module(f"support.torch_networks.{module}"), function)
    return made_up.random_(make(False), made_up.images(SHAPE, 4, 1), 1)


def row_of(name: str, turns: int, threads: int) -> tuple[str, ...]:
    """A network's times and ratios."""
    module, image = network_of(FACTORIES[name]), made_up.images(SHAPE, 1, 2)
    fast = phonebit.accelerate(module, image)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        path = Path(folder) / "network.pbit"
        path.write_bytes(fast.content)
        alone = phonebit.Network.load(path, "cpu", threads=threads)
        array = np.ascontiguousarray(image.numpy().transpose(0, 2, 3, 1))
        runs = [lambda: alone(array), lambda: fast(image), lambda: module(image)]
        measured = times_ms(runs, turns)
    own, inside, eager = measured.T
    return (
        name,
        *(f"{statistics.median(column):.3g}" for column in (own, inside, eager)),
        f"{np.median(own / inside):.2f}",
        f"{np.median(eager / inside):.1f}",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch and of PhoneBit")
    parser.add_argument("--turns", type=int, default=40, help="measurements of each")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    titles = ("network", "PhoneBit", "accelerated", "PyTorch f32", "of PhoneBit", "of PyTorch")
    rows = [row_of(name, options.turns, options.threads) for name in FACTORIES]
    print(markdown_table(titles, rows))


if __name__ == "__main__":
    main()
