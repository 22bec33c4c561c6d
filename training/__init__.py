"""Recipes of the trained networks, and the data that they learn from; not a part of the package.

Run from the repository's root: ``python -m training.FOLDER.train``.
"""

import sys
from pathlib import Path

# `python -m` puts the root first on the path, where phonebit/ has no native module, no converter:
# evaluations need the installed package.
if Path(sys.path[0]).resolve() == Path(__file__).parents[1]:
    sys.path.append(sys.path.pop(0))
