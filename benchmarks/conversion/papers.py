"""Where each network of the tables was published, and whose weights it has: ``papers.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

SOURCES: Final[dict[str, dict[str, str]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text()
)
LARQ_ZOO: Final = SOURCES["larq-zoo"]
PAPERS: Final = LARQ_ZOO | SOURCES["PyTorch"]
TRAINED: Final = SOURCES["trained"]
"""Networks whose tests use trained weights, too; those of ``training/`` are on the results page."""
