"""One network with one number of threads: workers, agreement, turns, and a row for each engine."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.harness.catalogue import OURS, Contender, Subject
from benchmarks.peers.harness.files import Files
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.records import Record
from benchmarks.rounds import TOTAL, Rounds, Times, take_turns

WORKERS: Final = "benchmarks.peers.workers"
START_TIMEOUT_S: Final = 300
RUN_TIMEOUT_S: Final = 120
PAUSE_S: Final = 0.05
"""Idle threads of most engines spin for a while; so long the next one waits."""
WARM_S: Final = 0.02
"""After the pause, until caches, threads and clock are what they are between a video's frames."""
TIMED_S: Final = 0.03
MIN_ROUNDS: Final = 5
MAX_ROUNDS: Final = 40

TOLERANCE: Final = {"binary": 0.05, "binary, int8": 0.5, "f32": 1e-3, "bf16": 0.2, "int8": 0.5}
"""Largest difference of a result that counts as agreement, as a share of the largest value.

Float sums in another order turn a few of the signs that are near zero, and f16 weights of
PhoneBit's last layer round; int8 and bf16 errors grow from layer to layer of untrained networks.
"""


def measure(
    subject: Subject,
    threads: int,
    batch: int,
    contenders: Sequence[Contender],
    files: Files,
    missing: Mapping[str, str],
    budget_s: float,
) -> Record:
    """Runs the contenders in turn, PhoneBit first: the case's entry of the results.

    A network by threads of every engine, pinned to as many cores. A row has a contender's numbers
    or the reason why there are none, as for a file that is missing.
    """
    rows: dict[str, Record] = {
        each.key: {name: getattr(each, name) for name in ("engine", "title", "precision")}
        for each in contenders
    }
    workers: dict[str, WorkerProcess] = {}
    everywhere = os.sched_getaffinity(0)
    cores = sorted(everywhere)[:threads]
    if len(cores) < threads:
        raise SystemExit(f"--threads {threads}: {len(cores)} cores may be used here")
    try:
        os.sched_setaffinity(0, cores)  # for the noise probe
        for each in contenders:
            row = rows[each.key]
            try:
                if each.kind in missing:
                    raise WorkerError(missing[each.kind])
                worker, facts = _started(subject, each, files, cores, batch)
                workers[each.key] = worker
                row |= facts
                row["agreement"] = _agreement(subject, each, files, worker)
            except WorkerError as error:
                workers.pop(each.key, None)
                row["reason"] = str(error)
        rounds = take_worker_turns(workers, budget_s)
        for key in rounds.times:
            rows[key] |= rounds.summary(key, OURS.key)
            try:
                rows[key] |= workers[key].ask("end", RUN_TIMEOUT_S)
            except WorkerError as error:
                rows[key]["reason"] = str(error)
        for key, failure in rounds.failures.items():
            rows[key]["reason"] = str(failure)
    finally:
        for worker in workers.values():
            worker.stop()
        os.sched_setaffinity(0, everywhere)
    return {
        "network": subject.name,
        "threads": threads,
        "batch": batch,
        **rounds.describe(),
        "rows": list(rows.values()),
    }


def _started(
    subject: Subject, contender: Contender, files: Files, cores: list[int], batch: int
) -> tuple[WorkerProcess, Record]:
    """A worker after its first inference, and what its row says of that."""
    task = {"threads": len(cores), "cores": cores}
    # PyTorch's own pool and those below NumPy; the others are told by option.
    variables = {**os.environ, "OMP_NUM_THREADS": str(len(cores))}
    worker = start(subject, contender, files, task, variables)
    first = worker.ask(f"batch {batch}", START_TIMEOUT_S)
    facts = {key: worker.ready[key] for key in ("load_ms", "version")} | first
    facts["start_ms"] = worker.start_ms + first["first_ms"]
    return worker, facts | {"model_bytes": files.size_bytes(subject, contender.kind)}


def start(
    subject: Subject,
    contender: Contender,
    files: Files,
    task: Mapping[str, Any] = MappingProxyType({}),
    variables: Mapping[str, str] | None = None,
) -> WorkerProcess:
    """A worker with its network, told ``task``, too, with the variables given or this process's."""
    told = {
        "model": str(files.path(subject, contender.kind)),
        "image": str(image_file(subject, contender, files)),
        "precision": contender.precision,
        "variant": contender.variant,
        "device": contender.device,
        **task,
    }
    module = f"{WORKERS}.{contender.worker}_worker"
    python = files.pythons[contender.environment]
    return WorkerProcess(module, told, START_TIMEOUT_S, python, variables)


def image_file(subject: Subject, contender: Contender, files: Files) -> Path:
    """The input of a contender: levels for PhoneBit where its network reads such, else reals.

    On a GPU, PhoneBit and PyTorch scale levels there.
    """
    takes_levels = contender.worker == "torch_gpu" or (
        contender.worker == OURS.worker and (contender.device == "gpu" or reads_levels(subject))
    )
    return files.folder(subject) / f"image_{'u8' if takes_levels else 'f32'}.npy"


def reads_levels(subject: Subject) -> bool:
    """Whether the .pbit file of a network reads uint8."""
    from phonebit.models.networks import NETWORKS

    if subject.zoo is not None:
        return subject.reads_levels
    return NETWORKS[subject.name].input_dtype == "u8"


def take_worker_turns(workers: Mapping[str, WorkerProcess], budget_s: float) -> Rounds:
    """Rounds of all workers; one that fails leaves."""

    def turn(worker: WorkerProcess) -> Times:
        """The median of a turn's passes."""
        time.sleep(PAUSE_S)
        return {TOTAL: median(worker.ask(f"run {WARM_S} {TIMED_S}", RUN_TIMEOUT_S)["ms"])}

    turns = {key: partial(turn, worker) for key, worker in workers.items()}
    return take_turns(
        turns, MIN_ROUNDS, maximum=MAX_ROUNDS, budget_s=budget_s, expected=(WorkerError,)
    )


def _agreement(
    subject: Subject, contender: Contender, files: Files, worker: WorkerProcess
) -> Record | None:
    """How far the result is from PhoneBit's, or from the reference interpreter's for the twin."""
    folder = files.folder(subject)
    ours = folder / "binary_result.npy"
    target = ours if contender.key == OURS.key else folder / "result.npy"
    worker.ask(f"output {target}", RUN_TIMEOUT_S)
    reference = ours if contender.is_binary else files.path(subject, "reference")
    if contender.key == OURS.key or not reference.is_file():
        return None
    found = compare_results(np.load(target), np.load(reference))
    agrees = found["finite"] and found["difference"] <= TOLERANCE[contender.precision]
    return {**found, "agrees": agrees}


def compare_results(result: NDArray[np.float32], reference: NDArray[np.float32]) -> Record:
    """The first image's result: equal, or how far from it as a share of the largest value."""
    mine, other = result[0].reshape(-1), reference[0].reshape(-1)
    if mine.shape != other.shape:
        raise WorkerError(f"result has {mine.size} numbers, expected {other.size}")
    if not np.isfinite(mine).all():
        return {"equal": False, "finite": False}
    difference = float(np.abs(mine.astype(np.float64) - other).max() / np.abs(other).max())
    return {"equal": not difference, "finite": True, "difference": difference}
