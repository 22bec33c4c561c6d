"""Runs phonebit's commands for tests: in this process, with what they print captured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import typer

from phonebit.cli.main import app


@cache
def command_line() -> Any:
    """``phonebit`` as click knows it, which takes longer to build than most commands take."""
    return typer.main.get_command(app)


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


class Cli:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *args: object) -> Done:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line()([str(arg) for arg in args], prog_name="phonebit")
        captured = self._capsys.readouterr()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, captured.out, captured.err)

    def refused(self, *args: object) -> str:
        """Run a command that must end with code 2, one error and no traceback; gives its text.

        Under --json the error is a document, too.
        """
        done = self(*args)
        assert done.code == 2, done
        if "--json" in args:
            assert f"error: {done.document['error']['message']}\n" == done.err
        else:
            assert done.out == ""
        assert "Traceback" not in done.err
        assert done.err.startswith("error: "), done.err
        assert done.err.count("error:") == 1
        return done.err
