"""Every network of larq-zoo and the published PyTorch ones: what converts, how well, how small.

    python -m benchmarks.conversion.table           # all; writes docs/results/networks.md
    python -m benchmarks.conversion.table --small   # smaller ones, only shown
    python -m benchmarks.conversion.table --only QuickNet birealnet18

Needs PyTorch, and tests/framework-requirements.txt for larq-zoo; what is absent is said in its row.
Each network has a process of its own: frameworks do not share one well, and memory comes back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import track

from benchmarks.conversion.document import markdown, reasons, terminal_table
from benchmarks.conversion.networks import LARQ_ZOO, PYTORCH, framework_of
from benchmarks.records import RESULTS, ROOT, write_results
from benchmarks.run_context import run_context

FILE: Final = "conversion.json"
TIMEOUT_S: Final = 1800
WIDE: Final = 160
"""Columns of text in a file or a pipe."""


def measured(name: str, small: bool) -> dict[str, Any]:
    """The network's row, from a child process; a crash is a row that says so."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.json"
        command = [sys.executable, "-m", "benchmarks.conversion.measure", name]
        command += ["--json", str(file), *(["--small"] if small else [])]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return _failed(name, f"took more than {TIMEOUT_S} s")
        if file.is_file():
            row: dict[str, Any] = json.loads(file.read_text())
            return row
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return _failed(name, last)


def _failed(name: str, reason: str) -> dict[str, Any]:
    framework = framework_of(name)
    return {"network": name, "framework": framework, "converts": "no", "reason": reason,
            "pictures": 0}  # fmt: skip


def main() -> None:
    """Measures, prints, and writes the JSON and the document if everything was measured."""
    every = [*LARQ_ZOO, *PYTORCH]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--small", action="store_true", help="small inputs and networks")
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    options = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDE)
    names = options.only or every
    rows = [measured(name, options.small) for name in track(names, console=console)]
    console.print(terminal_table(rows))
    for reason in reasons(rows):
        console.print(reason, markup=False)
    document = {"context": run_context(), "small": options.small, "networks": rows}
    if options.json:
        write_results(options.json, document)
    if not options.small and not options.only:
        write_results(RESULTS / FILE, document)
        page = markdown(rows, document["context"], FILE)
        (ROOT / "docs" / "results" / "networks.md").write_text(page)


if __name__ == "__main__":
    main()
