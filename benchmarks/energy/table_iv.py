"""Energy per frame, PhoneBit's table IV redone: mW, mJ/frame and FPS/W of whole networks.

Binary networks run through PhoneBit, their float twins through PyTorch (cuDNN in f16 on a GPU)
with the same meter; arrays go in and out on the host. Each row takes 15 to 20 seconds; needs the
extra phonebit[energy], and PyTorch for the twins.

    python -m benchmarks.energy.table_iv --device gpu --json benchmarks/results/energy.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.command_line import RowError, parser_of, row_of_process
from benchmarks.energy.document import notes, table
from benchmarks.records import write_results
from benchmarks.run_context import run_context

NETWORKS = ("alexnet", "yolov2_tiny", "vgg16", "birealnet18", "quicknet")
ROW_TIMEOUT_S = 300.0


def measured(row: dict[str, Any]) -> dict[str, Any]:
    """A row, measured in a process of its own; one that fails says why."""
    try:
        text = json.dumps(row)
        return row_of_process("benchmarks.energy.measure", text, timeout_s=ROW_TIMEOUT_S)
    except RowError as error:
        return {**row, "energy": {"measured": False, "reason": str(error)}}


def asked(results: Path | None) -> list[str]:
    """The arguments without where results go."""
    place = ("--json", str(results), f"--json={results}")
    return [argument for argument in sys.argv[1:] if argument not in place]


def main() -> int:
    """Measures all rows; exit code 1 if one could not be measured."""
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="auto", help="of PhoneBit: cpu, gpu, gpu:1, ...")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--batches", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--precision", choices=("exact", "f16"), default="exact")
    parser.add_argument("--float-weights", choices=("f32", "f16"), default="f32")
    parser.add_argument("--seconds", type=float, default=3.0, help="least length of a window")
    parser.add_argument("--source", default="auto", help="as `phonebit devices` lists them")
    parser.add_argument("--no-twin", action="store_true", help="without PyTorch's float twins")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    options = parser.parse_args()
    shared = {
        name: getattr(options, name)
        for name in ("device", "precision", "float_weights", "seconds", "source")
    }
    document: dict[str, Any] = {
        "context": run_context(options.device),
        "command": asked(options.json),
        "rows": [],
    }
    rows = document["rows"]
    for network in options.networks:
        for batch in options.batches:
            for engine in ("phonebit",) if options.no_twin else ("phonebit", "torch"):
                print(f"{network}, {engine}, batch {batch}", flush=True)
                row = {"network": network, "engine": engine, "batch": batch, **shared}
                rows.append(measured(row))
                if options.json:  # after each row: what was measured is not lost with what follows
                    write_results(options.json, document)
    print(table(rows), *notes(rows), sep="\n")
    return 0 if all(row["energy"]["measured"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
