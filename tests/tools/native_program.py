"""Runs native programs for tests, as a user of ``adb shell`` would."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "v1"
LONGEST_S = 600


@dataclass
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on standard output."""
        return json.loads(self.out)


@dataclass
class Program:
    """A native program."""

    path: Path
    environment: dict[str, str]

    def __call__(self, *arguments: object) -> Ended:
        done = subprocess.run(
            [str(self.path), *map(str, arguments)],
            capture_output=True, text=True, timeout=LONGEST_S, env=self.environment, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def refused(self, *arguments: object) -> str:
        """Runs what must end with code 2 and one line of error; gives its text."""
        done = self(*arguments)
        assert done.code == 2, done
        assert done.out == ""
        name = f"{self.path.name}: "
        assert done.err.startswith(name) and done.err.count("\n") == 1, done.err
        return done.err.removeprefix(name)
