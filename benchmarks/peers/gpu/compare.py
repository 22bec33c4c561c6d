"""PhoneBit's GPU backend beside other engines' on whole networks, in one run, batch 1 to 64.

PhoneBit runs the binary network; ncnn (Vulkan), LiteRT (WebGPU) and PyTorch (cuDNN) run its float
twin in half precision. Every engine is a process of its own; they take turns. Times are host to
host: NumPy arrays in, NumPy arrays out. Results are compared, too: PhoneBit's with its CPU backend,
the others' with the converter's interpreter. An engine that fails is a row with the reason.

    python -m benchmarks.peers.gpu.compare --work DIR --json benchmarks/results/peers_gpu.json

needs ``requirements.txt`` of this folder and a Vulkan loader. About 7 minutes on an H200 with the
defaults. ``--rehearsal`` tries all of it on a processor; its numbers say nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.gpu.contenders import BATCHES, CONTENDERS, NETWORKS, REFERENCE, Contender
from benchmarks.peers.gpu.nvml import Nvml
from benchmarks.peers.gpu.preparation import Prepared, prepare
from benchmarks.peers.harness.turns import Rounds, take_turns
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.records import write_results
from benchmarks.run_context import run_context

START_TIMEOUT_S: Final = 240.0
CALL_TIMEOUT_S: Final = 120.0
WARMUPS: Final = 2
"""Uncounted passes of a turn: they wake device and driver."""
CALLS: Final = 5
"""Timed passes of a turn, of which the median counts."""
LARGE_BATCH: Final = 16
"""From this on a turn is one uncounted and one timed pass: they are long enough."""
PASSES_IN_FLIGHT: Final = 20
PHONEBIT_WORKER: Final = "benchmarks.peers.gpu.phonebit_worker"
PHONEBIT_COMMAND: Final = "from phonebit.cli.main import main; main()"

Row = dict[str, Any]


class NetworkComparison:
    """All contenders on one network.

    Args:
        prepared: its files.
        options: of the command line.
        nvml: of the GPU.

    Attributes:
        rows: by contender, JSON-ready.
    """

    def __init__(self, prepared: Prepared, options: argparse.Namespace, nvml: Nvml) -> None:
        self.prepared = prepared
        self.options = options
        self.nvml = nvml
        self.rows: dict[str, Row] = {}
        self.workers: dict[str, WorkerProcess] = {}

    def run(self) -> list[Row]:
        """Starts, compares, measures and ends every contender."""
        try:
            for contender in CONTENDERS:
                if contender.key in self.options.skip:
                    continue
                if not contender.only_real or not self.prepared.reads_levels:
                    self._start(contender)
            for index, batch in enumerate(self.options.batches):
                self._measure(batch, self.options.budget_s / len(self.options.batches))
                if index == 0 or batch == self.options.batches[-1]:
                    self._check_results(batch)
        finally:
            for worker in self.workers.values():
                worker.stop()
        return list(self.rows.values())

    def _start(self, contender: Contender) -> None:
        row: Row = {
            "key": contender.key,
            "title": contender.title,
            "form": contender.form,
            "batches": [],
            "agreement": [],
        }
        self.rows[contender.key] = row
        if contender.engine in self.prepared.failures:
            row["failure"] = self.prepared.failures[contender.engine]
            return
        precision, device = contender.precision, contender.device
        if self.options.rehearsal:
            precision, device = contender.rehearsal
        row["precision"] = precision
        task = asdict(self.prepared.task(contender.engine, precision, device))
        try:
            row["starts"] = []
            if contender.engine == "phonebit":
                row["starts"].append(_start_and_stop(task))
                row["tuning"] = self._tune(task)
                row["starts"].append(_start_and_stop(task))  # builds what tuning changed
            worker = WorkerProcess(contender.module, task, START_TIMEOUT_S)
        except WorkerError as error:
            self._fail(contender.key, "start", error)
            return
        self.workers[contender.key] = worker
        row |= {"version": worker.ready["version"], "notes": worker.ready["notes"]}
        first = self._ask(contender.key, "batch 1")
        if first is not None:
            row["starts"].append(_start_row(worker, first))

    def _tune(self, task: Row) -> Row:
        if self.options.tune == "none":
            return {"level": "none"}
        command = [sys.executable, "-c", PHONEBIT_COMMAND, "tune", task["model"]]
        command += ["--device", task["device"], "--precision", task["precision"]]
        command += ["--level", self.options.tune, "--json"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self.options.tune_timeout_s
            )
        except subprocess.TimeoutExpired:
            return {"level": self.options.tune, "complete": False}  # what it found is kept
        if done.returncode:
            return {"level": self.options.tune, "failure": done.stderr.strip()[-300:]}
        return {"level": self.options.tune, "complete": True}

    def _measure(self, batch: int, budget_s: float) -> None:
        first = {key: self._ask(key, f"batch {batch}") for key in list(self.workers)}
        turns = {key: self._turn(key, batch) for key in self.workers}
        rounds = take_turns(turns, budget_s, WorkerError)
        for key, error in rounds.failures.items():
            self._fail(key, f"batch {batch}", error)
        clock_mhz = self.nvml.clock_mhz()
        for key in list(self.workers):
            device, start = self._ask(key, f"device {PASSES_IN_FLIGHT}"), first[key]
            if device is None or start is None:
                continue
            row = {"batch": batch, **rounds.summary(key, REFERENCE), "device_ms": device["ms"]}
            row |= {"rounds": rounds.count, "quiet_rounds": len(rounds.quiet())}
            row["first_ms"] = start["first_ms"]
            row["memory_mib"] = self.nvml.memory_mib(self.workers[key].ready["pid"])
            row["clock_mhz"] = clock_mhz
            self.rows[key]["batches"].append(row)
        self._report(batch, rounds)

    def _turn(self, key: str, batch: int) -> Callable[[], list[float]]:
        worker = self.workers[key]
        warmups, calls = (WARMUPS, CALLS) if batch < LARGE_BATCH else (1, 1)
        return lambda: list(worker.ask(f"run {warmups} {calls}", CALL_TIMEOUT_S)["ms"])

    def _check_results(self, batch: int) -> None:
        for key in list(self.workers):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "result.npy"
                if self._ask(key, f"output {path}") is None:
                    continue
                result = np.load(path)
            reference = self.prepared.reference(self.rows[key]["form"])
            row = agreement(result.reshape(len(result), *reference.shape[1:])[:1], reference)
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
        print(f"{self.prepared.name}: {key} failed at {request}: {error}", flush=True)

    def _report(self, batch: int, rounds: Rounds) -> None:
        texts = []
        for key in self.workers:
            measured = [row for row in self.rows[key]["batches"] if row["batch"] == batch]
            texts += [f"{key} {row['median_ms']:.3f}" for row in measured]
        what = f"{self.prepared.name} x{batch}, {rounds.count} rounds"
        print(f"{what}: {', '.join(texts)}", flush=True)


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


def _start_and_stop(task: Row) -> Row:
    """A start of PhoneBit of which nothing is kept but what is in the cache folder."""
    worker = WorkerProcess(PHONEBIT_WORKER, task, START_TIMEOUT_S)
    try:
        return _start_row(worker, worker.ask("batch 1", CALL_TIMEOUT_S))
    finally:
        worker.stop()


def _start_row(worker: WorkerProcess, first: Row) -> Row:
    return {
        "start_ms": worker.start_ms,
        "load_ms": worker.ready["load_ms"],
        "first_ms": first["first_ms"],
        **worker.ready["startup"],
    }


def compare(options: argparse.Namespace) -> Row:
    """The whole run as a JSON document; written after each network, so that none is lost."""
    nvml = Nvml()
    os.environ.setdefault("PHONEBIT_CACHE_DIR", str(options.work / "cache"))
    context = {**run_context("gpu"), **nvml.describe(), "rehearsal": options.rehearsal}
    context |= {"tune": options.tune, "warmups": WARMUPS, "calls": CALLS}
    document: Row = {"context": context, "networks": []}
    for name in options.networks:
        prepared = prepare(name, options.work)
        rows = NetworkComparison(prepared, options, nvml).run()
        document["networks"].append({"name": name, "input": prepared.shape, "rows": rows})
        if options.json is not None:
            write_results(options.json, document)
    return document


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of the networks' files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--networks", type=lambda text: text.split(","), default=NETWORKS)
    parser.add_argument("--batches", type=_numbers, default=BATCHES)
    parser.add_argument("--budget-s", type=float, default=20.0, help="rounds of one network")
    parser.add_argument(
        "--tune", choices=("none", "rapid", "normal", "exhaustive"), default="rapid"
    )
    parser.add_argument("--tune-timeout-s", type=float, default=30.0, help="for one network")
    parser.add_argument("--skip", type=lambda text: text.split(","), default=())
    parser.add_argument("--rehearsal", action="store_true")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    compare(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
