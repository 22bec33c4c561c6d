"""PhoneBit's GPU backend beside other engines' on whole networks, in one run, batch 1 to 64.

PhoneBit runs the binary network; ncnn (Vulkan), LiteRT (WebGPU) and PyTorch (cuDNN) run its float
twin in half precision. Every engine is a process of its own; they take turns. Times are host to
host: NumPy arrays in, NumPy arrays out. Results are compared, too: PhoneBit's with its CPU backend,
the others' with the converter's interpreter. An engine that fails is a row with the reason.

    python -m benchmarks.peers.gpu.compare --work DIR --json benchmarks/results/peers_gpu.json

README.md here says what it needs. About 7 minutes on an H200 with the defaults.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import parser_of, phonebit_command
from benchmarks.peers.harness.catalogue import (
    GPU_CONTENDERS,
    SUBJECTS,
    Contender,
    Subject,
    kinds_for,
)
from benchmarks.peers.harness.files import Files
from benchmarks.peers.harness.measure import reads_levels, start, take_worker_turns
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.records import write_results
from benchmarks.run_context import run_context

NETWORKS: Final = {
    subject.name: replace(subject, zoo=None) for subject in SUBJECTS if subject.definition
}
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
CALL_TIMEOUT_S: Final = 120.0
TUNING: Final = "rapid"
TUNING_TIMEOUT_S: Final = 30.0
PASSES_IN_FLIGHT: Final = 20
REFERENCE: Final = GPU_CONTENDERS[0].engine
"""To whose times ratios are."""

Row = dict[str, Any]


class NetworkComparison:
    """All contenders on one network.

    Args:
        subject: the network.
        files: of it.
        options: of the command line.

    Attributes:
        rows: by contender, JSON-ready.
    """

    def __init__(self, subject: Subject, files: Files, options: argparse.Namespace) -> None:
        self.subject = subject
        self.files = files
        self.options = options
        self.rows: dict[str, Row] = {}
        self.workers: dict[str, WorkerProcess] = {}

    def run(self) -> list[Row]:
        """Starts, compares, measures and ends every contender."""
        contenders = [each for each in GPU_CONTENDERS if each.engine not in self.options.skip]
        if reads_levels(self.subject):  # no real values between binary layers
            contenders = [each for each in contenders if each.variant != "f16"]
        kinds = kinds_for(self.subject, contenders, "binary_reference")
        missing = self.files.prepare(self.subject, kinds)
        try:
            for contender in contenders:
                self._start(contender, missing.get(contender.kind))
            for index, batch in enumerate(self.options.batches):
                self._measure(batch, self.options.budget_s / len(self.options.batches))
                if index == 0 or batch == self.options.batches[-1]:
                    self._check_results(batch)
        finally:
            for worker in self.workers.values():
                worker.stop()
        return list(self.rows.values())

    def _start(self, contender: Contender, reason: str | None) -> None:
        key = contender.engine
        form = "binary" if contender.is_binary else "float"
        row: Row = {"key": key, "title": contender.title, "form": form, "batches": []}
        self.rows[key] = row = {**row, "agreement": [], "precision": contender.precision}
        if reason is not None:
            row["failure"] = reason
            return
        try:
            row["starts"] = []
            if contender.is_binary:
                row["starts"].append(self._start_and_stop(contender))
                row["tuning"] = self._tune(contender)
                row["starts"].append(self._start_and_stop(contender))  # builds what tuning changed
            worker = start(self.subject, contender, self.files)
        except WorkerError as error:
            self._fail(key, "start", error)
            return
        self.workers[key] = worker
        row |= {"version": worker.ready["version"], "notes": worker.ready["notes"]}
        first = self._ask(key, "batch 1")
        if first is not None:
            row["starts"].append(_start_row(worker, first))

    def _start_and_stop(self, contender: Contender) -> Row:
        """A start of PhoneBit of which nothing is kept but what is in the cache folder."""
        worker = start(self.subject, contender, self.files)
        try:
            return _start_row(worker, worker.ask("batch 1", CALL_TIMEOUT_S))
        finally:
            worker.stop()

    def _tune(self, contender: Contender) -> Row:
        model = str(self.files.path(self.subject, contender.kind))
        command = phonebit_command("tune", model, "--json", "--level", TUNING)
        command += ["--device", contender.device, "--precision", contender.variant]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TUNING_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"level": TUNING, "complete": False}  # what it found is kept
        if done.returncode:
            reason = done.stderr.strip()[-300:]
            print(f"{self.subject.name}: not tuned: {reason}", file=sys.stderr, flush=True)
            return {"level": TUNING, "failure": reason}
        return {"level": TUNING, "complete": True}

    def _measure(self, batch: int, budget_s: float) -> None:
        first = {key: self._ask(key, f"batch {batch}") for key in list(self.workers)}
        rounds = take_worker_turns(self.workers, budget_s)
        for key, error in rounds.failures.items():
            self._fail(key, f"batch {batch}", error)
        for key in list(self.workers):
            device, started = self._ask(key, f"device {PASSES_IN_FLIGHT}"), first[key]
            if device is None or started is None:
                continue
            row = {"batch": batch, **rounds.summary(key, REFERENCE), "device_ms": device["ms"]}
            row |= {"rounds": len(rounds.canary_ms), "quiet_rounds": len(rounds.steady)}
            row["first_ms"] = started["first_ms"]
            row["memory_mib"] = memory_mib(self.workers[key].ready["pid"])
            self.rows[key]["batches"].append(row)
        print(f"{self.subject.name} x{batch}, {len(rounds.canary_ms)} rounds", flush=True)

    def _check_results(self, batch: int) -> None:
        for key in list(self.workers):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "result.npy"
                if self._ask(key, f"output {path}") is None:
                    continue
                result = np.load(path)
            kind = "binary_reference" if self.rows[key]["form"] == "binary" else "reference"
            reference = np.load(self.files.path(self.subject, kind))
            row = agreement(result[:1].reshape(reference.shape), reference)
            self.rows[key]["agreement"].append({"batch": batch, **row})

    def _ask(self, key: str, request: str) -> Row | None:
        """A worker's answer; None if that was its end."""
        try:
            return self.workers[key].ask(request, CALL_TIMEOUT_S)
        except WorkerError as error:
            self._fail(key, request, error)
            return None

    def _fail(self, key: str, request: str, error: Exception) -> None:
        self.rows[key]["failure"] = f"{request}: {error}"
        self.workers.pop(key, None)
        print(f"{self.subject.name}: {key} failed at {request}: {error}", flush=True)


def memory_mib(pid: int) -> float | None:
    """A process's memory on the first GPU of NVIDIA, contexts included; None if it is not told."""
    sizes = [0]
    try:
        import pynvml

        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        for kind in ("Compute", "Graphics"):
            with contextlib.suppress(pynvml.NVMLError):
                entries = getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses")(device)
                sizes += [entry.usedGpuMemory or 0 for entry in entries if entry.pid == pid]
    except Exception:  # absent package, library, driver or device: all alike here
        return None
    return max(sizes) / 2**20 or None


def agreement(result: NDArray[Any], reference: NDArray[Any]) -> Row:
    """How a result compares with the reference: equal, or how far from it.

    ``difference`` is the largest one as a share of the largest reference value.
    """
    if not np.isfinite(result).all():
        return {"equal": False, "finite": False}
    difference = float(np.abs(result.astype(np.float64) - reference).max())
    return {
        "equal": bool(np.array_equal(result, reference)),
        "finite": True,
        "difference": difference / float(np.abs(reference).max()),
        "same_argmax": bool(np.array_equal(result.argmax(-1), reference.argmax(-1))),
    }


def _start_row(worker: WorkerProcess, first: Row) -> Row:
    return {
        "start_ms": worker.start_ms,
        "load_ms": worker.ready["load_ms"],
        "first_ms": first["first_ms"],
        **worker.ready["startup"],
    }


def compare(options: argparse.Namespace) -> None:
    """The whole run; the results file is written after each network, so that none is lost."""
    os.environ.setdefault("PHONEBIT_CACHE_DIR", str(options.work / "cache"))
    context = {**run_context("gpu"), "tune": TUNING}
    document: Row = {"context": context, "networks": []}
    pythons = {"phonebit": sys.executable, "tensorflow": options.tensorflow_python}
    files = Files(options.work.resolve(), pythons, "f32")
    for name in options.networks:
        subject = NETWORKS[name]
        rows = NetworkComparison(subject, files, options).run()
        shape = [subject.size, subject.size, 3]
        document["networks"].append({"name": name, "input": shape, "rows": rows})
        if options.json is not None:
            write_results(options.json, document)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of the networks' files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, metavar="N")
    parser.add_argument("--budget-s", type=float, default=20.0, help="rounds of one network")
    parser.add_argument("--tensorflow-python", default=sys.executable, help="writes LiteRT's files")
    parser.add_argument("--skip", nargs="+", default=(), metavar="ENGINE")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    compare(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
