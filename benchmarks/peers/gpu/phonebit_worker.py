"""PhoneBit on an OpenCL device."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

import phonebit
from benchmarks.peers.gpu.serving import Array, Engine, Task, serve
from benchmarks.peers.worker_loop import milliseconds_since

HALF_NOTES: Final = (
    "rounding to half precision flips signs of values near zero, which random weights magnify",
)


class PhoneBit(Engine):
    """A .pbit file; arrays on the device are pyopencl's."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.network = phonebit.Network.load(
            task.model, device=task.device, precision=task.precision
        )
        notes = HALF_NOTES if task.precision == "f16" else ()
        super().__init__(phonebit.__version__, notes, self.network.startup)

    def prepare(self, count: int) -> None:
        """Levels where the file reads them, else values."""
        is_u8 = self.network.inputs[0].dtype == "u8"
        self.pictures = self.task.levels(count) if is_u8 else self.task.values(count)

    def forward(self) -> Array:
        """Upload, pass, download."""
        result = self.network.forward(self.pictures)
        assert isinstance(result, np.ndarray), "one output, on the host"
        return result

    def device_ms(self, passes: int) -> float | None:
        """By the host's clock around passes that are enqueued without waiting."""
        import pyopencl.array

        queue = self.network.queue
        x = pyopencl.array.to_device(queue, self.pictures)
        result = self.network.forward(x)
        queue.finish()
        begin = time.perf_counter()
        for _ in range(passes):
            self.network.forward(x, out=result)
        queue.finish()
        return milliseconds_since(begin) / passes


if __name__ == "__main__":
    serve(PhoneBit)
