"""What a worker on the CPU is asked: one engine with one network, run when told to.

``../worker_loop.py`` says how; the task is ``Task``. It is ready when the network is loaded and has
given its first result:

    {"load_ms": 12.1, "first_ms": 3.0, "version": "1.2"}

then once for every line of its input:

    run WARM S     {"ms": [2.9, 2.8]}             forward passes, from NumPy array to NumPy array
    output PATH    {"shape": [1, 1, 1, 1000]}     the result, written as a float32 NHWC .npy file
    end            {"peak_mib": 80.2, ...}        memory and libraries; the worker ends

Passes follow each other as those of a video's frames do: uncounted ones for WARM seconds, then
timed ones for S seconds, at least one of each.

This file runs in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.worker_loop import (
    Fields,
    Handle,
    answer_requests,
    milliseconds_since,
    timed_ms,
    write_result,
)

Array = NDArray[Any]
Forward = Callable[[], Array]
"""One forward pass: what the engine returns, (N, H, W, C) or (N, C) or, if it says so, NCHW."""


@dataclass(frozen=True)
class Task:
    """What a worker is started with.

    Attributes:
        model: file of the network.
        picture: .npy file of the input, (N, H, W, 3), uint8 or float32.
        threads: that the engine may use.
        cores: that the process is pinned to; empty: any.
        precision: that the engine is asked for, if it can choose: "f32", "bf16", ...
        variant: of the engine, if it has some.
    """

    model: str
    picture: str
    threads: int
    cores: list[int]
    precision: str = "f32"
    variant: str = ""

    def read_picture(self) -> Array:
        """The input (N, H, W, 3)."""
        array: Array = np.load(self.picture)
        return array

    def read_planes(self) -> Array:
        """The input as the frameworks with channels first want it, (N, 3, H, W)."""
        return np.ascontiguousarray(self.read_picture().transpose(0, 3, 1, 2))


@dataclass(frozen=True)
class Engine:
    """A loaded network.

    Attributes:
        forward: runs it once.
        version: of the engine.
        package: folder with the engine's shared libraries.
        channels_first: whether results of rank 4 are (N, C, H, W).
    """

    forward: Forward
    version: str
    package: Path
    channels_first: bool = False


def serve(load: Callable[[Task], Engine]) -> None:
    """Loads and runs one engine until told to end; see the module.

    Args:
        load: imports the engine and loads the task's network. It is called after the process was
            pinned to its cores, since engines count them when they are imported.
    """

    def start(fields: Fields) -> tuple[Fields, Handle]:
        task = Task(**fields)
        if task.cores:
            os.sched_setaffinity(0, task.cores)
        begin = time.perf_counter()
        engine = load(task)
        load_ms = milliseconds_since(begin)
        first_ms = timed_ms(engine.forward)
        ready = {"load_ms": load_ms, "first_ms": first_ms, "version": engine.version}
        return ready, lambda request, argument: _handle(engine, request, argument)

    answer_requests(start)


def _handle(engine: Engine, request: str, argument: str) -> Fields:
    if request == "run":
        warm_s, timed_s = map(float, argument.split())
        _passes_ms(engine.forward, warm_s)
        return {"ms": _passes_ms(engine.forward, timed_s)}
    if request == "output":
        result = np.asarray(engine.forward())
        if result.ndim == 4 and engine.channels_first:
            result = result.transpose(0, 2, 3, 1)
        return write_result(result, argument)
    if request == "end":
        return {"peak_mib": _peak_mib(), **_library_sizes(engine.package)}
    raise ValueError(f"unknown request {request!r}; expected run WARM S, output PATH or end")


def _passes_ms(forward: Forward, seconds: float) -> list[float]:
    """One after the other until the time is over."""
    times = [timed_ms(forward)]
    while sum(times) < seconds * 1e3:
        times.append(timed_ms(forward))
    return times


def _peak_mib() -> float:
    """Largest resident memory of this process so far, mapped files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no line VmHWM")


def _library_sizes(package: Path) -> dict[str, int]:
    """Bytes of the engine's shared libraries: those in its folder, and those in use here."""
    libraries = {path.resolve() for path in package.rglob("*.so*") if path.is_file()}
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {Path(line.split(maxsplit=5)[5]) for line in maps if line.count("/")}
    return {
        "library_bytes": sum(path.stat().st_size for path in libraries),
        "loaded_library_bytes": sum(path.stat().st_size for path in libraries & mapped),
    }
