"""PhoneBit beside Larq Compute Engine on larq-zoo networks: equal results, then speed, in one run.

Each network is converted twice. With dyadic weights and BatchNorm float32 arithmetic is exact, so
every tensor that exists on both sides must equal Keras's to the last bit; only what comes after a
mean of 49 pixels, and the softmax, cannot (larq_zoo_models.py). With random statistics the argmax
must agree, and ``verify`` judges each layer alone and counts float ties. Then both engines run the
second network, A B A B ..., on the same input. Needs tests/framework-requirements.txt and

    TF_USE_LEGACY_KERAS=1 python benchmarks/peers/compare_larq_compute_engine.py --json lce.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import larq_compute_engine as lce
import numpy as np
from benchmark_context import run_context
from larq_compute_engine.tflite.python.interpreter import Interpreter
from larq_zoo_models import NETWORKS, build, integer_pictures, real_pictures
from rich.console import Console
from rich.progress import track
from rich.table import Table

import phonebit
from phonebit.converter.importers.keras_activations import keras_activations
from phonebit.verification import verify

SIZE = 224
PAUSE_S = 0.05


def milliseconds(call: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def interleaved(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """Times of ``runs`` rounds, every call in turn; two rounds before are not counted.

    The pause lets worker threads of the one engine stop spinning before the other is timed, and an
    uncounted call wakes the other's.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(runs + 2):
        for name, call in calls.items():
            time.sleep(PAUSE_S)
            call()
            elapsed = milliseconds(call)
            if round_ >= 2:
                times[name].append(elapsed)
    return times


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


def compare(name: str, runs: int, images: int, folder: Path) -> dict[str, Any]:
    """One network: exactness on dyadic numbers, agreement and speed on random statistics."""
    row: dict[str, Any] = {"network": name}
    dyadic = build(name, dyadic=True)
    network = phonebit.Network.load(convert(dyadic, folder, "dyadic"))
    row["dyadic"] = compare_tensors(network, dyadic, integer_pictures(1, SIZE))
    model = build(name, dyadic=False)
    file = convert(model, folder, "random")
    pictures = real_pictures(images, SIZE)
    row["random"] = compare_results(phonebit.Network.load(file), model, pictures)
    checked = verify(model, file, pictures)
    row["random"] |= {"verified": checked.passed, "ties": checked.ties}
    flatbuffer = lce.convert_keras_model(model)
    row["size_bytes"] = {"phonebit": file.stat().st_size, "lce": len(flatbuffer)}
    one = pictures[:1]
    for threads in (1, 2):
        network = phonebit.Network.load(file, threads=threads)
        peer = Interpreter(flatbuffer, num_threads=threads)
        times = interleaved(
            {"phonebit": lambda n=network: n.forward(one), "lce": lambda p=peer: p.predict(one)},
            runs,
        )
        medians = {engine: statistics.median(values) for engine, values in times.items()}
        row[f"threads_{threads}"] = {
            "median_ms": medians,
            "min_ms": {engine: min(values) for engine, values in times.items()},
            "ratio": statistics.median(b / a for a, b in zip(*times.values(), strict=True)),
        }
    return row


def table(rows: list[dict[str, Any]]) -> Table:
    """The rows as people read them."""
    out = Table(title="PhoneBit beside Larq Compute Engine, 224x224, batch 1, median ms")
    for column in ("network", "dyadic: equal tensors", "random: argmax", "ties", "max diff"):
        out.add_column(column)
    for threads in (1, 2):
        out.add_column(f"{threads} thread: LCE", justify="right")
        out.add_column("PhoneBit", justify="right")
        out.add_column("ratio", justify="right")
    for row in rows:
        cells = [
            row["network"],
            f"{row['dyadic']['equal']}/{row['dyadic']['tensors']}",
            f"{row['random']['argmax_equal']}/{row['random']['images']}",
            str(row["random"]["ties"]),
            f"{row['random']['max_difference']:.1e}",
        ]
        for threads in (1, 2):
            timing = row[f"threads_{threads}"]
            cells += [
                f"{timing['median_ms']['lce']:.1f}",
                f"{timing['median_ms']['phonebit']:.2f}",
                f"{timing['ratio']:.1f}x",
            ]
        out.add_row(*cells)
    return out


def main() -> None:
    """Runs the comparison for every network and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--runs", type=int, default=15, help="counted runs of each engine")
    parser.add_argument("--images", type=int, default=4, help="inputs whose results are compared")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            compare(name, options.runs, options.images, Path(folder))
            for name in track(options.networks, console=console)
        ]
    console.print(table(rows))
    if options.json:
        document = {"context": run_context(), "runs": options.runs, "networks": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
