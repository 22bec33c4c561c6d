"""Scripts for Node.js that read a request and print an answer, both JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def answer_of(script: Path, argument: Path, request: Any) -> list[dict[str, Any]]:
    """What a script prints. It must end well."""
    done = subprocess.run(
        ["node", script, argument.resolve()],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers
