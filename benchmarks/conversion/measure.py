"""One network of the table, in a process of its own: convert, compare with its framework, count.

python -m benchmarks.conversion.measure birealnet18 --json row.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import phonebit
from benchmarks.conversion.networks import Subject, build, framework_of, missing_packages
from phonebit.converter.cost import bytes_moved
from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.reader import read_graph
from phonebit.converter.report import ConversionReport
from phonebit.errors import PhoneBitError
from phonebit.verification import VerificationReport, verify

PICTURES = 4


@dataclass
class Row:
    """What the table says of a network.

    Attributes:
        network: Its name.
        framework: "Larq" or "PyTorch".
        converts: "yes", "no" or "not installed".
        reason: Why it does not convert, or which package is missing; else "".
        input_shape: (height, width, channels).
        seconds: Duration of ``phonebit.convert``, its own reference check included.
        binary_share: Share of the multiply-accumulates that is binary, 0..1.
        missed: Layers trained as binary that did not become so.
        float_bytes: All parameters as float32.
        file_bytes: The ``.pbit`` file.
        kernels: Ops in a forward pass.
        moved_bytes: ``phonebit.converter.cost.bytes_moved``.
        pictures: Inputs compared.
        same_argmax: Of those, how many have the framework's best class.
        max_difference: Largest difference of an output element, end to end.
        tolerance: Of such a difference where no tie explains it.
        layers: Ops judged alone, fed with the framework's own values.
        equal_layers: Of those, how many are equal to the last bit.
        close_layers: How many more are within 1e-5 of the layer's largest value, ties included.
        tied_pictures: Inputs with a float tie or an exact zero on their way end to end.
        unexplained: Inputs whose result differs with neither as its cause.
    """

    network: str
    framework: str
    converts: str
    reason: str = ""
    input_shape: tuple[int, ...] = ()
    seconds: float = 0.0
    binary_share: float = 0.0
    missed: int = 0
    float_bytes: int = 0
    file_bytes: int = 0
    kernels: int = 0
    moved_bytes: int = 0
    pictures: int = 0
    same_argmax: int = 0
    max_difference: float = 0.0
    tolerance: float = 0.0
    layers: int = 0
    equal_layers: int = 0
    close_layers: int = 0
    tied_pictures: int = 0
    unexplained: int = 0


def measure(name: str, small: bool) -> Row:
    """Converts and compares one network."""
    missing = missing_packages(name)
    if missing:
        return Row(name, framework_of(name), "not installed", ", ".join(missing))
    subject = build(name, small, PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.pbit"
        begin = time.perf_counter()
        try:
            report = phonebit.convert(subject.model, file, **subject.options)
        except PhoneBitError as error:
            return Row(name, framework_of(name), "no", str(error))
        row = Row(name, framework_of(name), "yes", seconds=time.perf_counter() - begin)
        _describe(row, report, subject, file)
        options = ImportOptions(input_shape=subject.options.get("input_shape"))
        network = phonebit.Network.load(file, "cpu")
        _compare(row, verify(subject.model, network, subject.inputs, options=options))
    return row


def _describe(row: Row, report: ConversionReport, subject: Subject, file: Path) -> None:
    row.input_shape = subject.inputs.shape[1:]
    row.binary_share = report.binary_mac_share
    row.missed = len(report.missed)
    row.float_bytes, row.file_bytes = report.size_before_bytes, report.size_after_bytes
    row.kernels = len(report.layers)
    row.moved_bytes = bytes_moved(read_graph(file))


def _compare(row: Row, checked: VerificationReport) -> None:
    end = checked.end_to_end
    row.pictures, row.same_argmax = end.samples, end.same_argmax
    row.max_difference, row.tolerance = end.max_abs_difference, end.tolerance
    row.unexplained = len(end.unexplained)
    row.layers = len(checked.layers)
    row.equal_layers = sum(layer.verdict == "equal" for layer in checked.layers)
    mismatch = sum(layer.mismatch for layer in checked.layers)
    row.close_layers = row.layers - row.equal_layers - mismatch
    row.tied_pictures = end.samples_with_ties


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", type=Path, required=True, help="file for the row")
    options = parser.parse_args()
    row: dict[str, Any] = asdict(measure(options.network, options.small))
    options.json.write_text(json.dumps(row))


if __name__ == "__main__":
    main()
