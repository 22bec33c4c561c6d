"""The energy table as people read it: a section of the results page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.markdown import Columns, filled, records_table
from benchmarks.records import Record, provenance, read_results

COMMAND: Final = "python -m benchmarks.energy.table_iv"

Rows = list[Record]
PAGE: Final = Path(__file__).with_name("page.md")

NAMES: Final = {"phonebit": "PhoneBit, binary", "torch": "PyTorch, float twin"}


def _engine(row: Record) -> str:
    precision = "" if row["precision"] == "exact" else f" {row['precision']}"
    return NAMES[row["engine"]] + precision


def _measured(field: str) -> Callable[[Record], str]:
    """A cell with a number of a row's energy; nothing where it was not measured."""

    def cell(row: Record) -> str:
        energy = row["energy"]
        if not energy["measured"]:
            return ""
        value = energy[field]
        if value is None:
            return "-"
        return f"{100 * value:.1f} %" if field.endswith("uncertainty") else _number(value)

    return cell


COLUMNS: Final[Columns] = (
    ("network", "{network}"),
    ("engine", _engine),
    ("batch", "{batch}"),
    ("mW", lambda row: _measured("mean_mw")(row) or "not measured"),
    ("idle mW", _measured("idle_mw")),
    ("FPS", _measured("fps")),
    ("mJ/frame", _measured("mj_per_frame")),
    ("FPS/W", _measured("fps_per_watt")),
    ("±", _measured("uncertainty")),
    ("above idle: mJ/frame", _measured("net_mj_per_frame")),
    ("FPS/W", _measured("net_fps_per_watt")),
    ("±", _measured("net_uncertainty")),
)


def table(rows: Rows) -> str:
    """Markdown."""
    return records_table(rows, COLUMNS, texts=2)


def notes(rows: Rows) -> list[str]:
    """Sources, and why rows were not measured, each once."""
    lines = []
    for row in rows:
        energy = row["energy"]
        if energy["measured"]:
            kind = "counter" if energy["kind"] == "counter" else "sampled power"
            line = f"{row['served_by']}: {energy['source']} ({energy['chosen']}), {kind}: "
            line += energy["description"]
        else:
            line = f"{row['network']}, {NAMES[row['engine']]}: {energy['reason']}"
        lines.append(line)
    return list(dict.fromkeys(lines))


def section() -> str:
    """Markdown, from the results file."""
    return render(read_results("energy.json"))


def render(document: Record) -> str:
    """Markdown of a results file of ``table_iv.py``."""
    rows = document["rows"]
    command = " ".join([COMMAND, *document["command"]])
    values = {
        "table": table(rows),
        "notes": "\n".join(f"- {line}" for line in [*notes(rows), *ratios(rows)]),
        "source": provenance(document["context"], command, by_opencl=True),
    }
    return filled(PAGE, values)


def ratios(rows: Rows) -> list[str]:
    """What the float twin's frame costs compared with the binary one's."""
    frames = {
        (row["network"], row["batch"], row["engine"]): row["energy"]
        for row in rows
        if row["energy"]["measured"]
    }
    lines = []
    for (network, batch, engine), twin in frames.items():
        binary = frames.get((network, batch, "phonebit"))
        if engine != "torch" or binary is None:
            continue
        text = f"{network}, batch {batch}: a frame of the float twin takes "
        text += f"{twin['mj_per_frame'] / binary['mj_per_frame']:.2f} x the energy"
        if twin["net_mj_per_frame"] and binary["net_mj_per_frame"]:
            text += f", {twin['net_mj_per_frame'] / binary['net_mj_per_frame']:.2f} x above idle"
        lines.append(text)
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if value >= 1 else f"{value:.4f}"
