"""OpenVINO's CPU plugin."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.worker import Array, Engine, Forward, NodeTimes, Task, planes


def load(task: Task) -> Engine:
    """The network of an .xml or .onnx file, its shape fixed to the images'.

    The variant "nodes" counts each node's time; "streams" is the plugin's throughput mode, in which
    the images of a batch are requests of their own.
    """
    import numpy as np
    import openvino

    core = openvino.Core()
    offered = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if task.precision == "bf16" and "BF16" not in offered:
        raise RuntimeError("this processor has no bf16 instructions that OpenVINO uses")
    settings = {
        "PERFORMANCE_HINT": "THROUGHPUT" if task.variant == "streams" else "LATENCY",
        "INFERENCE_NUM_THREADS": task.threads,
        "INFERENCE_PRECISION_HINT": "bf16" if task.precision == "bf16" else "f32",
        "PERF_COUNT": task.variant == "nodes",
    }
    model = core.read_model(task.model)
    requests: list[tuple[Any, Array]] = []
    """The request and the images of the last batch."""

    def prepare(images: Array) -> Forward:
        x = planes(images)
        if task.variant == "streams":
            return side_by_side(x)
        model.reshape(list(x.shape))
        request = core.compile_model(model, "CPU", settings).create_infer_request()
        requests[:] = [(request, x)]
        return lambda: request.infer({0: x})[0]

    def side_by_side(x: Array) -> Forward:
        model.reshape([1, *x.shape[1:]])
        compiled = core.compile_model(model, "CPU", settings)
        results = np.empty((len(x), *compiled.output(0).shape[1:]), np.float32)

        def keep(request: Any, index: int) -> None:
            results[index] = request.get_output_tensor(0).data[0]

        queue = openvino.AsyncInferQueue(compiled)  # as many requests as suit its streams
        queue.set_callback(keep)

        def forward() -> Array:
            for index in range(len(x)):
                queue.start_async({0: x[index : index + 1]}, index, share_inputs=True)
            queue.wait_all()
            return results

        return forward

    def nodes_ms() -> NodeTimes:
        ((request, x),) = requests
        request.infer({0: x})
        return [
            (node.node_name, node.real_time.total_seconds() * 1e3)
            for node in request.profiling_info
        ]

    return Engine(prepare, openvino.__version__, openvino.__file__, True, nodes_ms=nodes_ms)
