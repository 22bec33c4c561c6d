"""A batch on Ray Data: source, actors with a network each, folder of results."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from phonebit.batch.predictor import BatchPredictor
from phonebit.batch.results import Format, ResultFolder
from phonebit.batch.sources import Source, listed_paths, open_paths, open_table, without_done
from phonebit.devices.runtime import usable_cores
from phonebit.errors import DeviceError, InputError
from phonebit.images.rule_text import as_settings

if TYPE_CHECKING:
    from ray.data import Dataset

LOCAL_STORE_BYTES: Final = 1 << 29
"""Of Ray's shared memory on this machine: images on their way."""

BLOCK_BATCHES: Final = 4
"""Batches of a task: what is computed again when an actor dies."""

ATTEMPTS: Final = 3
"""At a task whose actor dies under it, and then at each of its images alone."""

PROBED: Final = 4
"""Images that are tried alone where no task had a result: if none of these has, none will."""

FAILURE: Final = "\0"
"""Begins the error of rows that stand for an exception, which ends the batch."""

CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Workers:
    """Who computes.

    Attributes:
        address: of the Ray cluster; None: this machine.
        actors: at most; 0: as many as there is room for.
        cpus: of each, which are its threads.
        gpus: of each, also a part of one.
        batch: images at a time.
    """

    address: str | None = None
    actors: int = 0
    cpus: int = 1
    gpus: float = 0.0
    batch: int = 64


@dataclass(frozen=True)
class BatchSummary:
    """What a batch did.

    Attributes:
        images: rows that it wrote.
        errors: rows of these with an error.
        done_before: rows that were there.
        seconds: that it took, the start of the actors included.
    """

    images: int
    errors: int
    done_before: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        rate = self.images / self.seconds if self.seconds else 0.0
        return {**asdict(self), "images_per_second": rate}


def run_batch(
    location: str,
    folder: Path,
    model: Path,
    *,
    options: Mapping[str, Any],
    workers: Workers,
    form: Format = "parquet",
    reader: str | None = None,
    column: str | None = None,
    key: str | None = None,
    progress: Callable[[int | None, int], None] = lambda total, rows: None,
) -> BatchSummary:
    """Label all images of a source; those that have a row in the folder are not computed again.

    An image that ends the process of each actor that gets it is a row with that error.

    Args:
        location: a folder of images, a list file, Parquet, or what ``reader`` reads.
        folder: of the results.
        model: the ``.pbit`` file; the actors of a cluster get its bytes.
        options: keyword arguments of ``BatchPredictor``.
        workers: who computes.
        form: of the results.
        reader: of Ray Data, by the end of its name.
        column: the images in a table.
        key: the column that tells them apart.
        progress: called with the number of images, if it is known, and of new rows.

    Raises:
        InputError: if source, folder and network do not fit.
        ModelFormatError: if the file is not sound.
        DeviceError: if Ray is not installed or not reached, or an actor raises.
        OSError: if a file cannot be read or written.
    """
    content = model.read_bytes()
    judge = BatchPredictor(model, column or "image", **{**options, "device": "cpu", "threads": 1})
    paths = listed_paths(location) if reader is None else None
    if paths and (column or key):
        raise InputError("--column and --id cannot be used", got="images in files")
    with _connected(workers):
        table = open_table(location, reader, column, key) if paths is None else None
        results = ResultFolder(
            folder, form, table.id if table else "path", _job(content, judge, options)
        )

        def rest(done: Sequence[Any], block: int) -> Source:
            if table is None:
                return open_paths(paths or [], done, block)
            return without_done(table, done, block)

        done = results.done()
        source = rest(done, workers.batch * BLOCK_BATCHES)
        judge.column = source.column
        judge.check_columns({source.column, source.id})
        begin = time.monotonic()
        progress(source.total, 0)
        everywhere = content if workers.address else model.absolute()

        def compute(images: Source, by: Workers, total: int | None) -> None:
            _fill(results, _predicted(images, everywhere, options, by), total, progress)

        with _ending_early(folder):
            if source.total != 0:
                compute(source, workers, source.total)
            total = source.dataset.count() if source.total is None else source.total
            alone = replace(workers, batch=1)
            if total > PROBED and not results.rows and not done:
                first = rest((), 1)
                compute(replace(first, dataset=first.dataset.limit(PROBED)), alone, total)
                if not results.rows:
                    raise DeviceError("each actor's process ended before it had a result")
            if results.rows < total:
                compute(rest(results.done(), 1), alone, total)
            if results.rows < total:
                _add_lost(results, rest(results.done(), workers.batch), judge, total, progress)
        return BatchSummary(results.rows, results.errors, len(done), time.monotonic() - begin)


def _job(content: bytes, judge: BatchPredictor, options: Mapping[str, Any]) -> dict[str, Any]:
    """What results depend on."""
    rule, limits = judge.rule, options.get("limits")
    return {
        "model_sha256": hashlib.sha256(content).hexdigest(),
        "preprocessing": as_settings(rule.for_input(judge.network.inputs[0])) if rule else None,
        "precision": options.get("precision", "exact"),
        "limits": asdict(limits) if limits else None,
    }


class ActorsBatchPredictor(BatchPredictor):
    """In an actor: an exception is rows, so that nothing but a process's end fails a task."""

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """As its base; never raises."""
        try:
            return super().__call__(batch)
        except Exception as error:
            return self.rows(batch, [f"{FAILURE}{error}"] * len(batch[self.column]))


def _predicted(
    source: Source, model: Path | bytes, options: Mapping[str, Any], workers: Workers
) -> Dataset:
    import ray
    from ray.data import ActorPoolStrategy

    have = ray.cluster_resources()
    room = have.get("CPU", 1) / workers.cpus
    if workers.gpus:
        room = min(room, have.get("GPU", 0) / workers.gpus)
    if room < 1:
        raise DeviceError(
            "no room for one actor",
            expected=f"{workers.cpus} CPUs and {workers.gpus:g} GPUs",
            got=f"{have.get('CPU', 0):g} CPUs and {have.get('GPU', 0):g} GPUs",
        )
    maximum = min(int(room), workers.actors or int(room))
    with warnings.catch_warnings():
        # Ray 2.60 deprecates the argument without a successor; pyproject.toml excludes the
        # versions that lack it. Without a limit, an image that ends its process is tried for ever.
        warnings.filterwarnings("ignore", "`ray_remote_args`")
        return source.dataset.map_batches(
            ActorsBatchPredictor,
            fn_constructor_args=[model, source.column],
            fn_constructor_kwargs=dict(options),
            batch_size=workers.batch,
            batch_format="numpy",
            num_cpus=workers.cpus,
            num_gpus=workers.gpus or None,
            compute=ActorPoolStrategy(
                min_size=1,
                max_size=maximum,
                # An image that waits in a process when another ends it would lose an attempt, too.
                max_tasks_in_flight_per_actor=1 if workers.batch == 1 else None,
            ),
            max_task_retries=ATTEMPTS - 1,
        )


def _fill(
    results: ResultFolder,
    dataset: Dataset,
    total: int | None,
    progress: Callable[[int | None, int], None],
) -> None:
    """Ray gives each block once, whichever actors computed it; never, if all of them ended."""
    dataset.context.max_errored_blocks = -1  # it goes on with the others
    try:
        for rows in dataset.iter_batches(batch_size=None, batch_format="numpy"):
            failures = [error for error in rows["error"] if error.startswith(FAILURE)]
            if failures:
                raise DeviceError(failures[0].removeprefix(FAILURE))
            before = results.rows
            results.add({name: column.tolist() for name, column in rows.items()})
            progress(total, results.rows - before)
    finally:
        dataset.context.max_errored_blocks = 0
        results.write()


def _add_lost(
    results: ResultFolder,
    source: Source,
    judge: BatchPredictor,
    total: int,
    progress: Callable[[int | None, int], None],
) -> None:
    """Rows for images of which each actor died."""
    error = f"the process that read it or computed on it ended, {ATTEMPTS} times"
    for rows in source.dataset.iter_batches(batch_size=None, batch_format="numpy"):
        lost = judge.rows(rows, [error] * len(rows[source.id]))
        results.add({name: column.tolist() for name, column in lost.items()})
        progress(total, len(lost["error"]))
    results.write()


@contextmanager
def _ending_early(folder: Path) -> Iterator[None]:
    """Failures of Ray, its actors and sources say what is to be done."""
    import ray

    try:
        yield
    except (DeviceError, ray.exceptions.RayError) as error:
        cause = getattr(error, "cause", None) or error
        lines = str(cause).strip().splitlines()
        raise DeviceError(
            "the batch ended early",
            where=str(folder),
            got=lines[-1] if lines else type(cause).__name__,
            hint="the same command computes what is missing",
        ) from error


@contextmanager
def _connected(workers: Workers) -> Iterator[None]:
    """Ray, quiet; one that runs in this process already stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # ended actors are told as rows
    try:
        import ray
        from ray.data import DataContext
    except ImportError:
        raise DeviceError(
            "Ray Data is not installed", hint="install it with pip install 'phonebit[ray]'"
        ) from None
    is_ours = not ray.is_initialized()
    if is_ours:
        local = {"num_cpus": usable_cores(), "object_store_memory": LOCAL_STORE_BYTES}
        try:
            if workers.address:
                _check_reachable(workers.address)
            ray.init(
                workers.address or "local",
                logging_level=logging.ERROR,
                log_to_driver=False,
                **({} if workers.address else {**local, "include_dashboard": False}),
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise DeviceError(
                "no Ray cluster there", where=workers.address, got=str(error)
            ) from error
    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        if is_ours:
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray would try for minutes, then end the process."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.port is not None:
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
