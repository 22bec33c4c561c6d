"""``phonebit.onnxruntime.session``: an ONNX file on PhoneBit, PhoneBit alone, and the CPU provider.

    python -m benchmarks.onnxruntime_provider [--threads 1] [--turns 40]

The networks are exported from PyTorch, batch 1, float32. The three take turns, so that what else
runs on the machine disturbs all of them; printed are medians, and medians of the ratios within a
turn. Needs PyTorch and ONNX Runtime.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import phonebit
import phonebit.onnxruntime
from benchmarks.accelerate import FACTORIES, SHAPE, network_of
from benchmarks.markdown import markdown_table
from benchmarks.turns import times_ms
from support.torch_networks import statistics as made_up


def row_of(name: str, turns: int, threads: int, folder: Path) -> tuple[str, ...]:
    """A network's times and ratios."""
    module, image = network_of(FACTORIES[name]), made_up.images(SHAPE, 1, 2)
    source, file = folder / "network.onnx", folder / "network.pbit"
    with warnings.catch_warnings(action="ignore"):  # PyTorch's, of its older exporter
        torch.onnx.export(module, (image,), source, dynamo=False, input_names=["image"])
    phonebit.convert(source, file)
    alone = phonebit.Network.load(file, "cpu", threads=threads)
    session = phonebit.onnxruntime.session(source, threads=threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    floats = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    given = image.numpy()
    array, feeds = np.ascontiguousarray(given.transpose(0, 2, 3, 1)), {"image": given}
    runs = [lambda: alone(array), lambda: session.run(None, feeds), lambda: floats.run(None, feeds)]
    own, inside, cpu = times_ms(runs, turns).T
    return (
        name,
        *(f"{statistics.median(column):.3g}" for column in (own, inside, cpu)),
        f"{np.median(own / inside):.2f}",
        f"{np.median(cpu / inside):.1f}",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--threads", type=int, default=1, help="of PhoneBit and of ONNX Runtime")
    parser.add_argument("--turns", type=int, default=40, help="measurements of each")
    options = parser.parse_args()
    titles = (
        "network",
        "PhoneBit",
        "session",
        "CPU provider",
        "of PhoneBit",
        "of the CPU provider",
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = [row_of(name, options.turns, options.threads, Path(folder)) for name in FACTORIES]
    print(markdown_table(titles, rows))


if __name__ == "__main__":
    main()
