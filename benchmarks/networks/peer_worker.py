"""Times every node of an ONNX network in another engine, in a process and a Python of its own.

    python -m benchmarks.networks.peer_worker openvino float.onnx picture.npy 1

Prints {"engine": ...} when it is ready; answers each line of its input with the nodes' milliseconds
in one forward pass, [[name, ms], ...] in execution order. Needs NumPy and the engine, not phonebit.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NodeTimes = list[tuple[str, float]]


def openvino(model: str, picture: np.ndarray, threads: int) -> tuple[str, Callable[[], NodeTimes]]:
    """OpenVINO's counters of each node, in float32."""
    import openvino as ov

    options: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "PERF_COUNT": True,
    }
    core = ov.Core()
    network = core.read_model(model)
    network.reshape(list(picture.shape))
    request = core.compile_model(network, "CPU", options).create_infer_request()

    def run() -> NodeTimes:
        request.infer([picture])
        return [(node.node_name, node.real_time.total_seconds() * 1e3)
                for node in request.profiling_info]  # fmt: skip

    return f"OpenVINO {ov.__version__.split('-')[0]}", run


def onnxruntime(
    model: str, picture: np.ndarray, threads: int
) -> tuple[str, Callable[[], NodeTimes]]:
    """ONNX Runtime's profile; it is written when a session ends, so each pass has a session."""
    import onnxruntime as ort

    folder = tempfile.TemporaryDirectory()

    def run() -> NodeTimes:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder.name) / "profile")
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: picture}
        for _ in range(WARM_PASSES):
            session.run(None, feed)
        file = Path(session.end_profiling())
        events = [event for event in json.loads(file.read_text()) if event.get("cat") == "Node"]
        file.unlink()
        nodes = [event for event in events if event["name"].endswith("_kernel_time")]
        last = nodes[-(len(nodes) // WARM_PASSES) :]
        return [(event["name"].removesuffix("_kernel_time"), event["dur"] * 1e-3) for event in last]

    return f"ONNX Runtime {ort.__version__}", run


WARM_PASSES = 3
"""Passes of an ONNX Runtime session, of which the last counts."""
ENGINES = {"openvino": openvino, "onnxruntime": onnxruntime}


def main() -> None:
    """Command line: engine, model, picture (1, C, H, W) float32, threads."""
    engine, model, picture, threads = sys.argv[1:]
    name, run = ENGINES[engine](model, np.load(picture), int(threads))
    run()
    print(json.dumps({"engine": name}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)


if __name__ == "__main__":
    main()
