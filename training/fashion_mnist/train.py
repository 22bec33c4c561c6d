"""Train the Fashion-MNIST float twin and the binary network: the recipe of the checkpoint.

Two stages, all 60,000 training images in both, the last epoch taken as it is (the test images
choose nothing):

1. The float twin, on the labels.
2. The binary network, on the labels and on the twin's softened answers (knowledge distillation).
   Images are only ever mirrored, never shifted, so the twin's answers to every image and to its
   mirror image are computed once and cost nothing per step.

`python -m training.fashion_mnist.train --help` tells the options; README.md states the command that
was used.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-not-found,import-untyped,unused-ignore]

from training.fashion_mnist.dataset import DEFAULT_DIR, Split, load_split
from training.fashion_mnist.fitting import Schedule, evaluate, fit
from training.fashion_mnist.network import KerasModel, build_binary, build_float_twin, lq, tf
from training.training_log import describe_file, describe_machine, now

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parents[1] / "models" / "fashion_mnist"


def save_binary(model: KerasModel, path: Path) -> None:
    """Save a Larq model with its binary weights in a compact h5 file.

    Inside `quantized_scope(True)` Larq hands out sign(w) for every latent kernel w. The forward
    pass only ever uses sign(w), and sign(sign(w)) = sign(w), so the stored model gives equal
    results. Rewritten with byte shuffling and gzip, a kernel of +-1 costs about two bits a weight.

    Args:
        model: trained network of `build_binary`.
        path: `.h5` file to write; replaced if it is there.
    """
    with lq.context.quantized_scope(True):
        model.save(path, save_format="h5", include_optimizer=False)
    loose = path.with_suffix(".loose.h5")
    path.rename(loose)

    def copy(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            packing = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            # One chunk a kernel: h5py's own small chunks would cost a sixth more bytes. What is
            # smaller is not compressed.
            options = {**packing, "chunks": node.shape} if node.size > 2000 else {}
            target = packed.create_dataset(name, data=node[()], track_times=False, **options)
        else:
            target = packed.require_group(name)
        target.attrs.update(node.attrs)

    with h5py.File(loose, "r") as source, h5py.File(path, "w", libver="v110") as packed:
        packed.attrs.update(source.attrs)
        source.visititems(copy)
    loose.unlink()


def obtain_twin(
    path: Path | None, train: Split, test: Split, schedule: Schedule, seed: int
) -> tuple[KerasModel, dict[str, Any]]:
    """Train the float twin, or take it and its log from an earlier run.

    Args:
        path: `.h5` file that keeps the twin, with its log next to it as `.json`; None: keep
        nothing.
        train: the 60,000 images.
        test: the 10,000 images.
        schedule: how to train it, if it must be trained.
        seed: of weights, order and mirroring.

    Returns:
        The trained twin and the log of its training.

    Raises:
        ValueError: if the kept twin was trained by another schedule.
    """
    if path is not None and path.exists():
        log = json.loads(path.with_suffix(".json").read_text())
        wanted = {"schedule": asdict(schedule), "seed": seed}
        kept = {key: log[key] for key in wanted}
        if kept != wanted:
            raise ValueError(f"{path}: trained with {kept}, expected {wanted}; delete it first")
        return tf.keras.models.load_model(path, compile=False), log
    tf.keras.utils.set_random_seed(seed)
    twin = build_float_twin()
    log = fit(twin, train, test, schedule, seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        twin.save(path, save_format="h5", include_optimizer=False)
        path.with_suffix(".json").write_text(json.dumps(log, indent=1) + "\n")
    return twin, log


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--output", type=Path, default=SHIPPED, help="where the .h5 is written")
    parser.add_argument("--log", type=Path, default=HERE / "training.json")
    parser.add_argument("--twin", type=Path, help="keeps the float twin; reused if it is there")
    parser.add_argument("--twin-epochs", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=18, help="of the binary network")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="Adam's, at step 0")
    parser.add_argument("--distill-weight", type=float, default=0.5, help="0: labels alone")
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=20261120)
    return parser.parse_args()


def main() -> None:
    """Train both networks, save the binary one and the log of both."""
    options = parse_arguments()
    train, test = load_split(options.data, "train"), load_split(options.data, "t10k")
    rate, batch_size, seed = options.learning_rate, options.batch_size, options.seed
    print(f"seed {seed}", flush=True)
    twin_schedule = Schedule(options.twin_epochs, batch_size, rate)
    twin, twin_log = obtain_twin(options.twin, train, test, twin_schedule, seed)

    tf.keras.utils.set_random_seed(seed)
    binary = build_binary()
    schedule = Schedule(
        options.epochs, batch_size, rate, options.distill_weight, options.temperature
    )
    log = fit(binary, train, test, schedule, seed, twin)
    options.output.mkdir(parents=True, exist_ok=True)
    checkpoint = options.output / "fashion_mnist_bnn.h5"
    save_binary(binary, checkpoint)
    stored = tf.keras.models.load_model(checkpoint, compile=False)
    report = {
        "command": shlex.join(["python", *sys.argv]),
        "finished": now(),
        "machine": describe_machine("cpu", "tensorflow", "tf_keras", "larq", "numpy", "h5py"),
        "checkpoint": describe_file(checkpoint) | {"test_accuracy": evaluate(stored, test)},
        "test_accuracy": {
            "binary": log["test_accuracy"],
            "float_twin": twin_log["test_accuracy"],
        },
        "binary": log,
        "float_twin": twin_log,
    }
    options.log.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
