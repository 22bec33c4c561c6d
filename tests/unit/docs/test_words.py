"""Documents, help texts and public docstrings use the field's terms and tell no history."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import phonebit
from phonebit.cli.main import app

ROOT = Path(__file__).parents[3]
FOLDERS = ("benchmarks", "bnn_kernels", "docs", "examples", "training")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pages in (ROOT.glob("*.md"), *((ROOT / name).rglob("*.md") for name in FOLDERS))
    for path in pages
)
UNITS = "frame|second|pixel|channel|layer|class|line|file|operand|input|output|device|step|output"

INSTEAD = {
    r"\bpictures?\b": "image",
    r"\breal (layers?|ends|weights|tensors?|values?)\b": "full-precision layer, float value",
    r"\bplanes? of bits\b": "thermometer encoding, bit-plane",
    r"\bhand(s|ed|ing)?[- ]?overs?\b|\bmeetings?\b": "synchronization, data transfer",
    r"\bcanar(y|ies)\b": "noise probe",
    r"\bpart(ed)\b|\bthey part\b": "mismatch",
    r"\bforward pass(es)?\b|\bfirst passes\b": "inference",
    r"\bdyadic\b": "exactly representable",
    r"\btwo slopes\b": "two-sided PReLU",
    r"\bon trial\b|\bpatience\b": "auto-selection, spin time",
    r"\bfaces\b": "bindings",
    r"\bwork orders?\b": "measurement job",
    r"\baffair\b|\bwhoever\b|\bhistory\b": "plain words",
    r"\bformerly\b|\bpreviously\b|\bno longer\b|\bas before\b|\bso far\b": "no history",
    rf"\b(bytes|lines|one|records?|launch|sums?|operations?) an? ({UNITS})\b": "per",
}
"""Patterns that a text must not have, and what to write."""


def prose(markdown: str) -> str:
    """Without code, links' targets and anchors."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", "", text)


def help_texts(command: Any, path: str) -> Iterator[tuple[str, str]]:
    yield path, command.help or ""
    for parameter in command.params:
        yield f"{path} {parameter.name}", getattr(parameter, "help", None) or ""
        yield f"{path} {parameter.name}", getattr(parameter, "rich_help_panel", None) or ""
    for name, below in getattr(command, "commands", {}).items():
        yield from help_texts(below, f"{path} {name}")


def docstrings() -> Iterator[tuple[str, str]]:
    for name in phonebit.__all__:
        thing = getattr(phonebit, name)
        yield name, inspect.getdoc(thing) or ""
        for member in vars(thing) if inspect.isclass(thing) else ():
            if not member.startswith("_"):
                yield f"{name}.{member}", inspect.getdoc(getattr(thing, member)) or ""


def complaints(text: str) -> list[str]:
    return [
        f"{match[0]!r}: write {better}"
        for pattern, better in INSTEAD.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_documents(page: str) -> None:
    assert complaints(prose((ROOT / page).read_text(encoding="utf-8"))) == []


def test_help() -> None:
    texts = list(help_texts(typer.main.get_command(app), "phonebit"))
    assert len(texts) > 100
    found = {where: complaints(prose(text)) for where, text in texts}
    assert {where: words for where, words in found.items() if words} == {}


def test_public_docstrings() -> None:
    found = {where: complaints(prose(text)) for where, text in docstrings()}
    assert {where: words for where, words in found.items() if words} == {}
