"""What a worker on a GPU is asked: one engine with one network, run when told to.

``../worker_loop.py`` says how; the task is ``Task``. It is ready when the network is loaded:

    {"pid": 7, "load_ms": 812.0, "version": "1.2", "notes": [...], "startup": {...}}

then once for every line of its input:

    batch N            {"first_ms": 91.0}        N pictures from now on; the first pass with them
    run WARMUPS CALLS  {"ms": [0.31, 0.30]}      timed passes, NumPy arrays in and out
    device PASSES      {"ms": 0.22}              mean of queued passes, nothing copied; or null
    output PATH        {"shape": [4, 1, 1, 10]}  the result, written as a float32 NHWC .npy file
    end                {}                        the worker ends

This file runs in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

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

    def start(fields: Fields) -> tuple[Fields, Handle]:
        begin = time.perf_counter()
        engine = load(Task(**fields))
        ready = {
            "pid": os.getpid(),
            "load_ms": milliseconds_since(begin),
            "version": engine.version,
            "notes": engine.notes,
            "startup": engine.startup,
        }
        return ready, lambda request, arguments: _handle(engine, request, arguments)

    answer_requests(start)


def _handle(engine: Engine, request: str, arguments: str) -> Fields:
    match request, arguments.split():
        case "batch", [count]:
            engine.prepare(int(count))
            return {"first_ms": timed_ms(engine.forward)}
        case "run", [warmups, calls]:
            for _ in range(int(warmups)):
                engine.forward()
            return {"ms": [timed_ms(engine.forward) for _ in range(int(calls))]}
        case "device", [passes]:
            return {"ms": engine.device_ms(int(passes))}
        case "output", [_, *_]:
            return write_result(engine.forward(), arguments)
        case "end", []:
            return {}
    raise ValueError(f"unknown request {request!r} with {arguments!r}; the module names all")
