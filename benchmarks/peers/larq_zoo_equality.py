"""Networks of larq-zoo in PhoneBit beside Keras: equal tensors, equal classes.

Each network is converted twice. With dyadic weights and BatchNorm float32 arithmetic is exact, so
every tensor that exists on both sides must equal Keras's to the last bit; only what comes after a
mean of 49 pixels, and the softmax, cannot (tests/support/larq_networks.py). With random statistics
``verify`` judges each layer alone and counts float ties; from end to end the classes are counted,
too, but a sign within the rounding of the float layers before it may turn, and untrained networks
magnify that. Run in the environment "tensorflow" of README.md; exit code 1 if something differs
that must not.

    TF_USE_LEGACY_KERAS=1 python -m benchmarks.peers.larq_zoo_equality
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

import phonebit
from benchmarks.command_line import parser_of
from benchmarks.records import RESULTS, write_results
from benchmarks.run_context import run_context
from phonebit.converter.importers.keras.activations import keras_activations
from phonebit.verification import verify
from support.larq_networks import build, integer_pictures, real_pictures

SIZE: Final = 224
NETWORKS: Final = ("quicknet", "birealnet", "binary_alexnet")
FILE: Final = RESULTS / "larq_zoo.json"
INEXACT_LAST: Final = 1
"""The softmax; the networks' means are exact or followed by it alone."""


def convert(model: Any, folder: Path, kind: str) -> Path:
    """Saves a Keras model, converts the file and returns the .pbit file's path."""
    source, target = folder / f"{model.name}_{kind}.h5", folder / f"{model.name}_{kind}.pbit"
    model.save(source, include_optimizer=False)
    phonebit.convert(source, target)
    return target


def compare_tensors(network: phonebit.Network, model: Any, image: np.ndarray) -> dict[str, Any]:
    """How many tensors of one forward pass equal Keras's to the last bit, and which do not."""
    ours = network.activations(image)
    theirs = keras_activations(model, {network.inputs[0].name: image})
    common = [name for name in ours if name in theirs]
    unequal = [name for name in common if not np.array_equal(ours[name], theirs[name])]
    return {"tensors": len(common), "equal": len(common) - len(unequal), "unequal": unequal}


def compare_results(network: phonebit.Network, model: Any, images: np.ndarray) -> dict[str, Any]:
    """How far PhoneBit's outputs are from Keras's on the same images."""
    ours, theirs = network.forward(images), model.predict(images, verbose=0)
    ours = ours.reshape(theirs.shape)
    return {
        "images": len(images),
        "max_difference": float(np.abs(ours - theirs).max()),
        "argmax_equal": int((ours.argmax(-1) == theirs.argmax(-1)).sum()),
    }


def compare(name: str, images: int, folder: Path) -> dict[str, Any]:
    """One network: exactness on dyadic numbers, agreement on random statistics."""
    dyadic = build(name, dyadic=True)
    network = phonebit.Network.load(convert(dyadic, folder, "dyadic"), device="cpu")
    row: dict[str, Any] = {
        "network": name,
        "dyadic": compare_tensors(network, dyadic, integer_pictures(1, SIZE)),
    }
    model = build(name, dyadic=False)
    file = convert(model, folder, "random")
    pictures = real_pictures(images, SIZE)
    row["random"] = compare_results(phonebit.Network.load(file, device="cpu"), model, pictures)
    checked = verify(model, file, pictures)
    row["random"] |= {"verified": checked.passed, "ties": checked.ties}
    return row


def is_equal(row: dict[str, Any]) -> bool:
    """Whether everything that must be equal is."""
    return bool(len(row["dyadic"]["unequal"]) <= INEXACT_LAST and row["random"]["verified"])


def main() -> int:
    """Compares every network, prints and writes the rows."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--images", type=int, default=8, help="inputs whose results are compared")
    parser.add_argument("--json", type=Path, default=FILE)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.networks:
            rows.append(compare(name, options.images, Path(folder)))
            print(json.dumps(rows[-1]), flush=True)
    document = {"context": run_context(), "networks": rows}
    write_results(options.json, document)
    return 0 if all(is_equal(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
