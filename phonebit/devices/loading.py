"""Opening a file with the compiled runtime: device, stored tuning, cache folder, warnings."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from phonebit.compiled import load_runtime
from phonebit.devices.kernel_presets import KERNELS, Kernels, preset_lines
from phonebit.devices.runtime import usable_cores
from phonebit.devices.target import Target, find_target
from phonebit.devices.thread_count import default_threads
from phonebit.devices.tuning_store import cache_folder, stored_tuning, tuning_file
from phonebit.errors import DeviceError, InputError, PhoneBitWarning

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.devices.target import DeviceLike
    from phonebit.planner import ExecutionPlan

_log = logging.getLogger(__name__)

Precision = Literal["exact", "f16", "fast"]
PRECISIONS: tuple[Precision, ...] = ("exact", "f16", "fast")
Sharing = Literal["auto", "copy", "map", "svm"]
SHARINGS: tuple[Sharing, ...] = ("auto", "copy", "map", "svm")
Synchronization = Literal["auto", "events", "user_events", "polling"]
SYNCHRONIZATIONS: tuple[Synchronization, ...] = ("auto", "events", "user_events", "polling")
Cores: TypeAlias = "Literal['any', 'big', 'little'] | Sequence[int]"
CORES = ("any", "big", "little")
Hint = Literal["none", "performance", "power"]
HINTS: tuple[Hint, ...] = ("none", "performance", "power")
MAX_THREADS = 1024


@dataclass(frozen=True)
class EngineOptions:
    """How an engine works; ``Network.load`` explains each."""

    threads: int = 0
    precision: Precision = "exact"
    plan: ExecutionPlan | None = None
    sharing: Sharing = "auto"
    synchronization: Synchronization = "auto"
    trial: bool = True
    cores: Cores = "any"
    hint: Hint = "none"
    in_place: bool = False
    max_memory_bytes: int = 0
    max_work: float = 0.0
    kernels: Kernels = "tuned"

    def thread_count(self) -> int:
        """Threads to ask the runtime for; 0: one for each of the chosen ``cores``."""
        if self.threads or self.cores != "any":
            return self.threads
        return min(default_threads().threads, MAX_THREADS)

    def check(self) -> None:
        """Raises InputError if one is out of range."""
        if not 0 <= self.threads <= MAX_THREADS:
            raise InputError(
                "number of threads out of range",
                where="threads",
                expected=f"0 (what `phonebit devices` says) to {MAX_THREADS}",
                got=self.threads,
            )
        for name, limit in (
            ("max_memory_bytes", self.max_memory_bytes),
            ("max_work", self.max_work),
        ):
            if not limit >= 0:  # nor nan
                raise InputError(
                    "limit out of range",
                    where=name,
                    expected="0 (from this machine) or more",
                    got=limit,
                )
        for name, known in (
            ("precision", PRECISIONS),
            ("sharing", SHARINGS),
            ("synchronization", SYNCHRONIZATIONS),
            ("cores", CORES),
            ("hint", HINTS),
            ("kernels", KERNELS),
        ):
            if name == "cores" and not isinstance(self.cores, str) and len(self.cores) > 0:
                continue  # the runtime knows which processors there are
            if getattr(self, name) not in known:
                raise InputError(
                    f"unknown {name}",
                    where=name,
                    expected=" or ".join(map(repr, known)),
                    got=repr(getattr(self, name)),
                )


def open_engine(
    path: Path, device: DeviceLike, options: EngineOptions, stacklevel: int = 3
) -> _runtime.Network:
    """Load a file into the runtime; see ``Network.load``.

    Args:
        path: the file.
        device: where it shall run.
        options: how.
        stacklevel: whose line warnings name, counted from this function.

    Returns:
        The runtime's object.

    Raises:
        ModelFormatError: if the file is not sound.
        OSError: if it cannot be read.
        DeviceError: if the device is absent or cannot run the network.
        InputError: if an option is out of range, or the plan does not fit the file.
    """
    options.check()
    target = find_target(device)
    with path.open("rb"):  # the operating system's own error if it is absent or a directory
        pass
    notes: list[str] = []
    cores = usable_cores()
    if options.threads > cores:
        notes.append(
            f"{options.threads} threads on {cores} usable cores: they wait for each other, which "
            f"can take a thousand times as long; use at most {cores}"
        )
    begin = time.perf_counter()
    try:
        engine = _open(path, target, options, notes)
    except DeviceError as error:
        if device != "auto" or not target.is_opencl:
            raise
        notes.append(f"the CPU serves, since {target.device} cannot: {error}")
        engine = _open(path, Target("cpu"), options, notes)
    took_ms = 1e3 * (time.perf_counter() - begin)
    _log.info("loaded %s on %s, threads=%d, %.1f ms", path, engine.device, engine.threads, took_ms)
    for note in [*notes, *engine.warnings]:
        warnings.warn(note, PhoneBitWarning, stacklevel=stacklevel)
    return engine


def _open(path: Path, target: Target, options: EngineOptions, notes: list[str]) -> _runtime.Network:
    def construct(tuning: str) -> _runtime.Network:
        engine: _runtime.Network = load_runtime().Network(
            str(path),
            threads=options.thread_count(),
            device=target.device,
            precision=options.precision,
            tuning=tuning,
            cache_directory=str(cache_folder() or ""),
            plan=options.plan.as_tuple() if options.plan is not None else None,
            sharing=options.sharing,
            synchronization=options.synchronization,
            trial=options.trial,
            cores=options.cores if isinstance(options.cores, str) else list(options.cores),
            hint=options.hint,
            in_place=options.in_place,
            max_memory_bytes=options.max_memory_bytes,
            max_work=options.max_work,
        )
        return engine

    if options.kernels != "tuned":
        if not target.is_opencl:
            raise InputError(
                "this choice of kernels is for OpenCL devices",
                where=f"kernels {options.kernels!r}",
                got=f"device {target.device!r}",
                hint="use device 'gpu'; `phonebit devices` lists what there is",
            )
        return construct(preset_lines(options.kernels, target.key))
    tuning = stored_tuning(target.key) if target.is_opencl else ""
    if not tuning:
        return construct("")
    try:
        return construct(tuning)
    except InputError as error:  # a damaged entry, or one of another version of the kernels
        engine = construct("")
        notes.append(
            f"stored tuning is ignored: {error}; "
            f"run `phonebit tune` again, or delete {tuning_file(target.key)}"
        )
        return engine
