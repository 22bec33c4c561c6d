"""What the results page and README say of whole networks on the CPU: peers_cpu*.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks import accuracy
from benchmarks.chart import Bar, bar_chart
from benchmarks.markdown import filled, markdown_table
from benchmarks.peers.harness.catalogue import SUBJECTS, Subject
from benchmarks.records import RESULTS, Record, provenance, read_results

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
CHART_SERIES: Final = (
    ("float twin, fastest engine", F32),
    ("int8 twin, fastest engine", INT8),
    ("OpenVINO binary", OPENVINO),
    ("PhoneBit", OURS),
)
COMMAND: Final = "python -m benchmarks.peers.compare_networks"

FOLDER: Final = Path(__file__).parent
UNASKED: Final = "not asked for"


def section() -> str:
    """Tables of all engines for every network."""
    return render(read_results(newest()))


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
        "source": provenance(document["context"], COMMAND),
        "eight_bit_effect": accuracy.eight_bit_effect(),
        "versions": ", ".join(f"{title} {version}" for title, version in versions.items()),
        "networks": "\n\n".join(_network(subject, those) for subject, those in found if those),
    }
    return filled(FOLDER / "page.md", values)


def newest() -> Path:
    """The CPU's latest results, of whichever machine: shown in full."""
    files = RESULTS.glob("peers_cpu*.json")
    return max(files, key=lambda path: str(read_results(path)["context"]["date"]))


def readme_table() -> str:
    """README's table: batch 1, one thread."""
    document = read_results(newest())
    rows = [
        (title, *(_readme_cell(rows, of) for _, of in README_COLUMNS))
        for title, rows in _single_images(document)
    ]
    table = markdown_table(["network", *(name for name, _ in README_COLUMNS)], rows)
    source = provenance(document["context"], COMMAND)
    return filled(FOLDER / "readme_table.md", {"table": table, "source": source})


def readme_claim() -> str:
    """README's first sentence on speed, and the chart."""
    document = read_results(newest())
    ratios: dict[str, list[float]] = {name: [] for name in ("f32", "int8", "binary")}
    for _, rows in _single_images(document):
        for name, chosen in (("f32", F32), ("int8", INT8), ("binary", OPENVINO)):
            if row := fastest(rows, chosen):
                ratios[name].append(row["ratio"])
    spans = {
        name: f"{times_faster(min(found))[:-1]} to {times_faster(max(found))[:-1]}"
        for name, found in ratios.items()
    }
    return filled(FOLDER / "readme_claim.md", document | spans)


def speed_chart() -> str:
    """One image, one thread: engines by network, in multiples of PhoneBit's time."""
    document = read_results(newest())
    groups = []
    for title, rows in _single_images(document):
        ours = fastest(rows, OURS)
        bars = []
        for series, (_, chosen) in enumerate(CHART_SERIES):
            if ours and (row := fastest(rows, chosen)):
                ratio = 1.0 if chosen is OURS else row["ratio"]
                text = f"{three_digits(row['median_ms'])} ms"
                text += "" if chosen is OURS else f", {times_faster(ratio)}"
                bars.append(Bar(series, ratio, text))
        groups.append((title, bars))
    context = document["context"]
    title = f"Time per image, one thread ({context['cpu']}, {context['date']}); shorter is faster"
    return bar_chart(title, [name for name, _ in CHART_SERIES], groups)


def _single_images(document: Record) -> list[tuple[str, list[Record]]]:
    """Title of each network, and the rows of batch 1 on one thread."""
    return [
        (subject.title, found[1, 1]["rows"])
        for subject, found in by_network(document)
        if (1, 1) in found
    ]


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
    """The rows of every engine, one per case; cases may have been measured with fewer engines."""
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
