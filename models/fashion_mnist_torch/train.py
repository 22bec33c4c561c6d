"""Trains the float twins and the binary networks: the recipe behind the checkpoints.

For each network: the float twin on the labels; the binary network on the labels and the twin's
answers to the same pictures (knowledge distillation); then its numbers become dyadic (dyadic.py).
All 60,000 training pictures, shifted and mirrored; the last epoch is taken as it is, and the test
pictures choose nothing.

    python -m models.fashion_mnist_torch.train --output DIR        # in a checkout: torch and numpy

PhoneBit itself is not needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..packed_checkpoint import load, save  # noqa: TID252
from ..training_log import describe_file, describe_machine, now  # noqa: TID252
from .dyadic import check_exact, make_dyadic
from .fitting import Schedule, accuracy, fit
from .networks import BINARY, NETWORKS
from .pictures import DEFAULT_DIR, TensorSplit

EXACT_PICTURES = 256
"""Test pictures on which float32 is compared with float64."""


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
        train: training pictures, on the device.
        test: test pictures, on the device; looked at after the last epoch only.
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
    check_exact(stored, test.inputs(0, EXACT_PICTURES).cpu())
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="of .pth, .json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--float-epochs", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=30, help="of the binary networks")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--float-rate", type=float, default=1e-3, help="the twins' largest")
    parser.add_argument("--rate", type=float, default=5e-4, help="BNNs', of real parameters")
    parser.add_argument("--latent-rate", type=float, default=3e-3, help="BNNs', of latent weights")
    parser.add_argument("--distill-weight", type=float, default=0.5, help="0: labels alone")
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--limit", type=int, help="pictures of each half, for a trial")
    options = parser.parse_args()
    options.networks = options.networks or list(NETWORKS)
    unknown = [name for name in options.networks if name not in NETWORKS]
    if unknown:
        parser.error(f"got {', '.join(unknown)}, expected some of {', '.join(NETWORKS)}")
    return options


def main() -> None:
    """Trains the networks one after the other; the log is written again after each of them."""
    options = parse_arguments()
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    options.output.mkdir(parents=True, exist_ok=True)
    train = TensorSplit.load(options.data, "train", options.device, options.limit)
    test = TensorSplit.load(options.data, "t10k", options.device, options.limit)
    arguments = shlex.join(sys.argv[1:])
    log: dict[str, Any] = {
        "command": f"python -m models.fashion_mnist_torch.train {arguments}".strip(),
        "started": now(),
        "machine": describe_machine(options.device),
        "seed": options.seed,
        "training_pictures": len(train),
        "networks": {},
    }
    start = time.perf_counter()
    for name in options.networks:
        log["networks"][name] = train_pair(name, train, test, options)
        log["seconds"] = round(time.perf_counter() - start, 1)
        (options.output / "training.json").write_text(json.dumps(log, indent=1) + "\n")
    print(f"{log['seconds']} s in all", flush=True)


if __name__ == "__main__":
    main()
