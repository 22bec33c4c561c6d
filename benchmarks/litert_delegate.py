"""``phonebit.litert.interpreter``: a file in LiteRT on PhoneBit, PhoneBit alone, and LCE itself.

    python -m benchmarks.litert_delegate FILE.tflite... [--threads 1] [--turns 40]

Batch 1, float32. They take turns, so that what else runs on the machine disturbs all of them;
printed are medians, and medians of the ratios within a turn. Needs LiteRT; Larq Compute Engine's
own interpreter is measured where it is installed, with its option ``use_indirect_bgemm``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import phonebit
import phonebit.litert
from benchmarks.markdown import markdown_table
from benchmarks.peers.workers.larq_worker import interpreter as larq_interpreter
from benchmarks.turns import times_ms


def row_of(file: Path, turns: int, threads: int) -> tuple[str, ...]:
    """A file's times and ratios."""
    inside = phonebit.litert.interpreter(file, threads=threads)
    inside.allocate_tensors()
    given = inside.get_input_details()[0]
    x = np.random.default_rng(1).uniform(-1, 1, given["shape"]).astype(np.float32)
    inside.set_tensor(given["index"], x)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.pbit"
        phonebit.convert(file, path)
        alone = phonebit.Network.load(path, "cpu", threads=threads)
    array = x.reshape(-1, *alone.inputs[0].shape)
    runs: list[Callable[[], Any]] = [lambda: alone(array), inside.invoke]
    if find_spec("larq_compute_engine") is not None:
        larq, _ = larq_interpreter(file.read_bytes(), threads, indirect=True)
        runs.append(lambda: larq.predict([x]))
    times = times_ms(runs, turns).T
    texts = [f"{statistics.median(column):.3g}" for column in times]
    texts += ["-"] * (3 - len(texts)) + [f"{np.median(times[0] / times[1]):.2f}"]
    texts.append(f"{np.median(times[2] / times[1]):.1f}" if len(runs) > 2 else "-")
    return (file.stem, *texts)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a .tflite file")
    parser.add_argument("--threads", type=int, default=1, help="of both")
    parser.add_argument("--turns", type=int, default=40, help="measurements of each")
    options = parser.parse_args()
    titles = ("network", "PhoneBit", "LiteRT", "LCE", "of PhoneBit", "of LCE")
    rows = [row_of(file, options.turns, options.threads) for file in options.files]
    print(markdown_table(titles, rows))


if __name__ == "__main__":
    main()
