"""Trains YOLOv2-Tiny on garment scenes: the recipe of the checkpoint.

Scenes are made first, by all cores, and stay on the GPU as bytes. The networks are binary from the
first step on: signs forward, straight-through gradients backward, Adam on latent weights in -1..1.
The last step is taken as it is, and the test scenes choose nothing. At the end the last layer's
float weights are rounded, so that every engine gets the same bits; precision is measured then.

    python -m training.garment_scenes.train --output DIR   # in a checkout: torch and numpy
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from phonebit.detection import read_head
from training.fashion_mnist.dataset import CLASS_NAMES, DEFAULT_DIR
from training.garment_scenes.anchors import SEED
from training.garment_scenes.fitting import Schedule, fit, head_outputs, precision_of
from training.garment_scenes.network import round_last_layer_, yolov2_tiny
from training.garment_scenes.scene_set import SceneSet
from training.garment_scenes.scene_workers import make_scenes
from training.packed_checkpoint import load, save
from training.training_log import describe_file
from training.training_run import TrainingRun, recipe_parser

HERE: Final = Path(__file__).resolve().parent
NETWORKS: Final[dict[str, Callable[[], nn.Module]]] = {
    "yolov2_tiny_quarter": partial(yolov2_tiny, 0.25),
    "yolov2_tiny_half": partial(yolov2_tiny, 0.5),
    "yolov2_tiny": partial(yolov2_tiny, 1.0),
}
"""By name: builds the untrained network of a width."""


def train_network(
    name: str, train: SceneSet, test: SceneSet, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains one network, writes its checkpoint and measures what was written.

    Args:
        name: in ``NETWORKS``.
        train: training scenes, on the device.
        test: test scenes, on the device; looked at after the last step only.
        options: of the command line.

    Returns:
        JSON-ready log.
    """
    head = read_head(HERE / "detection.toml")
    anchors = torch.tensor(head.anchors, device=options.device)
    torch.manual_seed(options.seed)
    network = NETWORKS[name]().to(options.device, memory_format=torch.channels_last)
    how = Schedule(options.steps, options.minutes, options.batch_size, options.rate, options.half)
    print(f"{name}: {sum(p.numel() for p in network.parameters())} weights", flush=True)
    log = fit(network, train, anchors, how, options.seed)
    before, _ = precision_of(head_outputs(network, test), test, head)
    round_last_layer_(network)
    path = options.output / f"{name}.pth"
    save(network, name, path)
    _, stored = load(path, NETWORKS)
    mean, each = precision_of(head_outputs(stored.to(options.device), test), test, head)
    print(f"{name}: mAP {mean:.4f}, {before:.4f} before rounding", flush=True)
    log["map_before_rounding"] = before
    log["map"] = mean
    log["average_precision"] = dict(zip(CLASS_NAMES, each, strict=True))
    log["checkpoint"] = describe_file(path)
    return log


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = recipe_parser(
        __doc__.splitlines()[0],
        NETWORKS,
        chosen=("yolov2_tiny_half", "yolov2_tiny"),
        data=DEFAULT_DIR,
        output=HERE,
        seed=SEED,
    )
    parser.add_argument("--scenes", type=int, default=24000, help="to train with")
    parser.add_argument("--test-scenes", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=5.0, help="of steps, for each network")
    parser.add_argument("--steps", type=int, default=0, help="instead of minutes")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rate", type=float, default=3e-3, help="the largest learning rate")
    parser.add_argument("--no-half", dest="half", action="store_false", help="train in float32")
    return parser.parse_args()


def main() -> None:
    """Makes the scenes, then trains the networks."""
    options = parse_arguments()
    run = TrainingRun("training.garment_scenes.train", options)
    data, device = options.data, options.device
    made = make_scenes(data, "train", options.scenes, SEED)
    train = SceneSet.collect(made, options.scenes, device)
    made = make_scenes(data, "t10k", options.test_scenes, SEED)
    test = SceneSet.collect(made, options.test_scenes, device)
    print(f"{len(train)} scenes in {run.seconds:.0f} s", flush=True)
    run.log["scenes"] = {"train": len(train), "test": len(test), "seed": SEED}
    run.train_each(lambda name: train_network(name, train, test, options))


if __name__ == "__main__":
    main()
