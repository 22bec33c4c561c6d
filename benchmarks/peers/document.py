"""What the results page and README say of whole networks on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from harness import tables

RESULTS: Final = Path(__file__).parents[1] / "results"


def section() -> str:
    """Tables of all engines for every network, and how PhoneBit's results compare with Keras's."""
    return tables.section(_read("peers_cpu.json")) + "\n" + tables.equality(_read("larq_zoo.json"))


def readme_table() -> str:
    """README's first table."""
    return tables.readme_table(_read("peers_cpu.json"))


def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return document
