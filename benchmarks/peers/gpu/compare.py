"""PhoneBit's GPU backend compared with other engines' on whole networks, in one run, batch 1 to 64.

PhoneBit runs the binary network; ncnn (Vulkan), LiteRT (WebGPU) and PyTorch (cuDNN) run its float
twin in half precision. Every engine is a process of its own; they take turns. Times are host to
host: NumPy arrays in, NumPy arrays out. PhoneBit runs as installed, after ``phonebit tune``, and in
half precision outside of binary layers. Results are compared, too: PhoneBit's with its CPU backend,
the others' with the converter's interpreter. An engine that fails is a row with the reason.

    python -m benchmarks.peers.gpu.compare --work DIR --json benchmarks/results/peers_gpu.json

README.md here says what it needs. About 8 minutes on an H200 with the defaults.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.command_line import ProcessError, output_of, parser_of, phonebit_command
from benchmarks.peers.harness import catalogue
from benchmarks.peers.harness.catalogue import GPU_CONTENDERS, SUBJECTS, Contender, Subject
from benchmarks.peers.harness.files import Files
from benchmarks.peers.harness.measure import compare_results, reads_levels, start, take_worker_turns
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.records import Record, run_context, write_results

NETWORKS: Final = {
    subject.name: replace(subject, zoo=None) for subject in SUBJECTS if subject.definition
}
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)
CALL_TIMEOUT_S: Final = 120.0
LEVEL: Final = "normal"  # of `phonebit tune`
PASSES_IN_FLIGHT: Final = 20
REFERENCE: Final = GPU_CONTENDERS[0].engine
"""To whose times ratios are."""


class NetworkComparison:
    """All contenders that take part on one network."""

    def __init__(self, subject: Subject, files: Files, options: argparse.Namespace) -> None:
        self.subject = subject
        self.files = files
        self.options = options
        has_reals = not reads_levels(subject)  # between binary layers
        self.contenders = [
            each
            for each in GPU_CONTENDERS
            if each.engine not in options.skip and (has_reals or each.variant != "fast")
        ]
        self.missing: dict[str, str] = {}  # by kind of file, why it could not be written
        self.rows: dict[str, Record] = {}  # by contender, JSON-ready
        self.workers: dict[str, WorkerProcess] = {}

    def prepare(self) -> None:
        """Writes the network's files."""
        kinds = catalogue.kinds_for(self.subject, self.contenders, "binary_reference")
        self.missing = self.files.prepare(self.subject, kinds)

    def run(self, tuning: Record | None) -> list[Record]:
        """Starts, compares, measures and ends every contender; ``tuning`` is as of ``tune_all``."""
        try:
            for contender in self.contenders:
                self._start(contender, tuning)
            for index, batch in enumerate(self.options.batches):
                self._measure(batch, self.options.budget_s / len(self.options.batches))
                if index == 0 or batch == self.options.batches[-1]:
                    self._check_results(batch)
        finally:
            for worker in self.workers.values():
                worker.stop()
        return list(self.rows.values())

    def _start(self, contender: Contender, tuning: Record | None) -> None:
        key, reason = contender.engine, self.missing.get(contender.kind)
        form = "binary" if contender.is_binary else "float"
        row: Record = {"key": key, "title": contender.title, "form": form, "batches": [],
                    "agreement": [], "precision": contender.precision}  # fmt: skip
        self.rows[key] = row
        environment = None
        if contender.is_tuned:
            row["tuning"] = tuning
            environment = variables(self.options.work, self.subject.name)
        if reason is not None:
            row["failure"] = reason
            return
        row["starts"] = starts = []
        fills_cache = contender.is_binary and not contender.is_tuned
        try:
            for is_last in (False, True) if fills_cache else (True,):
                worker = start(self.subject, contender, self.files, variables=environment)
                self.workers[key] = worker
                first = worker.ask("batch 1", CALL_TIMEOUT_S)
                times = {"start_ms": worker.start_ms, "load_ms": worker.ready["load_ms"]}
                starts.append({**times, "first_ms": first["first_ms"], **worker.ready["startup"]})
                if not is_last:
                    worker.stop()
        except WorkerError as error:
            self._fail(key, "start", error)
            return
        row |= {"version": worker.ready["version"], "notes": worker.ready["notes"]}

    def _measure(self, batch: int, budget_s: float) -> None:
        first = {key: self._ask(key, f"batch {batch}") for key in list(self.workers)}
        rounds = take_worker_turns(self.workers, budget_s)
        for key, error in rounds.failures.items():
            self._fail(key, f"batch {batch}", error)
        for key in list(self.workers):
            device, started = self._ask(key, f"device {PASSES_IN_FLIGHT}"), first[key]
            if device is None or started is None:
                continue
            row = {"batch": batch, **rounds.summary(key, REFERENCE), **rounds.describe()}
            row |= {"device_ms": device["ms"], "first_ms": started["first_ms"]}
            row["memory_mib"] = memory_mib(self.workers[key].ready["pid"])
            self.rows[key]["batches"].append(row)
        print(f"{self.subject.name} x{batch}, {len(rounds.noise_ms)} rounds", flush=True)

    def _check_results(self, batch: int) -> None:
        for key in list(self.workers):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "result.npy"
                if self._ask(key, f"output {path}") is None:
                    continue
                result = np.load(path)
            kind = "binary_reference" if self.rows[key]["form"] == "binary" else "reference"
            reference = np.load(self.files.path(self.subject, kind))
            row = compare_results(result, reference)
            self.rows[key]["agreement"].append({"batch": batch, **row})

    def _ask(self, key: str, request: str) -> Record | None:
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


def variables(work: Path, network: str) -> dict[str, str]:
    """Of a process that keeps what it compiles and tunes for a network in a folder of its own."""
    return {**os.environ, "PHONEBIT_CACHE_DIR": str(work / f"tuned_{network}")}


def tune_all(
    models: Mapping[str, Path], work: Path, level: str, seconds: float
) -> dict[str, Record]:
    """Tunes every network's .pbit file on the first GPU, before anything is measured.

    Tuners mostly compile, so they work at the same time; kernels that one of them chose do not
    serve another.
    """

    def tuned(name: str) -> Record:
        row = {"level": level, "limit_s": seconds, "complete": True}
        command = phonebit_command("tune", str(models[name]), "--json", "--level", level)
        try:
            output_of(command, seconds, variables(work, name))
        except ProcessError as error:
            row |= {"complete": False, "failure": str(error)}
        return row

    with ThreadPoolExecutor(len(models)) as threads:
        return dict(zip(models, threads.map(tuned, models), strict=True))


def compare(options: argparse.Namespace) -> None:
    """The whole run; the results file is written after each network, so that none is lost."""
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PHONEBIT_CACHE_DIR", str(options.work / "cache"))
    document: Record = {"context": run_context("gpu"), "networks": []}
    tensorflow = options.tensorflow_python
    files = Files(options.work, {"phonebit": sys.executable, "tensorflow": tensorflow}, "f32")
    comparisons = {
        name: NetworkComparison(NETWORKS[name], files, options) for name in options.networks
    }
    with ThreadPoolExecutor() as threads:
        list(threads.map(NetworkComparison.prepare, comparisons.values()))
    models = {name: files.path(each.subject, "pbit") for name, each in comparisons.items()}
    is_tuned = any(each.is_tuned and each.engine not in options.skip for each in GPU_CONTENDERS)
    tunings = tune_all(models, options.work, LEVEL, options.tuning_s) if is_tuned else {}
    for name, comparison in comparisons.items():
        rows = comparison.run(tunings.get(name))
        shape = [comparison.subject.size, comparison.subject.size, 3]
        document["networks"].append({"name": name, "input": shape, "rows": rows})
        if options.json is not None:
            write_results(options.json, document)


def main() -> None:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of the networks' files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, metavar="N")
    parser.add_argument("--budget-s", type=float, default=20.0, help="rounds of one network")
    parser.add_argument("--tuning-s", type=float, default=60.0, help="for it, all networks at once")
    parser.add_argument("--tensorflow-python", default=sys.executable, help="writes LiteRT's files")
    parser.add_argument("--skip", nargs="+", default=(), metavar="ENGINE")
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
