"""The energy table as people read it: a section of the results page."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.records import provenance, read_results

COMMAND: Final = "python -m benchmarks.energy.table_iv"

Rows = list[dict[str, Any]]

COLUMNS: Final = (
    "network",
    "engine",
    "batch",
    "mW",
    "idle mW",
    "FPS",
    "mJ/frame",
    "FPS/W",
    "±",
    "above idle: mJ/frame",
    "FPS/W",
    "±",
)
PAPER: Final = (
    ("PhoneBit", 225.67, 105.26, 42.1),
    ("TensorFlow Lite, CPU, 8 bits", 452.0, 4.40, 503.0),
    ("TensorFlow Lite, CPU", 626.0, 2.39, 669.0),
)
"""YOLOv2-Tiny on a Snapdragon 820: mW and FPS/W of table IV, ms of table III.
Source: PhoneBit, DATE 2020, section VII."""
NAMES: Final = {"phonebit": "PhoneBit, binary", "torch": "PyTorch, float twin"}

HEAD: Final = """## Energy per frame

Table IV of the PhoneBit paper redone: mean power, energy per frame and frames per second and watt
of whole networks, arrays in and out on the host. *Above idle*: less the power of the same device
with the network loaded and nothing to do, measured just before. *±*: resolution of the source as a
share of the measured energy; a sensor's own error is not in it ([method](../energy.md)).
"""


def cells(row: dict[str, Any]) -> list[str]:
    """A row's texts, by ``COLUMNS``."""
    engine = NAMES[row["engine"]] + ("" if row["precision"] == "exact" else f" {row['precision']}")
    start = [row["network"], engine, str(row["batch"])]
    energy = row["energy"]
    if not energy["measured"]:
        return [*start, "not measured", *[""] * (len(COLUMNS) - 4)]
    return [
        *start,
        _number(energy["mean_mw"]),
        _number(energy["idle_mw"]),
        _number(energy["fps"]),
        _number(energy["mj_per_frame"]),
        _number(energy["fps_per_watt"]),
        _percent(energy["uncertainty"]),
        _number(energy["net_mj_per_frame"]),
        _number(energy["net_fps_per_watt"]),
        _percent(energy["net_uncertainty"]),
    ]


def table(rows: Rows) -> str:
    """Markdown."""
    return markdown_table(COLUMNS, map(cells, rows), texts=2)


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


def render(document: dict[str, Any]) -> str:
    """Markdown of a results file of ``table_iv.py``."""
    rows, context = document["rows"], document["context"]
    lines = [HEAD, table(rows)]
    lines += ["", *(f"- {note}" for note in notes(rows)), *(f"- {r}" for r in ratios(rows)), ""]
    command = " ".join([COMMAND, *document["command"]])
    lines += [f"{provenance(context, command, by_opencl=True)}.", ""]
    lines += ["The paper's own rows, YOLOv2-Tiny on a Snapdragon 820 (Trepn profiler):", ""]
    lines += [
        _paper_table(),
        "",
        "FPS is one over the latency of its table III, mJ/frame power times latency.",
    ]
    return "\n".join(lines) + "\n"


def _paper_table() -> str:
    rows = []
    for engine, power_mw, fps_per_watt, latency_ms in PAPER:
        derived = map(_number, (1e3 / latency_ms, power_mw * latency_ms / 1e3))
        rows.append((engine, f"{power_mw:g}", *derived, f"{fps_per_watt:g}"))
    return markdown_table(("engine", "mW", "FPS", "mJ/frame", "FPS/W"), rows)


def ratios(rows: Rows) -> list[str]:
    """What the float twin's frame costs beside the binary one's."""
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


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if value >= 1 else f"{value:.4f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
