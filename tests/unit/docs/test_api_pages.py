"""Pages of docs/api that are written from docstrings are those of the present docstrings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "docs" / "api_pages.py"


@pytest.fixture(scope="module")
def api_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_pages", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_have_the_present_docstrings(api_pages: ModuleType) -> None:
    for name, parts in api_pages.PAGES.items():
        written = (api_pages.FOLDER / name).read_text("utf-8")
        assert written == api_pages.page(*parts), f"{name}: run python docs/api_pages.py"


def test_a_docstring_becomes_text_and_lists(api_pages: ModuleType) -> None:
    def halve(number: float, *, times: int = 1, tell: object = print) -> float:
        """Halves a number.

        Args:
            number: Any, also
                a negative one.
            times: How often.

        Returns:
            The ``number`` over 2.

        Raises:
            ValueError: If it is odd.
        """
        return float(number / 2**times)

    assert list(api_pages.described(halve, "here.halve")) == [
        "## here.halve",
        "```python\ndef halve(number: float, *, times: int = 1, tell: object = ...) -> float\n```",
        "Halves a number.",
        "**Args**",
        "- `number`: Any, also a negative one.\n- `times`: How often.",
        "**Returns**",
        "- The `number` over 2.",
        "**Raises**",
        "- `ValueError`: If it is odd.",
    ]
