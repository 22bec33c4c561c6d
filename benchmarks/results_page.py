"""Writes docs/results.md and the tables of other pages from the results: nothing is typed by hand.

Each section is ``section()`` of a module, Markdown made from files in ``benchmarks/results/``;
modules that draw have ``plots()``, which writes files into ``docs/images/``.

    python -m benchmarks.results_page          # after any benchmark that wrote new results
    python -m benchmarks.results_page --check  # exit code 1 where a page is older than its results
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from benchmarks import accuracy, detection
from benchmarks.coexec import document as coexec
from benchmarks.energy import document as energy
from benchmarks.networks import document as networks
from benchmarks.networks import per_layer_plot
from benchmarks.peers import document as peers
from benchmarks.peers.gpu import document as gpu_peers
from benchmarks.peers.gpu import throughput_plot
from benchmarks.records import ROOT

PAGE: Final = ROOT / "docs" / "results.md"
README: Final = ROOT / "README.md"
COEXECUTION: Final = ROOT / "docs" / "coexecution.md"
BEGIN: Final = "<!-- written by benchmarks.results_page -->\n"
END: Final = "<!-- end -->\n"

SECTIONS: Final = (peers, gpu_peers, networks, accuracy, detection, energy)
"""In the order of the page."""

INTRODUCTION: Final = """# Results

Measured, with the machine, the date and the command beside each table; the raw numbers are in
`benchmarks/results/`. This page is written by `python -m benchmarks.results_page`.

"""


def results_page() -> str:
    """The text of docs/results.md."""
    return INTRODUCTION + "\n\n".join(part.section().strip() for part in SECTIONS) + "\n"


def with_tables(page: Path, tables: str) -> str:
    """The text of a page with new tables between the two marks."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{page}: marks {BEGIN!r} and {END!r} expected")
    return f"{before}{begin}{tables.strip()}\n{end}{after}"


def main() -> int:
    """Writes the pages and the plots, or says which are out of date."""
    parser = argparse.ArgumentParser(description="Write the pages that show results.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    pages = {
        PAGE: results_page(),
        README: with_tables(README, peers.readme_table()),
        COEXECUTION: with_tables(COEXECUTION, coexec.section()),
    }
    if options.check:
        stale = [str(path) for path, text in pages.items() if path.read_text() != text]
        for path in stale:
            print(f"{path} differs from the results: run python -m benchmarks.results_page")
        return 1 if stale else 0
    for path, text in pages.items():
        path.write_text(text)
    throughput_plot.plots()
    per_layer_plot.plots()
    return 0


if __name__ == "__main__":
    sys.exit(main())
