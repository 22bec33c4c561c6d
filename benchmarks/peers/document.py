"""What the results page and README say of whole networks on the CPU: peers_cpu.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks import accuracy
from benchmarks.markdown import filled, markdown_table
from benchmarks.peers.harness.catalogue import SUBJECTS, Subject
from benchmarks.records import Record, provenance, read_results

Cases = dict[tuple[int, int], Record]
"""Of one network, by batch size and threads."""
Chosen = Callable[[Record], bool]


def rows_of(precision: str, *engines: str) -> Chosen:
    """Rows in a precision, of some engines or of all."""
    return lambda row: row["precision"] == precision and (row["engine"] in engines or not engines)


OURS, OPENVINO = rows_of("binary", "phonebit"), rows_of("binary", "openvino")
LARQ, F32, INT8 = rows_of("binary", "larq", "larq_indirect"), rows_of("f32"), rows_of("int8")
README_COLUMNS: Final = (
    ("best f32", (F32,)),
    ("best int8", (INT8,)),
    ("OpenVINO binary / Larq", (OPENVINO, LARQ)),
    ("PhoneBit", (OURS,)),
)
"""Columns of README's table: the fastest engine of each group."""

FOLDER: Final = Path(__file__).parent
FILE: Final = "peers_cpu.json"
UNASKED: Final = "not asked for"


def section() -> str:
    """Tables of all engines for every network."""
    return render(read_results(FILE))


def render(document: Record) -> str:
    """Markdown of a results file of ``compare_networks.py``."""
    cases = document["cases"]
    batches = sorted({case["batch"] for case in cases})
    found = [
        (subject, [case for (size, _), case in of_network.items() if size == batch])
        for subject, of_network in by_network(document)
        for batch in batches
    ]
    rows = [row for case in cases for row in case["rows"] if "version" in row]
    versions = {row["title"]: row["version"] for row in rows}
    values = document | {
        "source": provenance(document["context"], "python -m benchmarks.peers.compare_networks"),
        "eight_bit_effect": accuracy.eight_bit_effect(),
        "versions": ", ".join(f"{title} {version}" for title, version in versions.items()),
        "networks": "\n\n".join(_network(subject, those) for subject, those in found if those),
    }
    return filled(FOLDER / "page.md", values)


def readme_table() -> str:
    """README's first table: batch 1, one thread."""
    document = read_results(FILE)
    rows = [
        (subject.title, *(_readme_cell(found[1, 1]["rows"], of) for _, of in README_COLUMNS))
        for subject, found in by_network(document)
        if (1, 1) in found
    ]
    table = markdown_table(["network", *(name for name, _ in README_COLUMNS)], rows)
    return filled(FOLDER / "readme_table.md", document | {"table": table})


def by_network(document: Record) -> list[tuple[Subject, Cases]]:
    """The networks that have cases, in the catalogue's order."""
    found = []
    for subject in SUBJECTS:
        own = [case for case in document["cases"] if case["network"] == subject.name]
        cases = {(case["batch"], case["threads"]): case for case in own}
        found.append((subject, dict(sorted(cases.items()))))
    return [(subject, cases) for subject, cases in found if cases]


def _readme_cell(rows: Sequence[Record], groups: Sequence[Chosen]) -> str:
    best = [fastest(rows, chosen) for chosen in groups]
    cells = ["-" if row is None else three_digits(row["median_ms"]) for row in best]
    return " / ".join(cells) if any(best) else "-"


def fastest(rows: Iterable[Record], chosen: Chosen) -> Record | None:
    """The row with the smallest median among those that have one and are right."""
    timed = [row for row in rows if chosen(row) and "reason" not in row]
    right = [row for row in timed if row["agreement"] is None or row["agreement"]["agrees"]]
    return min(right, key=lambda row: row["median_ms"], default=None)


def _network(subject: Subject, cases: list[Record]) -> str:
    header = ["engine", "precision"]
    for case in cases:
        header += [_threads(case["threads"]), "over"]
    header += ["result", "start-up ms", "peak MiB", "model MB", "libraries MB"]
    engines = _by_engine(cases)
    failures = [
        f"- {row['title']}, {row['precision']}, {_threads(case['threads'])}: "
        f"{' '.join(row['reason'].split())}"
        for rows in engines
        for case, row in zip(cases, rows, strict=True)
        if "reason" in row
    ]
    parts = [
        f"### {subject.title}, {subject.size}x{subject.size}, batch {cases[0]['batch']}",
        markdown_table(header, map(_cells, engines), texts=2),
        " ".join(map(_rounds, cases)),
        *(["\n".join(failures)] if failures else []),
    ]
    return "\n\n".join(parts)


def _by_engine(cases: Sequence[Record]) -> list[list[Record]]:
    """The rows of every engine, one a case; cases may have been measured with fewer engines."""
    tables = [{(row["engine"], row["precision"]): row for row in case["rows"]} for case in cases]
    every = {key: row for table in reversed(tables) for key, row in table.items()}
    order = dict.fromkeys(key for table in tables for key in table)
    return [
        [
            table.get(key) or {"title": every[key]["title"], "precision": key[1], "reason": UNASKED}
            for table in tables
        ]
        for key in order
    ]


def _cells(rows: Sequence[Record]) -> list[str]:
    cells = [rows[0]["title"], rows[0]["precision"]]
    for row in rows:
        if "reason" in row:
            cells += ["failed", ""]
            continue
        spread = f"({three_digits(row['p10_ms'])}-{three_digits(row['p90_ms'])})"
        ratio = times_faster(row["ratio"]) if "ratio" in row else ""
        cells += [f"{three_digits(row['median_ms'])} {spread}", ratio]
    measured = [row for row in rows if "reason" not in row]
    if not measured:
        return [*cells, *[""] * 5]
    return [
        *cells,
        _result(measured[0]),
        f"{min(row['start_ms'] for row in measured):.0f}",
        f"{max(row['peak_mib'] for row in measured):.0f}",
        f"{measured[0]['model_bytes'] / 1e6:.1f}",
        f"{measured[0]['loaded_library_bytes'] / 1e6:.1f}",
    ]


def _result(row: Record) -> str:
    agreement = row["agreement"]
    if agreement is None:
        return "reference" if row["engine"] == "phonebit" else "not compared"
    mark = "" if agreement["agrees"] else "**differs** "
    difference = agreement["difference"]
    return f"{mark}{difference:.0e}" if difference else f"{mark}0"


def _rounds(case: Record) -> str:
    counted = "" if case["counted"] == case["steady"] else " (too few: all count)"
    quiet = f"{case['steady']} of {case['rounds']} rounds quiet{counted}"
    return f"{_threads(case['threads'])}: {quiet}."


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def three_digits(value: float) -> str:
    """Three significant digits of milliseconds, or all before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def times_faster(ratio: float) -> str:
    """Two significant digits or all before the point."""
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
