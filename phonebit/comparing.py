"""Two results of ``bench``, ``profile`` or ``eval`` side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from phonebit.errors import InputError
from phonebit.text_files import DAMAGED, MAX_RECORD_BYTES, parse_json, read_text

Document = Mapping[str, Any]
MEASURED: Final = (
    "median_ms", "min_ms", "p90_ms", "fps", "memory.file_bytes", "memory.arena_bytes",
    "memory.scratch_bytes", "memory.weight_bytes", "energy.mj_per_frame", "energy.mean_mw",
    "energy.fps_per_watt",
)  # fmt: skip
"""Numbers of ``bench`` and ``profile``."""
EVALUATED: Final = (
    "engine.top1", "engine.top5", "engine.voc_ap50", "engine.coco_ap", "engine.coco_ap50",
    "engine.coco_ap75", "evaluated", "errors", "source.metrics.top1", "source.metrics.coco_ap",
)  # fmt: skip
"""Numbers of ``eval``."""
CONDITIONS: Final = (
    "file", "data", "device", "isa", "threads", "precision", "batch", "runs", "warmup", "input",
    "canary.disturbed",
)  # fmt: skip
"""What may differ besides the environment, and explain the numbers."""


def compare(first: str | Path, second: str | Path) -> dict[str, Any]:
    """Compare two results.

    Args:
        first: a file that ``phonebit bench``, ``profile`` or ``eval`` wrote with ``--json``.
        second: another, of ``eval`` if the first is.

    Returns:
        JSON-ready: ``metrics`` (name, a, b, ratio b / a), ``layers`` or ``classes`` that both have,
        by name, and ``differences`` in conditions, machine, driver and versions (name, a, b).

    Raises:
        InputError: if a file is no such result, or they are results of different kinds.
        OSError: if a file cannot be read.
    """
    paths = (Path(first), Path(second))
    a, b = (_read(path) for path in paths)
    kinds = [_kind(document, path) for document, path in zip((a, b), paths, strict=True)]
    if kinds[0] != kinds[1]:
        raise InputError(
            "results of different kinds cannot be compared",
            where=str(second),
            expected=f"a result of {kinds[0]}, as {first}",
            got=f"a result of {kinds[1]}",
        )
    try:
        return _compared(a, b, paths, is_evaluation=kinds[0] == "eval")
    except DAMAGED as error:
        where = f"{first}, {second}"
        raise InputError("not two results of PhoneBit", where=where, got=repr(error)) from None


def _compared(
    a: Document, b: Document, paths: Sequence[Path], is_evaluation: bool
) -> dict[str, Any]:
    conditions = [(name, _at(a, name), _at(b, name)) for name in CONDITIONS]
    environments = [_flat(document.get("environment") or {}) for document in (a, b)]
    for name in dict.fromkeys([*environments[0], *environments[1]]):
        conditions.append((name, environments[0].get(name), environments[1].get(name)))
    names = EVALUATED if is_evaluation else MEASURED
    compared = {
        "a": str(paths[0]),
        "b": str(paths[1]),
        "metrics": [row for name in names if (row := _row(name, _at(a, name), _at(b, name)))],
        "differences": [{"name": n, "a": x, "b": y} for n, x, y in conditions if x != y],
    }
    if is_evaluation:
        metric = "top1" if a["task"] == "classify" else "coco_ap"
        sides = [(d["engine"]["classes"], "label", metric) for d in (a, b)]
        return compared | {"classes": _matched(*sides)}
    sides = [(d.get("layers") or [], "name", "latency_ms") for d in (a, b)]
    return compared | {"layers": _matched(*sides)}


Entries = tuple[Sequence[Document], str, str]
"""Entries, the key of their names, and the key of the number."""


def _matched(a: Entries, b: Entries) -> list[dict[str, Any]]:
    """Rows of the names that both have, in the first one's order."""
    (entries, key, number), others = a, {str(entry[b[1]]): entry[b[2]] for entry in b[0]}
    rows = (_row(str(e[key]), e[number], others.get(str(e[key]))) for e in entries)
    return [row for row in rows if row]


def _row(name: str, a: Any, b: Any) -> dict[str, Any] | None:
    """None where one of them has no such number."""
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b)):
        return None
    return {"name": name, "a": a, "b": b, "ratio": b / a if a else None}


def _read(path: Path) -> Document:
    document = parse_json(read_text(path, "a result", MAX_RECORD_BYTES), str(path))
    return document if isinstance(document, dict) else {}


def _kind(document: Document, path: Path) -> str:
    if isinstance(document.get("engine"), dict) and "task" in document:
        return "eval"
    if isinstance(document.get("median_ms"), int | float):
        return "bench or profile"
    raise InputError(
        "not a result that can be compared",
        where=str(path),
        expected="what `phonebit bench`, `profile` or `eval` prints with --json",
    )


def _at(document: Document, path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _flat(document: Document) -> dict[str, Any]:
    """``{"opencl": {"driver": 1}}`` as ``{"opencl.driver": 1}``."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        flat |= {f"{key}.{name}".rstrip("."): one for name, one in inner}
    return flat
