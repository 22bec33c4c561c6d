"""Trains the float twins and the binary networks: the recipe of the checkpoints.

For each network: the float twin on the labels; the binary network on the labels and the twin's
answers to the same images (knowledge distillation); then its numbers become dyadic (dyadic.py).
All 60,000 training images, shifted and mirrored; the last epoch is taken as it is, and the test
images choose nothing.

    python -m training.fashion_mnist_torch.train --output DIR    # in a checkout: torch and numpy

PhoneBit itself is not needed.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.fashion_mnist_torch.dyadic import check_exact, make_dyadic
from training.fashion_mnist_torch.fitting import Schedule, accuracy, fit
from training.fashion_mnist_torch.images import DEFAULT_DIR, TensorSplit
from training.fashion_mnist_torch.networks import BINARY, NETWORKS
from training.packed_checkpoint import load, save
from training.training_log import describe_file
from training.training_run import TrainingRun, recipe_parser

EXACT_IMAGES = 256
"""Test images on which float32 is compared with float64."""


def parameter_hash(network: nn.Module) -> str:
    """SHA-256 of all parameters and statistics, in the order of the state."""
    digest = hashlib.sha256()
    for tensor in network.state_dict().values():
        digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def train_pair(
    name: str, train: TensorSplit, test: TensorSplit, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains one network in both forms and writes its checkpoint.

    Args:
        name: in ``NETWORKS``.
        train: training images, on the device.
        test: test images, on the device; looked at after the last epoch only.
        options: of the command line.

    Returns:
        JSON-ready log of both trainings, with accuracies (0..1) and hashes.
    """
    device, seed = options.device, options.seed
    how_float = Schedule(
        options.float_epochs,
        options.batch_size,
        options.float_rate,
        weight_decay=0.05,
        label_smoothing=0.1,
    )
    how_binary = Schedule(
        options.epochs,
        options.batch_size,
        options.rate,
        options.latent_rate,
        distill_weight=options.distill_weight,
        temperature=options.temperature,
    )
    print(f"{name}, float twin", flush=True)
    torch.manual_seed(seed)
    twin = NETWORKS[name]("float").to(device, memory_format=torch.channels_last)
    twin_log = fit(twin, train, how_float, seed)
    twin_log["test_accuracy"] = accuracy(twin, test)
    twin_log["sha256_of_parameters"] = parameter_hash(twin)
    print(f"{name}, binary; twin: {twin_log['test_accuracy']:.4f}", flush=True)
    torch.manual_seed(seed)
    binary = NETWORKS[name]("binary").to(device, memory_format=torch.channels_last)
    log = fit(binary, train, how_binary, seed, twin)
    log["test_accuracy_before_dyadic"] = accuracy(binary, test)
    make_dyadic(binary)
    path = options.output / f"{name}.pth"
    save(binary, name, path)
    _, stored = load(path, BINARY)
    check_exact(stored, test.inputs(0, EXACT_IMAGES).cpu())
    log["test_accuracy"] = accuracy(stored.to(device), test)
    log["checkpoint"] = describe_file(path)
    print(
        f"{name}: binary {log['test_accuracy']:.4f}, before the dyadic step "
        f"{log['test_accuracy_before_dyadic']:.4f}, {path.stat().st_size} bytes",
        flush=True,
    )
    return {"binary": log, "float_twin": twin_log}


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = recipe_parser(
        __doc__.splitlines()[0],
        NETWORKS,
        chosen=NETWORKS,
        data=DEFAULT_DIR,
        output=Path(__file__).parent,
        seed=20261122,
    )
    parser.add_argument("--float-epochs", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=30, help="of the binary networks")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--float-rate", type=float, default=1e-3, help="the twins' largest")
    parser.add_argument("--rate", type=float, default=5e-4, help="BNNs', of real parameters")
    parser.add_argument("--latent-rate", type=float, default=3e-3, help="BNNs', of latent weights")
    parser.add_argument("--distill-weight", type=float, default=0.5, help="0: labels alone")
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--limit", type=int, help="images of each half, for a short run")
    return parser.parse_args()


def main() -> None:
    """Trains the networks."""
    options = parse_arguments()
    run = TrainingRun("training.fashion_mnist_torch.train", options)
    train = TensorSplit.load(options.data, "train", options.device, options.limit)
    test = TensorSplit.load(options.data, "t10k", options.device, options.limit)
    run.log |= {"seed": options.seed, "training_pictures": len(train)}
    run.train_each(lambda name: train_pair(name, train, test, options))


if __name__ == "__main__":
    main()
