"""The side of a worker: a process that holds one engine with one network and runs it when told to.

A worker is started as ``python workers/ENGINE.py TASK``, where TASK is a JSON object (``Task``). It
answers in lines of JSON, first when the network is loaded and has given its first result:

    {"load_ms": 12.1, "first_ms": 3.0, "version": "1.2"}

then once for every line of its input:

    run            {"ms": 2.9}                    one forward pass, from NumPy array to NumPy array
    output PATH    {"shape": [1, 1, 1, 1000]}     the result, written as a float32 NHWC .npy file
    end            {"peak_mib": 80.2, ...}        memory and libraries; the worker ends

Whatever goes wrong is an answer, too: {"error": "ImportError: ..."}. Engines print to stdout;
here that is stderr, and the answers have a channel of their own.

This file runs in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

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
    answers = _answer_channel()
    try:
        task = Task(**json.loads(sys.argv[1]))
        if task.cores:
            os.sched_setaffinity(0, task.cores)
        begin = time.perf_counter()
        engine = load(task)
        load_ms = _milliseconds_since(begin)
        begin = time.perf_counter()
        engine.forward()
        first_ms = _milliseconds_since(begin)
        _answer(answers, load_ms=load_ms, first_ms=first_ms, version=engine.version)
        for line in sys.stdin:
            request, _, argument = line.strip().partition(" ")
            _answer(answers, **_handle(engine, request, argument))
            if request == "end":
                break
    except Exception as error:
        _answer(answers, error=f"{type(error).__name__}: {error}")
        sys.exit(1)


def _handle(engine: Engine, request: str, argument: str) -> dict[str, Any]:
    if request == "run":
        begin = time.perf_counter()
        engine.forward()
        return {"ms": _milliseconds_since(begin)}
    if request == "output":
        result = np.asarray(engine.forward(), np.float32)
        if result.ndim == 4 and engine.channels_first:
            result = result.transpose(0, 2, 3, 1)
        np.save(argument, result)
        return {"shape": list(result.shape)}
    if request == "end":
        return {"peak_mib": _peak_mib(), **_library_sizes(engine.package)}
    raise ValueError(f"unknown request {request!r}; expected run, output PATH or end")


def _answer_channel() -> TextIO:
    """The process's stdout, which from now on is stderr for everyone else."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return channel


def _answer(channel: TextIO, **fields: Any) -> None:
    channel.write(json.dumps(fields) + "\n")
    channel.flush()


def _milliseconds_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1e3


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
