"""Shared by all tests: hypothesis draws the same examples every time; driver faults are listed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from support.opencl_device import FAULT

settings.register_profile("phonebit", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("phonebit")

# For tests of benchmarks and recipes. Last, since the root's phonebit/ is not the installed one.
sys.path.append(str(Path(__file__).parents[1]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each fault of the OpenCL driver that skipped tests, once."""
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    faults = [reason.removeprefix("Skipped: ") for reason in reasons if FAULT in reason]
    if faults:
        terminalreporter.section(f"{len(faults)} tests skipped for {FAULT}")
        terminalreporter.write_line("\n".join(sorted(set(faults))))
