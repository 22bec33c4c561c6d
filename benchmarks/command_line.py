"""What the command lines of the benchmarks have in common."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from typing import Any, Final

EXCEPTION: Final = re.compile(r"[\w.]*(Error|Exception|Failure)\b")
REASON_LENGTH: Final = 300


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser that shows a module's docstring as it is."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def phonebit_command(*arguments: str) -> list[str]:
    """A command of PhoneBit's, as the package that this process has would run it."""
    entry = "from phonebit.cli.main import main; main()"
    return [sys.executable, "-P", "-c", entry, *arguments]


def last_error(text: str) -> str:
    """The last exception that a Python process reported, else its last line; on one line."""
    lines = text.strip().splitlines() or [""]
    starts = [index for index, line in enumerate(lines) if EXCEPTION.match(line)]
    return " ".join(" ".join(lines[starts[-1] if starts else -1 :]).split())[:REASON_LENGTH]


class RowError(Exception):
    """A row could not be measured; the text says why."""


def row_of_process(module: str, *arguments: str, timeout_s: float) -> dict[str, Any]:
    """The JSON object that a module prints last, in a process of its own.

    So frameworks do not meet, no engine warms a GPU for another, and memory comes back.

    Raises:
        RowError: It failed or took too long.
    """
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise RowError(f"took more than {timeout_s:g} s") from None
    if done.returncode:
        raise RowError(last_error(done.stderr) or f"exit status {done.returncode}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row
