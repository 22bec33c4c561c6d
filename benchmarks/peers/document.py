"""What the results page and README say of whole networks on the CPU: peers_cpu.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from benchmarks import accuracy
from benchmarks.markdown_table import markdown_table
from benchmarks.peers.harness.catalogue import SUBJECTS, Subject
from benchmarks.records import provenance, read_results

Document = dict[str, Any]
Case = dict[str, Any]
Row = dict[str, Any]
Chosen = Callable[[Row], bool]

README_COLUMNS: Final[tuple[tuple[str, tuple[Chosen, ...]], ...]] = (
    ("best f32", (lambda row: row["precision"] == "f32",)),
    ("best int8", (lambda row: row["precision"] == "int8",)),
    (
        "OpenVINO binary / Larq",
        (
            lambda row: row["engine"] == "openvino" and row["precision"] == "binary",
            lambda row: row["engine"].startswith("larq"),
        ),
    ),
    ("PhoneBit", (lambda row: row["engine"] == "phonebit" and row["precision"] == "binary",)),
)
"""Columns of README's table: the fastest engine of each group."""

FILE: Final = "peers_cpu.json"
UNASKED: Final = "not asked for"


def section() -> str:
    """Tables of all engines for every network."""
    return render(read_results(FILE))


def render(document: Document) -> str:
    """Markdown of a results file of ``compare_networks.py``."""
    context, settings = document["context"], document["settings"]
    parts = [
        "## Whole networks on the CPU beside other engines",
        f"{provenance(context, 'python -m benchmarks.peers.compare_networks')}, "
        "see `benchmarks/peers/README.md`.",
        "All engines run in turn, each in its own process pinned to as many cores as it has "
        "threads. Milliseconds are medians, from array to array; in brackets the 10th and 90th "
        "percentile; *over* is the median of the ratios to PhoneBit within a round. Rounds count "
        f"if a fixed loop (the noise probe) stayed within {settings['canary_limit']:g} times its "
        "best. Binary networks and their float twins have the same layers; the last layers of "
        "AlexNet, YOLOv2-Tiny and VGG16 are stored as "
        f"{settings['float_weights']} in PhoneBit's file. *binary, int8*: full-precision "
        "layers are computed in int8 (`--float-weights i8`, `--precision fast`), which in trained "
        f"networks changes the accuracy: {accuracy.eight_bit_effect()} ([table](#accuracy)).",
        _versions(document["cases"]),
    ]
    for subject in SUBJECTS:
        for batch in sorted({case["batch"] for case in document["cases"]}):
            cases = _cases(document, subject, batch)
            if cases:
                parts.append(_network(subject, cases))
    return "\n\n".join(parts) + "\n"


def readme_table() -> str:
    """README's first table: batch 1, one thread."""
    document = read_results(FILE)
    context = document["context"]
    measured = [(subject, _cases(document, subject, 1)) for subject in SUBJECTS]
    rows = [
        (subject.title, *(_readme_cell(cases[0]["rows"], groups) for _, groups in README_COLUMNS))
        for subject, cases in measured
        if cases
    ]
    note = (
        f"Milliseconds per image, 1 thread, {context['cpu']}, {context['date']}. f32 and int8: the "
        "float twin (the same layers in full precision) on the fastest of ONNX Runtime, OpenVINO, "
        "LiteRT and PyTorch. [All engines, threads, spread, memory](docs/results/index.md)."
    )
    header = ["network", *(name for name, _ in README_COLUMNS)]
    return f"{markdown_table(header, rows)}\n\n{note}\n"


def _cases(document: Document, subject: Subject, batch: int) -> list[Case]:
    """Of one network, by threads."""
    of_network = [case for case in document["cases"] if case["network"] == subject.name]
    return sorted(
        (case for case in of_network if case["batch"] == batch), key=lambda case: case["threads"]
    )


def _readme_cell(rows: Sequence[Row], groups: Sequence[Chosen]) -> str:
    best = [fastest(rows, chosen) for chosen in groups]
    if not any(best):
        return "-"
    return " / ".join("-" if row is None else three_digits(row["median_ms"]) for row in best)


def fastest(rows: Iterable[Row], chosen: Chosen) -> Row | None:
    """The row with the smallest median among those that have one and are right."""
    timed = [row for row in rows if chosen(row) and "reason" not in row and _agrees(row)]
    return min(timed, key=lambda row: row["median_ms"], default=None)


def _network(subject: Subject, cases: list[Case]) -> str:
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


def _by_engine(cases: Sequence[Case]) -> list[list[Row]]:
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


def _cells(rows: Sequence[Row]) -> list[str]:
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


def _agrees(row: Row) -> bool:
    agreement = row.get("agreement")
    return agreement is None or bool(agreement["agrees"])


def _result(row: Row) -> str:
    agreement = row["agreement"]
    if agreement is None:
        return "reference" if row["engine"] == "phonebit" else "not compared"
    mark = "" if agreement["agrees"] else "**differs** "
    difference = agreement["relative_difference"]
    return f"{mark}{difference:.0e}" if difference else f"{mark}0"


def _rounds(case: Case) -> str:
    counted = "" if case["only_quiet_rounds_count"] else " (too few: all count)"
    return (
        f"{_threads(case['threads'])}: {case['quiet_rounds']} of {case['rounds']} rounds "
        f"quiet{counted}."
    )


def _versions(cases: Iterable[Case]) -> str:
    rows = [row for case in cases for row in case["rows"] if "version" in row]
    versions = {row["title"]: row["version"] for row in rows}
    listed = ", ".join(f"{title} {version}" for title, version in versions.items())
    return (
        f"Versions: {listed}. *result*: largest difference, as a share of the largest value, from "
        "PhoneBit's result (binary) or from the reference interpreter's (the twin). *start-up*: "
        "from starting the process (Python included) to the first result. *peak*: resident memory "
        "with mapped files. *libraries*: the engine's own shared libraries that are loaded."
    )


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def three_digits(value: float) -> str:
    """Three significant digits of milliseconds, or all before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def times_faster(ratio: float) -> str:
    """Two significant digits or all before the point."""
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
