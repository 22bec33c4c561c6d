"""Every network of larq-zoo and the published PyTorch ones: what converts, how well, how small.

    python -m benchmarks.conversion.table                             # all
    python -m benchmarks.conversion.table --only QuickNet birealnet18 # only shown

It ends with the operators of each source. ``python -m benchmarks.results_page`` writes
docs/networks.md and docs/results/networks.md from the results. Needs PyTorch and brevitas, and
tests/framework-requirements.txt for larq-zoo; what is absent is said in its row. Each
network is converted, compared with its framework and counted in a process of its own (``--row``),
which prints a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import phonebit
from benchmarks.command_line import ProcessError, parser_of, row_of_process
from benchmarks.conversion.document import FILE, LARQ_ZOO, TASKS_FILE, tables
from benchmarks.markdown import markdown_table
from benchmarks.records import RESULTS, run_context, write_results
from phonebit.converter.cost import bytes_moved
from phonebit.converter.importers.onnx.rules import STANDARD
from phonebit.converter.importers.onnx.rules.quantizers import QUANTIZERS
from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.importers.tflite.rules import RULES as TFLITE
from phonebit.converter.importers.torch.translation import RULES as ATEN
from phonebit.converter.reader import read_graph
from phonebit.errors import PhoneBitError
from phonebit.verification import verify
from support.torch_networks import NETWORKS as PYTORCH
from support.torch_networks import TASKS, channels_last

MODULE: Final = "benchmarks.conversion.table"
TIMEOUT_S: Final = 1800
IMAGES: Final = 4
SEED: Final = 1
SIZE: Final = 224
CALIBRATION: Final = 8
"""Images that batch statistics are taken from; of one, dense layers would have no variance."""
FILES: Final = {FILE: [*LARQ_ZOO, *PYTORCH], TASKS_FILE: [*TASKS]}
"""Networks of each file of results."""

Row = dict[str, Any]
"""What the table says of a network; ``page.md`` describes its columns.

Besides these: ``converts``, "yes" or "no", and the ``reason``; ``missed``, layers
trained as binary that did not become so; ``tolerance`` of a difference that no rounding-sensitive
sign explains; ``unexplained``, images whose result differs without such a cause.
"""


def row_of(name: str, converts: str, reason: str = "") -> Row:
    """What every row has."""
    framework = "Larq" if name in LARQ_ZOO else "PyTorch"
    return {"network": name, "framework": framework, "converts": converts, "reason": reason,
            "pictures": 0}  # fmt: skip


def network_of(name: str) -> tuple[Any, NDArray[np.float32], tuple[int, ...] | None]:
    """A network with random weights, its inputs (N, H, W, C), what PyTorch reads."""
    if name not in LARQ_ZOO:
        entry = {**PYTORCH, **TASKS}[name]
        module = entry.build("random", SEED, small=False)
        inputs = entry.inputs("random", IMAGES, SEED + 1, small=False)
        return module, channels_last(inputs), (1, *inputs.shape[1:])
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import larq_zoo

    from support.larq_networks import float_images, make_random

    folder = larq_zoo.sota if name.startswith("QuickNet") else larq_zoo.literature
    model = getattr(folder, name)(input_shape=(SIZE, SIZE, 3), weights=None)
    make_random(model, float_images(CALIBRATION, SIZE, SEED), SEED)
    return model, float_images(IMAGES, SIZE, SEED + 1), None


def measure(name: str) -> Row:
    """Converts and compares one network."""
    model, inputs, input_shape = network_of(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.pbit"
        begin = time.perf_counter()
        try:
            report = phonebit.convert(model, file, input_shape=input_shape)
        except PhoneBitError as error:
            return row_of(name, "no", str(error))
        row = row_of(name, "yes") | {"seconds": time.perf_counter() - begin}
        options = ImportOptions(input_shape=input_shape)
        checked = verify(model, phonebit.Network.load(file, "cpu"), inputs, options=options)
        row |= {
            "input_shape": inputs.shape[1:],
            "binary_share": report.binary_mac_share,
            "missed": len(report.missed),
            "float_bytes": report.size_before_bytes,
            "file_bytes": report.size_after_bytes,
            "kernels": len(report.layers),
            "moved_bytes": bytes_moved(read_graph(file)),
        }
    end, layers = checked.end_to_end, checked.layers
    equal = sum(layer.verdict == "equal" for layer in layers)
    return row | {
        "pictures": end.samples,
        "same_argmax": end.same_argmax,
        "max_difference": end.max_abs_difference,
        "tolerance": end.tolerance,
        "layers": len(layers),
        "equal_layers": equal,
        "close_layers": len(layers) - equal - sum(layer.mismatch for layer in layers),
        "tied_pictures": end.samples_with_ties,
        "unexplained": len(end.unexplained),
    }


def measured(name: str) -> Row:
    """The network's row, from a child process; a crash is a row that says so."""
    print(name, flush=True)
    try:
        return row_of_process(MODULE, "--row", name, timeout_s=TIMEOUT_S)
    except ProcessError as error:
        return row_of(name, "no", str(error))


def operators() -> str:
    """The operators of each source that have a rule, by name."""
    onnx = {*STANDARD, *QUANTIZERS}
    sources = {"PyTorch (aten)": {*ATEN}, "ONNX and QONNX": onnx, "TensorFlow Lite": {*TFLITE}}
    rows = [(name, str(len(rules)), ", ".join(sorted(rules))) for name, rules in sources.items()]
    return markdown_table(("source", "operators", "names"), rows, texts=3)


def main() -> None:
    """Measures and prints; writes the files of results whose networks were all measured."""
    every = [name for names in FILES.values() for name in names]
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--row", choices=every, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.row)))
        return
    rows = {name: measured(name) for name in options.only or every}
    print(tables(list(rows.values())))
    print(operators())
    for file, names in FILES.items():
        if rows.keys() >= set(names):
            content = {"context": run_context(), "networks": [rows[name] for name in names]}
            write_results(RESULTS / file, content)


if __name__ == "__main__":
    main()
