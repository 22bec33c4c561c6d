"""Shared by all tests: hypothesis draws the same examples every time."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

settings.register_profile("phonebit", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("phonebit")

# For tests of benchmarks and recipes. Last, since the root's phonebit/ is not the installed one.
sys.path.append(str(Path(__file__).parents[1]))
