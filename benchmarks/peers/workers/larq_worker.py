"""Larq Compute Engine.

Its interpreter is loaded without its package, which would import TensorFlow: start-up and memory
are then those of the engine. The variant "indirect" is its option ``use_indirect_bgemm``: off by
default, but several times faster on x86.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.worker import Array, Engine, Forward, Task


def interpreter(content: bytes, threads: int, indirect: bool) -> tuple[Any, Path]:
    """LCE's interpreter of a .tflite file, with XNNPACK for float layers.

    Args:
        content: Of the file that LCE's converter wrote.
        threads: Of the interpreter.
        indirect: Whether binary convolutions are its indirect binary GEMM.

    Returns:
        The interpreter, and the folder of its module.
    """
    found = importlib.util.find_spec("larq_compute_engine")
    if found is None or found.origin is None:
        raise ImportError("larq_compute_engine is not installed")
    package = Path(found.origin).parent / "tflite"
    name = "interpreter_wrapper_lite"
    spec = importlib.util.spec_from_file_location(name, package / "python" / f"{name}.so")
    if spec is None or spec.loader is None:
        raise ImportError(f"{package}: no {name}.so")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Model, threads, reference kernels, indirect binary GEMM, XNNPACK for float layers.
    return module.LiteInterpreter(content, threads, False, indirect, True), package / "python"


def load(task: Task) -> Engine:
    """The network of a .tflite file that LCE's converter wrote."""
    content = Path(task.model).read_bytes()
    larq, folder = interpreter(content, task.threads, task.variant == "indirect")

    def prepare(images: Array) -> Forward:
        single = [row[None] for row in images.astype(np.float32)]
        return lambda: np.concatenate([larq.predict([image])[0] for image in single])

    return Engine(prepare, version("larq-compute-engine"), str(folder))
