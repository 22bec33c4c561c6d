"""A worker: a process that holds one engine with one network, and runs it when told to.

It is started as ``python -m benchmarks.peers.workers MODULE TASK``, where MODULE has the engine's
``load`` and TASK is a JSON object, the fields of ``Task``. It answers in lines of JSON. First, when
the network is loaded:

    {"pid": 7, "load_ms": 12.1, "version": "1.2", "notes": [...], "startup": {...}}

then once for every line of its input:

    batch N         {"first_ms": 91.0}        N images from now on; the first pass with them
    run WARM S      {"ms": [2.9, 2.8]}        inferences, from NumPy array to NumPy array
    device PASSES   {"ms": 0.22}              mean of queued passes, nothing copied; or null
    nodes           {"ms": [["conv1", 0.8]]}  each node's time in one pass; or null
    output PATH     {"shape": [1, 1, 1, 10]}  the result, written as a float32 NHWC .npy file
    end             {"peak_mib": 80.2, ...}   memory and libraries; the worker ends

Passes follow each other as those of a video's frames do: uncounted ones for WARM seconds, then
timed ones for S seconds, at least one of each. Whatever goes wrong is an answer, too, and the
worker ends: {"error": "ImportError: ..."}. Engines print to stdout; here that is stderr, and the
answers have a channel of their own.

This file runs in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Fields = dict[str, Any]
Forward = Callable[[], Array]
"""One inference: what the engine returns, (N, H, W, C) or (N, C) or, if it says so, NCHW."""
NodeTimes = list[tuple[str, float]]


@dataclass(frozen=True)
class Task:
    """What a worker is started with."""

    model: str  # file of the network
    image: str  # .npy file of one input, (1, H, W, 3), uint8 or float32
    threads: int = 1  # that the engine may use
    cores: list[int] = field(default_factory=list)  # that the process is pinned to; empty: any
    precision: str = "f32"  # that the engine is asked for, if it can choose, such as "bf16"
    variant: str = ""  # of the engine, if it has some
    device: str = "cpu"  # that the engine is asked for, if it has several


@dataclass(frozen=True)
class Engine:
    """A loaded network."""

    prepare: Callable[[Array], Forward]  # makes an inference for images (N, H, W, 3)
    version: str  # of the engine
    file: str  # in the folder that has the engine's shared libraries
    channels_first: bool = False  # whether results of rank 4 are (N, C, H, W)
    notes: tuple[str, ...] = ()  # what a reader of its times must know
    startup: dict[str, float] = field(default_factory=dict)  # what loading took, by name
    # Mean time of so many queued passes on data that stays on the device.
    device_ms: Callable[[int], float] | None = None
    # Times of the nodes in one pass, in execution order.
    nodes_ms: Callable[[], NodeTimes] | None = None


def planes(images: Array) -> Array:
    """(N, H, W, C) as the frameworks with channels first want it, (N, C, H, W)."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def milliseconds_since(begin: float) -> float:
    """Of ``time.perf_counter``."""
    return (time.perf_counter() - begin) * 1e3


def serve(load: Callable[[Task], Engine], text: str) -> None:
    """Loads and runs one engine until told to end; see the module.

    It is loaded after the process was pinned to its cores, which engines count when imported.
    """
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        task = Task(**json.loads(text))
        if task.cores:
            os.sched_setaffinity(0, task.cores)
        begin = time.perf_counter()
        engine = load(task)
        ready = {"pid": os.getpid(), "load_ms": milliseconds_since(begin)}
        ready |= {name: getattr(engine, name) for name in ("version", "notes", "startup")}
        print(json.dumps(ready), file=channel)
        worker = _Worker(task, engine)
        for line in sys.stdin:
            request, _, argument = line.strip().partition(" ")
            print(json.dumps(worker.handle(request, argument)), file=channel)
            if request == "end":
                break
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=channel)
        sys.exit(1)


class _Worker:
    def __init__(self, task: Task, engine: Engine) -> None:
        self.image: Array = np.load(task.image)
        self.engine = engine
        self.forward: Forward

    def handle(self, request: str, argument: str) -> Fields:
        engine = self.engine
        match request, argument.split():
            case "batch", [count]:
                self.forward = engine.prepare(np.repeat(self.image, int(count), axis=0))
                return {"first_ms": _timed_ms(self.forward)}
            case "run", [warm_s, timed_s]:
                _passes_ms(self.forward, float(warm_s))
                return {"ms": _passes_ms(self.forward, float(timed_s))}
            case "device", [passes]:
                return {"ms": engine.device_ms and engine.device_ms(int(passes))}
            case "nodes", []:
                return {"ms": engine.nodes_ms and engine.nodes_ms()}
            case "output", [_, *_]:
                result = np.asarray(self.forward(), np.float32)
                if result.ndim == 4 and engine.channels_first:
                    result = result.transpose(0, 2, 3, 1)
                np.save(argument, result)
                return {"shape": list(result.shape)}
            case "end", []:
                return {"peak_mib": _peak_mib(), **_library_sizes(Path(engine.file).parent)}
        raise ValueError(f"unknown request {request!r} with {argument!r}; the module names all")


def _timed_ms(call: Forward) -> float:
    begin = time.perf_counter()
    call()
    return milliseconds_since(begin)


def _passes_ms(forward: Forward, seconds: float) -> list[float]:
    """One after the other until the time is over."""
    times = [_timed_ms(forward)]
    while sum(times) < seconds * 1e3:
        times.append(_timed_ms(forward))
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
