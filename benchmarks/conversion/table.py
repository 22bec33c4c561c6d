"""Every network of larq-zoo and the published PyTorch ones: what converts, how well, how small.

    python -m benchmarks.conversion.table                             # all
    python -m benchmarks.conversion.table --only QuickNet birealnet18 # only shown

``python -m benchmarks.results_page`` writes docs/results/networks.md from the results. Needs
PyTorch, and tests/framework-requirements.txt for larq-zoo; what is absent is said in its row.
"""

from __future__ import annotations

from typing import Final

from benchmarks.command_line import RowError, parser_of, row_of_process
from benchmarks.conversion.document import FILE, tables
from benchmarks.conversion.measure import Row, row_of
from benchmarks.conversion.networks import LARQ_ZOO, PYTORCH
from benchmarks.records import RESULTS, write_results
from benchmarks.run_context import run_context

TIMEOUT_S: Final = 1800


def measured(name: str) -> Row:
    """The network's row, from a child process; a crash is a row that says so."""
    print(name, flush=True)
    try:
        return row_of_process("benchmarks.conversion.measure", name, timeout_s=TIMEOUT_S)
    except RowError as error:
        return row_of(name, "no", str(error))


def main() -> None:
    """Measures and prints; writes the results if everything was measured."""
    every = [*LARQ_ZOO, *PYTORCH]
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=every, metavar="NAME", help=", ".join(every))
    options = parser.parse_args()
    rows = [measured(name) for name in options.only or every]
    print(tables(rows))
    if not options.only:
        write_results(RESULTS / FILE, {"context": run_context(), "networks": rows})


if __name__ == "__main__":
    main()
