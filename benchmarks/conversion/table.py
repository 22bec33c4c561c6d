"""Every network of larq-zoo and the published PyTorch ones: what converts, how well, how small.

    python -m benchmarks.conversion.table           # all; writes docs/results/networks.md
    python -m benchmarks.conversion.table --small   # smaller ones, only shown
    python -m benchmarks.conversion.table --only QuickNet birealnet18

Needs PyTorch, and tests/framework-requirements.txt for larq-zoo; what is absent is said in its row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.command_line import RowError, parser_of, row_of_process
from benchmarks.conversion.document import markdown
from benchmarks.conversion.measure import Row, row_of
from benchmarks.conversion.networks import LARQ_ZOO, PYTORCH
from benchmarks.records import RESULTS, ROOT, write_results
from benchmarks.run_context import run_context

FILE: Final = "conversion.json"
TIMEOUT_S: Final = 1800


def measured(name: str, small: bool) -> Row:
    """The network's row, from a child process; a crash is a row that says so."""
    print(name, flush=True)
    arguments = (name, "--small") if small else (name,)
    try:
        return row_of_process("benchmarks.conversion.measure", *arguments, timeout_s=TIMEOUT_S)
    except RowError as error:
        return row_of(name, "no", str(error))


def main() -> None:
    """Measures, prints, and writes the JSON and the document if everything was measured."""
    every = [*LARQ_ZOO, *PYTORCH]
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--small", action="store_true", help="small inputs and networks")
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    options = parser.parse_args()
    rows = [measured(name, options.small) for name in options.only or every]
    document = {"context": run_context(), "small": options.small, "networks": rows}
    page = markdown(rows, document["context"], FILE)
    print(page)
    if options.json:
        write_results(options.json, document)
    if not options.small and not options.only:
        write_results(RESULTS / FILE, document)
        (ROOT / "docs" / "results" / "networks.md").write_text(page)


if __name__ == "__main__":
    main()
