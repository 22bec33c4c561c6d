"""Notebooks in examples/: their cells run in order and find what they compare to be equal.

They are stored with their outputs. To store them again: ``jupyter execute --inplace FILE``.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "examples" / "notebooks"


def code_cells(notebook: str) -> list[dict[str, Any]]:
    document = json.loads((FOLDER / f"{notebook}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def run(notebook: str) -> tuple[dict[str, Any], list[Any]]:
    """Runs the cells; gives their names, and the values that a notebook would show."""
    names: dict[str, Any] = {}
    shown = []
    for cell in code_cells(notebook):
        code = ast.parse("".join(cell["source"]))
        last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        exec(compile(code, f"{notebook}.ipynb", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), notebook, "eval"), names))
    return names, shown


@pytest.mark.parametrize(
    ("notebook", "framework"),
    [
        pytest.param("pytorch", "torch", marks=pytest.mark.torch),
        pytest.param("larq", "larq", marks=pytest.mark.framework),
    ],
)
def test_notebook(
    notebook: str, framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip(framework)
    if framework == "larq":  # layers without names are numbered from the process's first
        module.utils.tf.keras.backend.clear_session()
    monkeypatch.chdir(tmp_path)
    names, shown = run(notebook)
    assert names["report"].binary_mac_share > 0.9
    equal = names["scores"].argmax(1) == names["expected"]
    assert equal.mean() >= 0.99  # ties in float32 aside
    tables = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(tables) >= 2 and all("<table" in table for table in tables)
    stored = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert names["report"]._repr_html_() in [
        "".join(o["data"].get("text/html", [])) for o in stored if "data" in o
    ]


@pytest.mark.parametrize("notebook", ["pytorch", "larq"])
def test_stored_outputs_are_small_and_whole(notebook: str) -> None:
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    text = json.dumps([cell["outputs"] for cell in cells])
    assert "error" not in text and "equal decisions: 500 of 500" in text
    assert len(text) < 12_000
