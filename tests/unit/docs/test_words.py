"""Documents, help texts and public docstrings use the field's terms."""

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
from support.words import IN_DOCUMENTS, complaints

ROOT = Path(__file__).parents[3]
FOLDERS = ("benchmarks", "bnn_kernels", "docs", "examples", "training")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pages in (ROOT.glob("*.md"), *((ROOT / name).rglob("*.md") for name in FOLDERS))
    for path in pages
)


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


@pytest.mark.parametrize("page", PAGES)
def test_documents(page: str) -> None:
    assert complaints(prose((ROOT / page).read_text(encoding="utf-8")), IN_DOCUMENTS) == []


def test_help() -> None:
    texts = list(help_texts(typer.main.get_command(app), "phonebit"))
    assert len(texts) > 100
    found = {where: complaints(prose(text), IN_DOCUMENTS) for where, text in texts}
    assert {where: words for where, words in found.items() if words} == {}


def test_public_docstrings() -> None:
    found = {where: complaints(prose(text), IN_DOCUMENTS) for where, text in docstrings()}
    assert {where: words for where, words in found.items() if words} == {}
