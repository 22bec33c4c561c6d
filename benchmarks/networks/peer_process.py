"""Another engine's times of its nodes, from a process of its own (peer_worker.py)."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any, Final

from benchmarks.networks.figure_layers import by_layer
from benchmarks.networks.rounds import Times

WORKER: Final = "benchmarks.networks.peer_worker"


class PeerError(Exception):
    """The engine is absent, or its process ended."""


class Peer:
    """A running engine.

    Attributes:
        title: its name and version.
    """

    def __init__(
        self, python: str, engine: str, model: Path, picture: Path, threads: int, repeats: int
    ) -> None:
        """Starts it and waits until it is ready.

        Raises:
            PeerError: It does not run; the last line that it wrote says why.
        """
        command = [python, "-m", WORKER, engine, str(model), str(picture), str(threads)]
        self._repeats = repeats
        self._errors = model.with_name(f"{engine}.log").open("w+")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        except OSError as error:
            raise PeerError(f"{python}: {error.strerror}") from error
        self.title: str = self._answer()["engine"]

    def measure(self) -> Times:
        """Milliseconds of each layer: medians of some passes, summed over the layer's nodes."""
        assert self._process.stdin is not None
        passes = []
        for _ in range(self._repeats):
            self._process.stdin.write("run\n")
            self._process.stdin.flush()
            passes.append(by_layer(self._answer()))
        return {layer: statistics.median(one[layer] for one in passes) for layer in passes[0]}

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        raise PeerError(lines[-1] if lines else f"ended with code {self._process.returncode}")
