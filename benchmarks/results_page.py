"""Writes docs/results.md and the tables of other pages from the results: nothing is typed by hand.

Each folder of benchmarks that has something to show holds a ``document.py`` with ``section() ->
str``, Markdown made from its files in ``benchmarks/results/``; those that draw have ``plots()``,
which writes SVG files into ``docs/images/``. README's table is ``readme_table()`` of ``peers``, the
tables of docs/coexecution.md are ``section()`` of ``coexec``.

    python benchmarks/results_page.py           # after any benchmark that wrote new results
    python benchmarks/results_page.py --check   # exit code 1 where a page is older than its results
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
RESULTS: Final = ROOT / "docs" / "results.md"
README: Final = ROOT / "README.md"
COEXECUTION: Final = ROOT / "docs" / "coexecution.md"
BEGIN: Final = "<!-- written by benchmarks/results_page.py -->\n"
END: Final = "<!-- end -->\n"

SECTIONS: Final = (
    "peers",
    "peers/gpu",
    "networks",
    "../models/fashion_mnist_torch",
    "../models/garment_scenes",
    "energy",
)
"""Folders in the order of the page, from this one."""

INTRODUCTION: Final = """# Results

Measured, with the machine, the date and the command beside each table; the raw numbers are in
`benchmarks/results/`. This page is written by `python benchmarks/results_page.py`.

"""


def call(folder: str, function: str) -> str:
    """What a function of a folder's document.py returns.

    Each runs in a process of its own: the folders' files import their neighbours by bare names,
    which would meet in one process.
    """
    done = subprocess.run(
        [sys.executable, "-c", f"import document; print(document.{function}(), end='')"],
        cwd=HERE / folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{folder}/document.py: {function}() failed\n{done.stderr}")
    return done.stdout


def results_page() -> str:
    """The text of docs/results.md."""
    return INTRODUCTION + "\n\n".join(call(folder, "section").strip() for folder in SECTIONS) + "\n"


def with_tables(page: Path, folder: str, function: str) -> str:
    """The text of a page with new tables between the two marks."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{page}: marks {BEGIN!r} and {END!r} expected")
    return f"{before}{begin}{call(folder, function).strip()}\n{end}{after}"


def main() -> int:
    """Writes the pages and the plots, or says which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    pages = {
        RESULTS: results_page(),
        README: with_tables(README, "peers", "readme_table"),
        COEXECUTION: with_tables(COEXECUTION, "coexec", "section"),
    }
    if options.check:
        stale = [str(path) for path, text in pages.items() if path.read_text() != text]
        for path in stale:
            print(f"{path} differs from the results: run python benchmarks/results_page.py")
        return 1 if stale else 0
    for path, text in pages.items():
        path.write_text(text)
    for folder in (*SECTIONS, "coexec"):
        if "def plots(" in (HERE / folder / "document.py").read_text():
            call(folder, "plots")
    return 0


if __name__ == "__main__":
    sys.exit(main())
