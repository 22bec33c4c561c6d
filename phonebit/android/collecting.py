"""Times of random layers on a phone, as `phonebit collect` takes them here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from phonebit.android.adb import Adb
from phonebit.android.native_tools import BENCH
from phonebit.android.pushing import CACHE_FOLDER, PHONE_FOLDER, push_files
from phonebit.android.running import run_tool
from phonebit.output_files import check_output
from phonebit.planner.measure.collect import CollectionReport
from phonebit.planner.measure.measurement_job import (
    RESULTS_FILE,
    collect_results,
    write_measurement_job,
)
from phonebit.planner.measure.orders import CollectionPlan
from phonebit.planner.predict.samples import SAMPLES_FILE

Progress = Callable[[str], None]


def collect_on_phone(
    adb: Adb,
    plan: CollectionPlan,
    folder: Path,
    samples: Path,
    *,
    limit_s: float,
    flags: Sequence[str] = (),
    on_file: Progress = lambda _name: None,
    on_measured: Progress = lambda _line: None,
) -> CollectionReport:
    """Writes the measurement job, has it measured, and makes samples of the results.

    The phone appends its results to a file of its own, so the same call goes on where a lost
    connection stopped it. The native tools must be there already.

    Args:
        adb: the device.
        plan: what is to be measured.
        folder: for the measurement job and its results; it may be one that an earlier call began.
        samples: the file of samples, begun or continued.
        limit_s: longest wait for the measuring.
        flags: more of `phonebit_bench`.
        on_file: called with a name before each file of the order is written, and sent.
        on_measured: called with each line of the phone's progress.

    Raises:
        InputError: the folder holds another measurement job, or the samples are of another device.
        DeviceError: no layer could be measured, the tool failed, or as for ``Adb.shell``.
        OSError: a file cannot be read or written.
    """
    results = folder / RESULTS_FILE
    check_output(samples, SAMPLES_FILE, [results])
    files = write_measurement_job(folder, plan, on_file)
    there = _phone_folder(files[0], flags)
    push_files(adb, {f"{there}/{file.name}": file for file in files}, on_file)
    run_tool(
        adb,
        BENCH,
        ["--collect", there, "--resume", "--cache", CACHE_FOLDER, *flags],
        limit_s=limit_s,
        on_message=on_measured,
    )
    adb.pull(f"{there}/{RESULTS_FILE}", results)
    return collect_results(folder, results, samples)


def _phone_folder(orders: Path, flags: Sequence[str]) -> str:
    """One for each list of orders and settings: results of others never stand in the way."""
    digest = hashlib.sha256(orders.read_bytes() + "\n".join(flags).encode())
    return f"{PHONE_FOLDER}/collect-{digest.hexdigest()[:16]}"
