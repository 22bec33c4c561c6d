"""The frame of the recipes: options that all of them have, one network after the other, the log."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import torch

from training.training_log import describe_machine, now


def recipe_parser(
    recipe: str,
    networks: Collection[str],
    chosen: Collection[str],
    data: Path,
    output: Path,
    seed: int,
) -> argparse.ArgumentParser:
    """A command line of NETWORK..., --data, --output, --device and --seed.

    Args:
        recipe: what the command does, for its help.
        networks: names that it knows.
        chosen: the networks where none is named.
        data: folder of Fashion-MNIST where none is named.
        output: folder of the checkpoints and training.json, likewise.
        seed: likewise.
    """

    def known(name: str) -> str:
        if name in networks:
            return name
        raise argparse.ArgumentTypeError(f"got {name}, expected some of {', '.join(networks)}")

    parser = argparse.ArgumentParser(description=recipe)
    parser.add_argument(
        "networks",
        nargs="*",
        metavar="NETWORK",
        type=known,
        default=list(chosen),
        help=f"of {', '.join(networks)}",
    )
    parser.add_argument("--data", type=Path, default=data, help="folder of the four .gz")
    parser.add_argument("--output", type=Path, default=output, help="of .pth and training.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=seed)
    return parser


class TrainingRun:
    """A run of a recipe, from its start; sets up PyTorch for speed.

    Args:
        module: of the recipe, as ``python -m`` takes it.
        options: of ``recipe_parser``.

    Attributes:
        log: content of training.json.
    """

    def __init__(self, module: str, options: argparse.Namespace) -> None:
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")
        options.output.mkdir(parents=True, exist_ok=True)
        self._begin = time.perf_counter()
        self._options = options
        self.log: dict[str, Any] = {
            "command": f"python -m {module} {shlex.join(sys.argv[1:])}".strip(),
            "started": now(),
            "machine": describe_machine(options.device, "torch", "numpy"),
        }

    @property
    def seconds(self) -> float:
        """Since the start."""
        return round(time.perf_counter() - self._begin, 1)

    def train_each(self, train: Callable[[str], dict[str, Any]]) -> None:
        """Trains the chosen networks; the log is written again after each of them.

        Args:
            train: trains the network of a name, writes its checkpoint and returns its log.
        """
        self.log["networks"] = {}
        for name in self._options.networks:
            self.log["networks"][name] = train(name)
            self.log["seconds"] = self.seconds
            file = self._options.output / "training.json"
            file.write_text(json.dumps(self.log, indent=1) + "\n")
        print(f"{self.seconds} s in all", flush=True)
