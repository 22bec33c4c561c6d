"""Benchmarks: what the results page and the tables of other pages show, and how it was measured.

Run from the repository's root: ``python -m benchmarks.FOLDER.NAME``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# `python -m` puts the root first on the path, where phonebit/ has no native module, no converter:
# the installed package is to be measured.
if Path(sys.path[0]).resolve() == ROOT:
    sys.path.append(sys.path.pop(0))
# For `support`, what tests and benchmarks share; larq-zoo installs a package `tests` of its own.
sys.path.append(str(ROOT / "tests"))
