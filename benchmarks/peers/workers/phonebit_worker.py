"""PhoneBit on the CPU."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.workers.protocol import Engine, Task, serve


def load(task: Task) -> Engine:
    """The network of a .pbit file."""
    import phonebit

    precision = "fast" if task.variant == "fast" else "exact"
    network = phonebit.Network.load(
        task.model, device="cpu", threads=task.threads, precision=precision
    )
    picture = task.read_picture()

    return Engine(
        forward=lambda: network.forward(picture),
        version=phonebit.__version__,
        package=Path(phonebit.__file__).parent,
    )


if __name__ == "__main__":
    serve(load)
