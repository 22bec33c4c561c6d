"""Accuracy of the checkpoints, in PyTorch and in PhoneBit: equal, logit by logit.

    python -m training.fashion_mnist_torch.evaluate          # from the checkout's root
    python -m training.fashion_mnist_torch.evaluate --devices cpu gpu

Also with full-precision layers in 8 bits (`--float-weights i8`, `--precision fast`), which rounds.
The float twins' accuracy is that of training.json, since their weights are not kept.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

import phonebit
from phonebit.converter.convert import Conversion, convert_graph
from phonebit.converter.importers.torch.importer import import_torch
from phonebit.converter.passes.pipeline import FloatWeights
from training.fashion_mnist_torch.images import CLASS_NAMES, DEFAULT_DIR, INPUT_RANGE, TensorSplit
from training.fashion_mnist_torch.layers import SIDE
from training.fashion_mnist_torch.networks import BINARY
from training.packed_checkpoint import load
from training.training_log import finish_evaluation

HERE: Final = Path(__file__).parent
BATCH: Final = 250


@dataclass(frozen=True)
class Comparison:
    """PyTorch and the engine on the same images.

    Attributes:
        images: how many.
        right_in_torch: images whose largest logit is the label's, in PyTorch.
        right_in_engine: the same in the engine.
        equal: images with all logits equal to the last bit.
        same_class: images whose largest logit is the same one.
    """

    images: int
    right_in_torch: int
    right_in_engine: int
    equal: int
    same_class: int


def convert(network: nn.Module, name: str, float_weights: FloatWeights = "f32") -> Conversion:
    """A binary network that reads u8[32][32][1]; strict: every layer trained as binary is so."""
    graph = import_torch(network, example_input=torch.zeros(1, 1, SIDE, SIDE))
    return convert_graph(
        graph,
        input_dtype="u8",
        input_range=INPUT_RANGE,
        labels=CLASS_NAMES,
        strict=True,
        name=name,
        origin={"framework": "torch"},
        float_weights=float_weights,
    )


@torch.no_grad()
def compare(
    network: nn.Module, engines: list[phonebit.Network], split: TensorSplit
) -> list[Comparison]:
    """Runs images in PyTorch, once, and in engines.

    Args:
        network: in eval mode, float32, on the CPU.
        engines: its conversion, on one or more devices.
        split: images, on the CPU.

    Returns:
        One for each engine.
    """
    right = 0
    counts = np.zeros((len(engines), 3), np.int64)
    for begin in range(0, len(split), BATCH):
        end = begin + BATCH
        expected = network(split.inputs(begin, end)).numpy()
        labels = split.labels[begin:end].numpy()
        right += int(np.count_nonzero(expected.argmax(1) == labels))
        levels = np.ascontiguousarray(split.levels(begin, end).numpy()[..., np.newaxis])
        for count, engine in zip(counts, engines, strict=True):
            logits = np.asarray(engine.forward(levels)).reshape(expected.shape)
            count += (
                np.count_nonzero(logits.argmax(1) == labels),
                np.count_nonzero((logits == expected).all(1)),
                np.count_nonzero(logits.argmax(1) == expected.argmax(1)),
            )
    return [Comparison(len(split), right, *map(int, count)) for count in counts]


def evaluate(path: Path, devices: list[str], test: TensorSplit) -> dict[str, Any]:
    """Converts one checkpoint and compares.

    Args:
        path: of the `.pth` file.
        devices: as ``Network.load`` names them.
        test: the test images, on the CPU.

    Returns:
        JSON-ready row; accuracies are shares, 0..1.
    """
    name, network = load(path, BINARY)
    conversion = convert(network, name)
    with tempfile.TemporaryDirectory() as folder:
        file, in_8_bits = (Path(folder) / f"{name}{suffix}.pbit" for suffix in ("", "_i8"))
        file.write_bytes(conversion.content)
        in_8_bits.write_bytes(convert(network, name, "i8").content)
        engines = [phonebit.Network.load(file, device) for device in devices]
        engines.append(phonebit.Network.load(in_8_bits, "cpu", precision="fast"))
        *comparisons, eight_bits = compare(network, engines, test)
    return {
        "network": name,
        "pictures": len(test),
        "accuracy_in_torch": comparisons[0].right_in_torch / len(test),
        "engine": {
            device: {
                "accuracy": result.right_in_engine / len(test),
                "pictures_with_equal_logits": result.equal,
            }
            for device, result in zip(devices, comparisons, strict=True)
        },
        "layers_in_8_bits": {
            "accuracy": eight_bits.right_in_engine / len(test),
            "pictures_with_same_class": eight_bits.same_class,
        },
        "binary_mac_share": conversion.report.binary_mac_share,
        "checkpoint_bytes": path.stat().st_size,
        "pbit_bytes": len(conversion.content),
    }


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--folder", type=Path, default=HERE, help="of the .pth and training.json")
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/accuracy.json"))
    parser.add_argument("--limit", type=int, help="test images, for a short run")
    return parser.parse_args()


def main() -> int:
    """Evaluates all networks and writes the results; 1 if a logit differs."""
    options = parse_arguments()
    training = json.loads((options.folder / "training.json").read_text())
    test = TensorSplit.load(options.data, "t10k", limit=options.limit)
    rows = []
    for name in training["networks"]:
        row = evaluate(options.folder / f"{name}.pth", options.devices, test)
        twin = training["networks"][name]["float_twin"]
        rows.append({**row, "accuracy_of_float_twin": twin["test_accuracy"]})
        print(json.dumps(rows[-1]), flush=True)
    return finish_evaluation(
        "training.fashion_mnist_torch.evaluate",
        options.output,
        training,
        {"seconds": training["seconds"]},
        rows,
        ("pictures", "pictures_with_equal_logits"),
    )


if __name__ == "__main__":
    sys.exit(main())
