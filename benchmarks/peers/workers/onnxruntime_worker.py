"""ONNX Runtime's CPU provider."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.peers.worker import Array, Engine, Forward, NodeTimes, Task, planes

NODES_PASSES: Final = 3
"""Of a session whose nodes are timed; the last one counts."""


def load(task: Task) -> Engine:
    """The network of an .onnx file."""
    import onnxruntime

    def start(profile: str = "") -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = task.threads
        options.inter_op_num_threads = 1
        if profile:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        return onnxruntime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])

    session = start()
    feeds = {}

    def prepare(images: Array) -> Forward:
        feeds[session.get_inputs()[0].name] = planes(images)
        return lambda: session.run(None, feeds)[0]

    def nodes_ms() -> NodeTimes:
        """By a profile; it is written when a session ends, so each inference has a session."""
        with tempfile.TemporaryDirectory() as folder:
            profiled = start(f"{folder}/profile")
            for _ in range(NODES_PASSES):
                profiled.run(None, feeds)
            events = json.loads(Path(profiled.end_profiling()).read_text())
        nodes = [
            (event["name"].removesuffix("_kernel_time"), event["dur"] * 1e-3)
            for event in events
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
        ]
        return nodes[-(len(nodes) // NODES_PASSES) :]

    file = onnxruntime.__file__
    return Engine(prepare, onnxruntime.__version__, file, True, nodes_ms=nodes_ms)
