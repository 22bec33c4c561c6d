"""Runs a command again and again, each time with another of its file operations failing.

Usage: ``file_faults_worker.py OUTPUT OLD COMMAND...``, with failing_files.c preloaded. OUTPUT is
what the command writes; before each run it is a copy of OLD. Prints JSON: the number of operations
and a line for each run that did not end as it should.
"""

from __future__ import annotations

import ctypes
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path
from typing import Any

from phonebit.cli.main import app
from phonebit.devices import tuning
from phonebit.devices.tuning import LayerTuning


def run(command: list[str]) -> tuple[int, str]:
    """Exit code and standard error."""
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        try:
            app(command, prog_name="phonebit")
        except SystemExit as ended:
            return int(ended.code or 0), errors.getvalue()
    raise AssertionError("a command ends by SystemExit")


def without_measuring(network: Any, *_: object) -> Iterator[LayerTuning]:
    """In place of ``tune_layers``: a kernel for one layer, so that runs are short and alike."""
    layer = tuning.tunable_layers(network)[0][0]
    choice = network.candidates(layer)[0]
    yield LayerTuning(
        [str(layer)], choice, choice, 1.0, 1.0, line=network.tuning_line(layer, choice)
    )


def problem(code: int, errors: str, content: bytes, old: bytes, new: bytes) -> str:
    """What is wrong with the end of a run in which something failed; "" if nothing is."""
    if code == 0:
        return "" if content == new else "the output of a run that succeeded is another"
    if code != 2 or errors.count("error:") != 1 or "Traceback" in errors:
        return f"code {code} and not one error: {errors}"
    return "" if content == old else "the old output is gone"


def main(output: Path, old: bytes, command: list[str]) -> None:
    library = ctypes.CDLL(None)
    tuning.tune_layers = without_measuring
    output.write_bytes(old)
    code, errors = run(command)
    assert code == 0, errors
    new, names = output.read_bytes(), sorted(output.parent.iterdir())
    problems = []
    for number in count(1):
        output.write_bytes(old)
        library.fail_at(number)
        code, errors = run(command)
        if not library.fail_at(0):
            assert code == 0, errors
            break
        found = problem(code, errors, output.read_bytes(), old, new)
        if sorted(output.parent.iterdir()) != names:
            found = f"other files: {sorted(output.parent.iterdir())}"
        if found:
            problems.append(f"operation {number}: {found}")
    print(json.dumps({"operations": number - 1, "problems": problems}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), sys.argv[3:])
