"""PhoneBit on the CPU, or on an OpenCL device, where arrays are pyopencl's."""

from __future__ import annotations

import time
from typing import Any, Final

from benchmarks.peers.worker import Array, Engine, Forward, Task, milliseconds_since

HALF_NOTES: Final = (
    "rounding to half precision flips signs of values near zero, which random weights magnify",
)


def load(task: Task) -> Engine:
    """The network of a .pbit file."""
    import phonebit

    threads = task.threads if task.device == "cpu" else 0
    precision: Any = task.variant or "exact"
    network = phonebit.Network.load(task.model, task.device, threads=threads, precision=precision)
    given: list[Array] = []
    """The images of the last batch."""

    def prepare(images: Array) -> Forward:
        given[:] = [images]
        return lambda: network.forward(images)

    def device_ms(passes: int) -> float:
        """By the host's clock around passes that are enqueued without waiting."""
        import pyopencl.array

        (info,), (images,) = network.inputs, given
        if info.dtype == "f32" and images.dtype == "uint8":
            images = network.preprocessing[info.name].values(images)
        x = pyopencl.array.to_device(network.queue, images)
        result = network.forward(x)
        network.queue.finish()
        begin = time.perf_counter()
        for _ in range(passes):
            network.forward(x, out=result)
        network.queue.finish()
        return milliseconds_since(begin) / passes

    return Engine(
        prepare,
        phonebit.__version__,
        phonebit.__file__,
        notes=HALF_NOTES if task.variant in ("f16", "fast") and task.device == "gpu" else (),
        startup=network.startup,
        device_ms=device_ms,
    )
