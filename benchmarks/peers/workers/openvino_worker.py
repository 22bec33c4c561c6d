"""OpenVINO's CPU plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.worker import Array, Engine, Forward, NodeTimes, Task, planes


def load(task: Task) -> Engine:
    """The network of an .xml or .onnx file, its shape fixed to the pictures'.

    The variant "nodes" counts each node's time.
    """
    import openvino

    core = openvino.Core()
    offered = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if task.precision == "bf16" and "BF16" not in offered:
        raise RuntimeError("this processor has no bf16 instructions that OpenVINO uses")
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": task.threads,
        "INFERENCE_PRECISION_HINT": "bf16" if task.precision == "bf16" else "f32",
        "PERF_COUNT": task.variant == "nodes",
    }
    model = core.read_model(task.model)
    requests: list[tuple[Any, Array]] = []
    """The request and the pictures of the last batch."""

    def prepare(pictures: Array) -> Forward:
        x = planes(pictures)
        model.reshape(list(x.shape))
        request = core.compile_model(model, "CPU", settings).create_infer_request()
        requests[:] = [(request, x)]
        return lambda: request.infer({0: x})[0]

    def nodes_ms() -> NodeTimes:
        ((request, x),) = requests
        request.infer({0: x})
        return [
            (node.node_name, node.real_time.total_seconds() * 1e3)
            for node in request.profiling_info
        ]

    package = Path(openvino.__file__).parent
    return Engine(prepare, openvino.__version__, package, True, nodes_ms=nodes_ms)
