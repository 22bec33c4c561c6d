"""ONNX Runtime's CPU provider."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.workers.protocol import Array, Engine, Task, serve


def load(task: Task) -> Engine:
    """The network of an .onnx file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = task.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: task.read_planes()}

    def forward() -> Array:
        result: Array = session.run(None, feeds)[0]
        return result

    return Engine(
        forward=forward,
        version=onnxruntime.__version__,
        package=Path(onnxruntime.__file__).parent,
        channels_first=True,
    )


if __name__ == "__main__":
    serve(load)
