"""Writes docs/results/, docs/networks.md and README's table: nothing is typed by hand.

Each section is ``section()`` of a module, Markdown made from files in ``benchmarks/results/``.

    python -m benchmarks.results_page          # after any benchmark that wrote new results
    python -m benchmarks.results_page --check  # exit code 1 where a page is older than its results
    python -m benchmarks.results_page --check --fresh  # ... or README's table is of an old commit
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks import ROOT, accuracy
from benchmarks.coexec import document as coexec
from benchmarks.conversion import document as conversion
from benchmarks.cpu_kernels import document as cpu_kernels
from benchmarks.energy import document as energy
from benchmarks.gpu_kernels import document as gpu_kernels
from benchmarks.markdown import wrapped
from benchmarks.mobile_isa import document as mobile_isa
from benchmarks.networks import document as networks
from benchmarks.peers import document as peers
from benchmarks.peers import machines
from benchmarks.peers.gpu import document as gpu_peers
from benchmarks.phones import calibration
from benchmarks.phones import document as phones
from benchmarks.records import Record, read_results

FOLDER: Final = ROOT / "docs" / "results"
README: Final = ROOT / "README.md"
IMAGES: Final = ROOT / "docs" / "images"
BEGIN: Final = "<!-- {name}, written by benchmarks.results_page -->\n"
END: Final = "<!-- end -->\n"

PAGES: Final = {
    "index.md": ("Results", (peers, machines, gpu_peers, networks, accuracy, energy)),
    "kernels.md": ("Kernel measurements", (cpu_kernels, phones, gpu_kernels)),
    "coexecution.md": ("Co-execution measurements", (coexec,)),
    "networks.md": ("Networks that convert", (conversion,)),
    "mobile_gpus.md": ("Mobile GPU kernels, compiled only", (mobile_isa, calibration)),
}
"""Title and sections of each page, in order."""
CHARTS: Final = {"speed": peers.speed_chart, "gpu_speed": gpu_peers.speed_chart}
"""Charts by the stem of their file."""

MAX_COMMITS: Final = 100
"""That README's table may be old."""

INTRODUCTION: Final = """Machine, date and command stand beside each table; the raw numbers are in
`benchmarks/results/`. This page is written by `python -m benchmarks.results_page`."""


def with_parts(text: str, parts: Mapping[str, str]) -> str:
    """The text of a page with new parts, each between the two marks that name it."""
    for name, part in parts.items():
        mark = BEGIN.format(name=name)
        before, begin, rest = text.partition(mark)
        _, end, after = rest.partition(END)
        if not (begin and end):
            raise RuntimeError(f"marks {mark!r} and {END!r} expected")
        text = f"{before}{begin}{part.strip()}\n{end}{after}"
    return text


def is_same(path: Path, text: str) -> bool:
    """Whether a file has this text."""
    return path.exists() and path.read_text() == text


def commits_since(commit: str) -> int | None:
    """How many commits this checkout has after one; None: of no commit, or of a changed tree."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and commit else None


def staleness(context: Record) -> str:
    """What is wrong with the commit of README's table; "" if nothing is."""
    commit = context.get("commit") or ""
    since = commits_since(commit)
    if since is None:
        return f"README's table is of {commit or 'no commit'}, which is none of this checkout"
    if since > MAX_COMMITS:
        return f"README's table is of {commit}, {since} commits ago, expected {MAX_COMMITS} at most"
    return ""


def main() -> int:
    """Writes the pages, or says which are out of date."""
    parser = argparse.ArgumentParser(description="Write the pages that show results.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--fresh", action="store_true", help="also check README's commit")
    options = parser.parse_args()
    if options.fresh and (reason := staleness(read_results(peers.newest())["context"])):
        print(f"{reason}: run {peers.COMMAND}")
        return 1
    pages = {}
    for name, (title, sections) in PAGES.items():
        parts = [f"# {title}", INTRODUCTION, *(part.section().strip() for part in sections)]
        pages[FOLDER / name] = wrapped("\n\n".join(parts) + "\n")
    claims = {"speed": peers.readme_claim(), "table": peers.readme_table()}
    written = {name: wrapped(text) for name, text in claims.items()}
    pages[README] = with_parts(README.read_text(), written)
    for name, chart in CHARTS.items():
        pages[IMAGES / f"{name}.svg"] = chart()
    pages[ROOT / "docs" / "networks.md"] = wrapped(conversion.overview())
    if options.check:
        stale = [path for path, text in pages.items() if not is_same(path, text)]
        for path in stale:
            print(f"{path} differs from the results: run python -m benchmarks.results_page")
        return 1 if stale else 0
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
