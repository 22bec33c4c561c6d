"""OpenVINO's CPU plugin."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.workers.protocol import Array, Engine, Task, serve


def load(task: Task) -> Engine:
    """The network of an .xml or .onnx file, its shape fixed to the picture's."""
    import openvino

    core = openvino.Core()
    offered = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if task.precision == "bf16" and "BF16" not in offered:
        raise RuntimeError("this processor has no bf16 instructions that OpenVINO uses")
    model = core.read_model(task.model)
    planes = task.read_planes()
    model.reshape(list(planes.shape))
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": task.threads,
        "INFERENCE_PRECISION_HINT": "bf16" if task.precision == "bf16" else "f32",
    }
    request = core.compile_model(model, "CPU", settings).create_infer_request()

    def forward() -> Array:
        result: Array = request.infer({0: planes})[0]
        return result

    return Engine(
        forward=forward,
        version=openvino.__version__,
        package=Path(openvino.__file__).parent,
        channels_first=True,
    )


if __name__ == "__main__":
    serve(load)
