"""Mean average precision of the checkpoints, in PyTorch and in PhoneBit: equal, number by number.

python -m training.garment_scenes.evaluate               # from the checkout's root
python -m training.garment_scenes.evaluate --pbit yolo.pbit --scenes 20
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import phonebit
from phonebit.converter.convert import Conversion, convert_graph
from phonebit.converter.importers.torch.importer import import_torch
from phonebit.detection import read_head
from phonebit.images.preprocessing import Preprocessing, Resize
from training.fashion_mnist.dataset import CLASS_NAMES, DEFAULT_DIR
from training.fashion_mnist_torch.images import INPUT_RANGE
from training.garment_scenes.anchors import SEED
from training.garment_scenes.fitting import precision_of
from training.garment_scenes.scene_set import SceneSet
from training.garment_scenes.scene_workers import make_scenes
from training.garment_scenes.scenes import SIDE
from training.garment_scenes.train import HERE, NETWORKS
from training.packed_checkpoint import load
from training.training_log import finish_evaluation

BATCH: Final = 10
FILL_LEVEL: Final = 114
"""Around images that are no squares: a middle gray."""
Outputs = NDArray[np.float32]


@dataclass(frozen=True)
class Comparison:
    """PyTorch and the engine on the same scenes.

    Attributes:
        torch_outputs: float32 (N, 13, 13, 75).
        engine_outputs: the same of each engine.
    """

    torch_outputs: Outputs
    engine_outputs: list[Outputs]

    def equal(self) -> list[int]:
        """Scenes with all numbers equal to the last bit, of each engine."""
        return [
            int(np.count_nonzero((outputs == self.torch_outputs).all((1, 2, 3))))
            for outputs in self.engine_outputs
        ]


def convert(network: nn.Module, name: str) -> Conversion:
    """A detector that reads u8[416][416][3]; strict: every layer trained as binary is so."""
    return convert_graph(
        import_torch(network, example_input=torch.zeros(1, 3, SIDE, SIDE)),
        input_dtype="u8",
        preprocessing=Preprocessing(INPUT_RANGE, resize=Resize.LETTERBOX, fill_level=FILL_LEVEL),
        labels=CLASS_NAMES,
        detection=read_head(HERE / "detection.toml"),
        strict=True,
        name=name,
        origin={"framework": "torch"},
    )


@torch.no_grad()
def compare(network: nn.Module, engines: list[phonebit.Network], scenes: SceneSet) -> Comparison:
    """Runs scenes in PyTorch, once, and in engines.

    Args:
        network: in eval mode, float32, on the CPU.
        engines: its conversion, on one or more devices.
        scenes: on the CPU.
    """

    def batches() -> Iterator[tuple[int, int]]:
        for begin in range(0, len(scenes), BATCH):
            yield begin, min(begin + BATCH, len(scenes))

    expected = [network(scenes.inputs(*batch)).permute(0, 2, 3, 1).numpy() for batch in batches()]
    results = []
    for engine in engines:
        levels = (scenes.images[begin:end].permute(0, 2, 3, 1) for begin, end in batches())
        results.append(
            np.concatenate(
                [np.asarray(engine.forward(np.ascontiguousarray(x.numpy()))) for x in levels]
            )
        )
    return Comparison(np.concatenate(expected), results)


def evaluate(
    path: Path, devices: list[str], scenes: SceneSet, pbit: Path | None = None
) -> dict[str, Any]:
    """Converts one checkpoint and compares.

    Args:
        path: of the `.pth` file.
        devices: as ``Network.load`` names them.
        scenes: test scenes, on the CPU.
        pbit: keeps the converted file.

    Returns:
        JSON-ready row; precisions are 0..1.
    """
    name, network = load(path, NETWORKS)
    conversion = convert(network, name)
    with tempfile.TemporaryDirectory() as folder:
        file = pbit or Path(folder) / f"{name}.pbit"
        file.write_bytes(conversion.content)
        engines = [phonebit.Network.load(file, device) for device in devices]
        comparison = compare(network, engines, scenes)
    head = read_head(HERE / "detection.toml")
    mean, each = precision_of(comparison.torch_outputs, scenes, head)
    return {
        "network": name,
        "scenes": len(scenes),
        "garments": sum(len(truth.classes) for truth in scenes.truths),
        "map_in_torch": mean,
        "average_precision_in_torch": dict(zip(CLASS_NAMES, each, strict=True)),
        "engine": {
            device: {
                "map": precision_of(outputs, scenes, head)[0],
                "scenes_with_equal_outputs": equal,
            }
            for device, outputs, equal in zip(
                devices, comparison.engine_outputs, comparison.equal(), strict=True
            )
        },
        "binary_mac_share": conversion.report.binary_mac_share,
        "checkpoint_bytes": path.stat().st_size,
        "pbit_bytes": len(conversion.content),
    }


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Compare mean average precisions.")
    parser.add_argument("checkpoints", nargs="*", type=Path, help="all in the recipe's folder")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIR, help="folder of the four .gz")
    parser.add_argument("--training", type=Path, default=HERE / "training.json")
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/detection.json"))
    parser.add_argument("--scenes", type=int, default=500)
    parser.add_argument("--pbit", type=Path, help="keep the (last) converted file")
    options = parser.parse_args()
    options.checkpoints = options.checkpoints or sorted(HERE.glob("*.pth"))
    if not options.checkpoints:
        parser.error(f"no .pth in {HERE}; name one, or write it with train.py")
    return options


def main() -> int:
    """Evaluates the checkpoints and writes the results; 1 if a number differs."""
    options = parse_arguments()
    training = json.loads(options.training.read_text())
    made = make_scenes(options.data, "t10k", options.scenes, SEED)
    scenes = SceneSet.collect(made, options.scenes)
    rows = []
    for path in options.checkpoints:
        rows.append(evaluate(path, options.devices, scenes, options.pbit))
        print(json.dumps(rows[-1]), flush=True)
    networks = training["networks"].items()
    more = {
        "scenes": training["scenes"]["train"],
        "seconds": {name: network["seconds"] for name, network in networks},
        "steps": {name: network["steps"] for name, network in networks},
    }
    compared = ("scenes", "scenes_with_equal_outputs")
    module = "training.garment_scenes.evaluate"
    return finish_evaluation(module, options.output, training, more, rows, compared)


if __name__ == "__main__":
    sys.exit(main())
