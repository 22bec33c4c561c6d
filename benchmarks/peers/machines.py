"""The results page's section on whole networks by machine: peers_cpu*.json in short, and goals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.markdown import filled, markdown_table
from benchmarks.peers import document as peers
from benchmarks.peers.document import OPENVINO, OURS, Cases, Chosen, by_network, fastest
from benchmarks.peers.harness.catalogue import SUBJECTS
from benchmarks.records import RESULTS, Record, provenance, read_results

COMMAND: Final = "python -m benchmarks.peers.compare_networks"
PAGE: Final = Path(__file__).with_suffix(".md")
OURS_8_BITS: Final = peers.rows_of("binary, int8", "phonebit")
STREAMS: Final = peers.rows_of("binary", "openvino_streams")
STREAMS_INT8: Final = peers.rows_of("int8", "openvino_streams")
COLUMNS: Final[tuple[tuple[str, Chosen], ...]] = (
    ("PhoneBit", OURS),
    ("8-bit layers", OURS_8_BITS),
    ("OpenVINO binary", OPENVINO),
    ("its throughput mode", STREAMS),
    ("Larq", peers.LARQ),
    ("best int8", lambda row: peers.INT8(row) and not STREAMS_INT8(row)),
    ("OpenVINO int8, throughput mode", STREAMS_INT8),
    ("best f32", peers.F32),
)
"""Of the short table: the fastest engine of each group."""


def section() -> str:
    """Machines other than the one that is shown in full, and every machine's goals."""
    parts = []
    for path in sorted(RESULTS.glob("peers_cpu*.json")):
        document = read_results(path)
        context = document["context"]
        isa = f", {context['isa']}" if "isa" in context else ""
        parts.append(f"### {context['cpu']}{isa}, {context['date']}")
        if path != peers.newest():
            parts += [f"{provenance(context, COMMAND)}.", short_table(document)]
        parts.append(goals(document))
    return filled(PAGE, {"machines": "\n\n".join(parts)})


def short_table(document: Record) -> str:
    """A line a case; columns in which nothing was measured are left out."""
    lines = {
        (each.title, str(batch), str(threads)): [fastest(case["rows"], of) for _, of in COLUMNS]
        for each, cases in by_network(document)
        for (batch, threads), case in cases.items()
    }
    used = [index for index in range(len(COLUMNS)) if any(rows[index] for rows in lines.values())]
    head = ("network", "batch", "threads", *(COLUMNS[index][0] for index in used))
    return markdown_table(
        head, [(*key, *(_cell(rows[index]) for index in used)) for key, rows in lines.items()]
    )


def _cell(row: Record | None) -> str:
    if row is None:
        return "-"
    text = peers.three_digits(row["median_ms"])
    return text if OURS(row) else f"{text} **{peers.times_faster(row['ratio'])}**"


# --- goals ----------------------------------------------------------------------------------------


Reached = Callable[[Cases], float | None]
"""How many times as fast PhoneBit is as something else; None: not measured."""


def _over(peer: Chosen, ours: Chosen = OURS, in_batches: bool = False) -> Reached:
    """At batch 1 on one thread, or in the largest batch on most threads."""

    def reached(cases: Cases) -> float | None:
        key = max((key for key in cases if key[0] > 1), default=None) if in_batches else (1, 1)
        rows = cases[key]["rows"] if key in cases else []
        theirs, own = fastest(rows, peer), fastest(rows, ours)
        return theirs["ratio"] / own["ratio"] if theirs and own else None

    return reached


def _two_threads(cases: Cases) -> float | None:
    times = [
        row["median_ms"]
        for key in ((1, 1), (1, 2))
        if key in cases and (row := fastest(cases[key]["rows"], OURS))
    ]
    return times[0] / times[1] if len(times) == 2 else None


GOALS: Final[dict[str, tuple[dict[str, float], Reached]]] = {
    "over OpenVINO binary": (
        {"Bi-Real-18": 1.3, "QuickNet": 1.4, "BinaryAlexNet": 1.4},
        _over(OPENVINO),
    ),
    "with 8-bit layers, over OpenVINO binary": (
        {"Bi-Real-18": 2, "QuickNet": 2, "BinaryAlexNet": 2},
        _over(OPENVINO, OURS_8_BITS),
    ),
    "two threads over one": ({each.title: 1.6 for each in SUBJECTS}, _two_threads),
    "batches, over OpenVINO binary, throughput mode": (
        {"Bi-Real-18": 2, "QuickNet": 2},
        _over(STREAMS, in_batches=True),
    ),
    "batches, over OpenVINO int8, throughput mode": (
        {"AlexNet": 4, "VGG16": 4},
        _over(STREAMS_INT8, in_batches=True),
    ),
}
"""What PhoneBit is to reach, by network, and how that is measured."""


def goals(document: Record) -> str:
    """How many are met, and what every network reached of what was asked."""
    measured = {each.title: cases for each, cases in by_network(document)}
    cells: dict[tuple[str, str], str] = {}
    for title, (networks, measure) in GOALS.items():
        for name, minimum in networks.items():
            reached = measure(measured.get(name, {}))
            if reached is None:
                cells[name, title] = f"- of {minimum:g}x"
                continue
            mark = "**" if reached >= minimum else ""
            cells[name, title] = f"{mark}{reached:.2f}x of {minimum:g}x{mark}"
    rows = [
        (each.title, *(cells.get((each.title, title), "") for title in GOALS)) for each in SUBJECTS
    ]
    met = sum(text.startswith("**") for text in cells.values())
    missed = sum(text[0].isdigit() for text in cells.values())
    text = (
        f"Goals: {met} of {len(cells)} met (bold), {missed} not, {len(cells) - met - missed} not "
        "measured. Batch 1 on one thread, unless a column says otherwise."
    )
    return f"{text}\n\n{markdown_table(('network', *GOALS), rows)}"
