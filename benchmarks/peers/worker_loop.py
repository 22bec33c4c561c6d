"""The loop of a worker: a process that loads an engine and answers requests until told to end.

A worker is started as ``python ENGINE_worker.py TASK``, where TASK is a JSON object. It answers in
lines of JSON, first when it is ready, then once for every line of its input, a request with its
arguments; the last one is ``end``. Whatever goes wrong is an answer, too, and the worker ends:
{"error": "ImportError: ..."}. Engines print to stdout; here that is stderr, and the answers have a
channel of their own.

``workers/protocol.py`` has the requests to engines on the CPU, ``gpu/serving.py`` those to engines
on a GPU. All three run in the environments of all engines: the standard library and NumPy only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

Fields = dict[str, Any]
Handle = Callable[[str, str], Fields]
"""Answers a request with its arguments, one string."""


def answer_requests(start: Callable[[Fields], tuple[Fields, Handle]]) -> None:
    """Starts and answers until told to end; see the module.

    Args:
        start: takes the task, loads the engine; returns the first answer and what gives the others.
    """
    channel = _answer_channel()
    try:
        ready, handle = start(json.loads(sys.argv[1]))
        _answer(channel, ready)
        for line in sys.stdin:
            request, _, arguments = line.strip().partition(" ")
            _answer(channel, handle(request, arguments))
            if request == "end":
                break
    except Exception as error:
        _answer(channel, {"error": f"{type(error).__name__}: {error}"})
        sys.exit(1)


def timed_ms(call: Callable[[], Any]) -> float:
    """Milliseconds of a call."""
    begin = time.perf_counter()
    call()
    return milliseconds_since(begin)


def milliseconds_since(begin: float) -> float:
    """Of ``time.perf_counter``."""
    return (time.perf_counter() - begin) * 1e3


def write_result(result: NDArray[Any], path: str) -> Fields:
    """The answer to ``output PATH``: the result, written as a float32 .npy file, and its shape."""
    values = np.asarray(result, np.float32)
    np.save(path, values)
    return {"shape": list(values.shape)}


def _answer_channel() -> TextIO:
    """The process's stdout, which from now on is stderr for everyone else."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return channel


def _answer(channel: TextIO, fields: Fields) -> None:
    channel.write(json.dumps(fields) + "\n")
    channel.flush()
