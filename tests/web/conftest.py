"""Chromium by Playwright. PHONEBIT_CHROMIUM names one, else the one on the path is taken."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = os.environ.get("PHONEBIT_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("there is no Chromium; PHONEBIT_CHROMIUM names one")
    camera = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
    with playwright.sync_playwright() as api:
        launched = api.chromium.launch(executable_path=program, args=["--no-sandbox", *camera])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on which whatever the console calls an error fails the test."""
    opened = browser.new_page()
    errors: list[str] = []

    def note(message: Any) -> None:
        if message.type == "error":
            errors.append(message.text)

    opened.on("console", note)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.close()
    assert errors == []
