"""The coordinator's side of a worker: a process, requests by line, answers in JSON, time limits.

The other side is ``../worker.py``.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from queue import Empty, Queue
from typing import Any, Final

Answer = dict[str, Any]
LAST_WORDS: Final = 200
"""Characters of a dead worker's stderr that go into the reason."""


class WorkerError(Exception):
    """A worker failed; the text is the reason that a table gives for it."""


class WorkerProcess:
    """One worker: its engine's module, its task, and the Python that has the engine.

    ``ready`` is its first answer, ``start_ms`` the time from starting the process to that.
    """

    def __init__(
        self,
        module: str,
        task: Mapping[str, Any],
        timeout_s: float,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, lives as long
        begin = time.perf_counter()
        try:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.peers.workers", module, json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                text=True,
                errors="replace",
            )
        except OSError as error:
            self._errors.close()
            raise WorkerError(f"{python} cannot be started: {error.strerror}") from error
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.ready = self._answer("start", timeout_s)
        self.start_ms = (time.perf_counter() - begin) * 1e3

    def ask(self, request: str, timeout_s: float) -> Answer:
        """The answer to a request; a worker that gives none is stopped: a WorkerError."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # a dead worker: _answer says how it died
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        return self._answer(request, timeout_s)

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # closed by stop()
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put("")

    def _answer(self, request: str, timeout_s: float) -> Answer:
        try:
            line = self._lines.get(timeout=timeout_s)
        except Empty:
            self.stop()
            raise WorkerError(f"no answer to {request!r} within {timeout_s:g} s") from None
        if not line:
            raise WorkerError(self._death(request))
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.stop()
            raise WorkerError(f"no JSON object in answer to {request!r}: {line.strip()[:80]!r}")
        if "error" in answer:
            self.stop()
            raise WorkerError(str(answer["error"]))
        return answer

    def _death(self, request: str) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        words = " ".join(self._errors.read().split())[-LAST_WORDS:]
        self.stop()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"died of {how} at {request!r}" + (f": {words}" if words else "")
