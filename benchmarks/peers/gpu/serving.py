"""The side of a GPU worker: one engine with one network in a process, run when told to.

A worker is started as ``python gpu/ENGINE_worker.py TASK``, where TASK is a JSON object (``Task``).
It answers in lines of JSON, first when the network is loaded:

    {"pid": 7, "load_ms": 812.0, "version": "1.2", "notes": [...], "startup": {...}}

then once for every line of its input:

    batch N            {"first_ms": 91.0}        N pictures from now on; the first pass with them
    run WARMUPS CALLS  {"ms": [0.31, 0.30]}      timed passes, NumPy arrays in and out
    device PASSES      {"ms": 0.22}              mean of queued passes, nothing copied; or null
    output PATH        {"shape": [4, 1, 1, 10]}  the result, written as a float32 NHWC .npy file
    end                {}                        the worker ends

Whatever goes wrong is an answer, too: {"error": "ImportError: ..."}, and the worker ends. Engines
print to stdout; here that is stderr, and the answers have a channel of their own.

This file runs in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TextIO

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SEED: Final = 0


@dataclass(frozen=True)
class Task:
    """What a worker is started with.

    Attributes:
        model: file of the network.
        shape: (height, width, channels) of a picture.
        result: name of the network's output.
        precision: that the engine is asked for.
        device: that the engine is asked for, if it has several.
    """

    model: str
    shape: tuple[int, int, int]
    result: str
    precision: str
    device: str

    def levels(self, count: int) -> NDArray[np.uint8]:
        """Seeded pictures (count, height, width, channels); the first are the same in any count."""
        rows = (np.random.default_rng(SEED + i) for i in range(count))
        return np.stack([rng.integers(0, 256, self.shape, np.uint8) for rng in rows])

    def values(self, count: int) -> NDArray[np.float32]:
        """The same pictures as values of -1..1."""
        return ((2 * self.levels(count).astype(np.float32) - 255) / 255).astype(np.float32)


class Engine(ABC):
    """A loaded network; ``load`` of a worker makes one.

    Attributes:
        version: of the engine.
        notes: what a reader of its times must know.
        startup: what loading took, by name.
    """

    def __init__(
        self, version: str, notes: tuple[str, ...] = (), startup: dict[str, float] | None = None
    ) -> None:
        self.version = version
        self.notes = notes
        self.startup = startup or {}

    @abstractmethod
    def prepare(self, count: int) -> None:
        """Pictures, buffers and whatever else a batch of this size needs before it is run."""

    @abstractmethod
    def forward(self) -> Array:
        """One pass over the batch; its result on the host, (N, H, W, C) or (N, C)."""

    def device_ms(self, passes: int) -> float | None:
        """Mean time of queued passes on data that stays there; None if the engine cannot."""
        return None


def serve(load: Callable[[Task], Engine]) -> None:
    """Loads and runs one engine until told to end; see the module."""
    answers = _answer_channel()
    try:
        begin = time.perf_counter()
        engine = load(Task(**json.loads(sys.argv[1])))
        _answer(
            answers,
            pid=os.getpid(),
            load_ms=milliseconds_since(begin),
            version=engine.version,
            notes=engine.notes,
            startup=engine.startup,
        )
        for line in sys.stdin:
            words = line.split()
            _answer(answers, **_handle(engine, words[0], words[1:]))
            if words[0] == "end":
                break
    except Exception as error:
        _answer(answers, error=f"{type(error).__name__}: {error}")
        sys.exit(1)


def _handle(engine: Engine, request: str, arguments: list[str]) -> dict[str, Any]:
    match request, arguments:
        case "batch", [count]:
            engine.prepare(int(count))
            begin = time.perf_counter()
            engine.forward()
            return {"first_ms": milliseconds_since(begin)}
        case "run", [warmups, calls]:
            for _ in range(int(warmups)):
                engine.forward()
            return {"ms": [_timed(engine.forward) for _ in range(int(calls))]}
        case "device", [passes]:
            return {"ms": engine.device_ms(int(passes))}
        case "output", [path]:
            result = np.asarray(engine.forward(), np.float32)
            np.save(path, result)
            return {"shape": list(result.shape)}
        case "end", []:
            return {}
    raise ValueError(f"unknown request {request!r} {arguments}; the module names all")


def _timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return milliseconds_since(begin)


def milliseconds_since(begin: float) -> float:
    """Of ``time.perf_counter``."""
    return (time.perf_counter() - begin) * 1e3


def _answer_channel() -> TextIO:
    """The process's stdout, which from now on is stderr for everyone else."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return channel


def _answer(channel: TextIO, **fields: Any) -> None:
    channel.write(json.dumps(fields) + "\n")
    channel.flush()
