"""The public API: ``phonebit.__all__``, docs/api/python.md and what can be imported agree."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import phonebit

PAGE = Path(__file__).parents[3] / "docs" / "api" / "python.md"
OBJECTS = sorted(set(phonebit.__all__) - {"__version__"})


def documented() -> list[str]:
    return re.findall(r"^::: (phonebit\.\S+)$", PAGE.read_text(), re.MULTILINE)


def test_the_page_lists_what_is_public() -> None:
    names = [name.removeprefix("phonebit.") for name in documented() if name.count(".") == 1]
    assert sorted(names) == OBJECTS


def test_what_the_page_lists_can_be_imported() -> None:
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(importlib.import_module(module), attribute)), name


def test_no_other_name_is_public() -> None:
    public = {name for name in dir(phonebit) if not name.startswith("_")}
    assert public == set(OBJECTS)
    assert isinstance(phonebit.__version__, str)


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_name_is_documented(name: str) -> None:
    """Its own words, and those of every public method."""
    public = getattr(phonebit, name)
    assert public.__doc__, name
    if not inspect.isclass(public):
        return
    for attribute, value in inspect.getmembers(public):
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{attribute}"
