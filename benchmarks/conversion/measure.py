"""One network of the table, in a process of its own: convert, compare with its framework, count.

    python -m benchmarks.conversion.measure birealnet18

The last line of stdout is the row, a JSON object.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import phonebit
from benchmarks.command_line import parser_of
from benchmarks.conversion.networks import Subject, build, framework_of
from phonebit.converter.cost import bytes_moved
from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.reader import read_graph
from phonebit.converter.report import ConversionReport
from phonebit.errors import PhoneBitError
from phonebit.verification import VerificationReport, verify

PICTURES: Final = 4

Row = dict[str, Any]
"""What the table says of a network; ``document.HEAD`` describes its columns.

Beside these: ``converts``, "yes" or "no", and the ``reason``; ``missed``, layers
trained as binary that did not become so; ``tolerance`` of a difference that no rounding-sensitive
sign explains; ``unexplained``, images whose result differs without such a cause.
"""


def row_of(name: str, converts: str, reason: str = "") -> Row:
    """What every row has."""
    framework = framework_of(name)
    return {"network": name, "framework": framework, "converts": converts, "reason": reason,
            "pictures": 0}  # fmt: skip


def measure(name: str) -> Row:
    """Converts and compares one network."""
    subject = build(name, PICTURES)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.pbit"
        begin = time.perf_counter()
        try:
            report = phonebit.convert(subject.model, file, **subject.options)
        except PhoneBitError as error:
            return row_of(name, "no", str(error))
        row = row_of(name, "yes") | {"seconds": time.perf_counter() - begin}
        row |= _costs(report, subject, file)
        options = ImportOptions(input_shape=subject.options.get("input_shape"))
        network = phonebit.Network.load(file, "cpu")
        row |= _comparison(verify(subject.model, network, subject.inputs, options=options))
    return row


def _costs(report: ConversionReport, subject: Subject, file: Path) -> Row:
    return {
        "input_shape": subject.inputs.shape[1:],
        "binary_share": report.binary_mac_share,
        "missed": len(report.missed),
        "float_bytes": report.size_before_bytes,
        "file_bytes": report.size_after_bytes,
        "kernels": len(report.layers),
        "moved_bytes": bytes_moved(read_graph(file)),
    }


def _comparison(checked: VerificationReport) -> Row:
    end, layers = checked.end_to_end, checked.layers
    equal = sum(layer.verdict == "equal" for layer in layers)
    return {
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


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("network")
    print(json.dumps(measure(parser.parse_args().network)))


if __name__ == "__main__":
    main()
