"""The tables as people read them: docs/networks.md and docs/results/networks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from benchmarks.markdown import Columns, filled, records_table
from benchmarks.records import Record, provenance, read_results

FOLDER: Final = Path(__file__).parent
SOURCES: Final[dict[str, dict[str, str]]] = json.loads((FOLDER / "papers.json").read_text())
"""Where each network was published; of those whose tests use trained weights, too, whose."""
LARQ_ZOO: Final = SOURCES["larq-zoo"]
PAPERS: Final = LARQ_ZOO | SOURCES["PyTorch"]
FILE: Final = "conversion.json"
TASKS_FILE: Final = "conversion_tasks.json"
"""Networks that do not classify images."""

Rows = list[Record]


def _difference(row: Record) -> str:
    scale = row["tolerance"] / 1e-5
    relative = row["max_difference"] / scale if scale else 0.0
    return f"{row['max_difference']:.1e} ({relative:.0e})" if row["max_difference"] else "0"


def _further(row: Record, what: str) -> str:
    return f", {row[what]} {what}" if row[what] else ""


COLUMNS: Final[Columns] = (
    ("network", lambda row: f"{row['network']} {'x'.join(map(str, row['input_shape'][:2]))}"),
    ("converts", "{converts}"),
    ("binary MACs", lambda row: f"{100 * row['binary_share']:.1f} %{_further(row, 'missed')}"),
    ("largest difference", _difference),
    ("argmax", "{same_argmax}/{pictures}"),
    ("layers equal", "{equal_layers} + {close_layers} of {layers}"),
    (
        "rounding-sensitive",
        lambda row: f"{row['tied_pictures']}/{row['pictures']}{_further(row, 'unexplained')}",
    ),
    (
        ".pbit of float",
        lambda row: f"{row['file_bytes'] / 1e6:.2f} of {row['float_bytes'] / 1e6:.1f} MB",
    ),
    ("kernels", "{kernels}"),
    ("MB moved", lambda row: f"{row['moved_bytes'] / 1e6:.1f}"),
    ("s", "{seconds:.1f}"),
)
COMMAND: Final = "python -m benchmarks.conversion.table"


def _compared(row: Record) -> str:
    close = row["close_layers"]
    return f"{row['equal_layers']} equal" + (f", {close} within 1e-5" if close else "")


OVERVIEW_COLUMNS: Final[Columns] = (
    ("network", "{network}"),
    ("paper", lambda row: PAPERS[row["network"]]),
    ("framework", "{framework}"),
    ("weights", lambda row: SOURCES["trained"].get(row["network"], "random")),
    ("layers compared", _compared),
    ("binary MACs", lambda row: f"{100 * row['binary_share']:.1f} %"),
    (".pbit", lambda row: f"{row['file_bytes'] / 1e6:.2f} MB"),
)


def section() -> str:
    """What the columns are, and the tables."""
    document, tasks = read_results(FILE), read_results(TASKS_FILE)
    rows = document["networks"]
    values = {
        "images": max(row["pictures"] for row in rows),
        "source": provenance(document["context"], COMMAND),
        "networks": tables(rows),
        "tasks_source": provenance(tasks["context"], COMMAND),
        "tasks": _table(tasks["networks"]),
    }
    return filled(FOLDER / "page.md", values)


def overview() -> str:
    """The page that lists all networks."""
    rows = [*read_results(FILE)["networks"], *read_results(TASKS_FILE)["networks"]]
    table = records_table(rows, OVERVIEW_COLUMNS, texts=5)
    return filled(FOLDER / "overview.md", {"COMMAND": COMMAND, "networks": table}) + "\n"


def tables(rows: Rows) -> str:
    """A table a framework, and why networks do not convert."""
    parts = []
    for framework in ("Larq", "PyTorch"):
        chosen = [row for row in rows if row["framework"] == framework]
        if chosen:
            parts.append(f"## {framework}\n\n{_table(chosen)}")
    return "\n\n".join(parts)


def _table(rows: Rows) -> str:
    """What converts, and below why the rest does not."""
    failed = [row for row in rows if row["converts"] != "yes"]
    table = records_table((row for row in rows if row not in failed), COLUMNS, texts=2)
    reasons = [
        f"- {row['network']} does not convert: {' '.join(row['reason'].split())}" for row in failed
    ]
    return "\n".join([table, *([""] if reasons else []), *reasons])
