"""Benchmarks: what the results page and the tables of other pages show, and how it was measured.

Run from the repository's root: ``python -m benchmarks.FOLDER.NAME``.
"""

import sys
from pathlib import Path

# `python -m` puts the root first on the path, where phonebit/ has no native module, no converter:
# the installed package is to be measured.
if Path(sys.path[0]).resolve() == Path(__file__).parents[1]:
    sys.path.append(sys.path.pop(0))
