"""What the command lines of the benchmarks have in common."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
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


class ProcessError(Exception):
    """A process failed; the text says why."""


def output_of(
    command: Sequence[str], timeout_s: float, environment: Mapping[str, str] | None = None
) -> str:
    """What a command prints.

    Raises:
        ProcessError: It cannot be started, failed or took too long.
    """
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=False,
        )  # fmt: skip
    except OSError as error:
        raise ProcessError(f"{command[0]} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ProcessError(f"took more than {timeout_s:g} s") from None
    if done.returncode:
        raise ProcessError(last_error(done.stderr) or f"exit status {done.returncode}")
    return done.stdout


def row_of_process(module: str, *arguments: str, timeout_s: float) -> dict[str, Any]:
    """The JSON object that a module prints last, in a process of its own; a ProcessError without.

    So frameworks do not meet, no engine warms a GPU for another, and memory comes back.
    """
    printed = output_of([sys.executable, "-m", module, *arguments], timeout_s)
    row: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return row
