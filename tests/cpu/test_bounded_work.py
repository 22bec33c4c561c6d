"""A file's work and memory are bounded at load, loading is fast, and an inference can be ended."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from endless_graphs import endless_graphs

from phonebit import CancelledError, DeviceError, InputError, ModelFormatError, Network
from phonebit.converter.ir import Graph, Node, Operator, Window
from phonebit.converter.ops import Conv2D, MaxPool2D
from phonebit.converter.writer import to_bytes
from phonebit.format.records import OpKind
from support.engine_net import Net
from support.opencl_device import UNOPTIMIZED, device_name, pyopencl_device

LATE_S = 0.1
"""Within this an inference ends; in processor time, for machines that do other work meanwhile."""


def pooling(size: int, window: int) -> Graph:
    """Max-pooling of one channel: ``window ** 2`` reads per output, in a file of a few bytes."""
    net = Net(f"pooling_{size}_{window}")
    value = net.input("x", (size, size, 1))
    return net.done(net.op("pool", MaxPool2D(Window((window, window))), value))


def chain(name: str, shape: tuple[int, int, int], op: Operator, count: int) -> Graph:
    """An operator that keeps the shape, ``count`` times."""
    net = Net(name)
    value = net.input("x", shape)
    for index in range(count):
        net.graph.nodes.append(Node(f"op{index}", op, [value], value=f"op{index}"))
        value = f"op{index}"
    return net.done(value)


def stored(graph: Graph, folder: Path) -> Path:
    path = folder / f"{graph.name}.pbit"
    path.write_bytes(to_bytes(graph))
    return path


def test_a_file_that_asks_for_endless_work_is_refused(tmp_path: Path) -> None:
    path = stored(pooling(4096, 2048), tmp_path)  # 4.2e6 reads each of 4.2e6 outputs
    with pytest.raises(ModelFormatError, match=r"pool.*operations, more than the limit"):
        Network.load(path, device="cpu")
    Network.load(path, device="cpu", max_work=1e17)


def test_limits_are_the_callers(tmp_path: Path) -> None:
    path = stored(pooling(64, 3), tmp_path)
    work = 62 * 62 * 9
    Network.load(path, device="cpu", max_work=work)
    with pytest.raises(ModelFormatError, match="more than the limit"):
        Network.load(path, device="cpu", max_work=work - 1)
    Network.load(path, device="cpu", max_memory_bytes=1 << 20)
    with pytest.raises(ModelFormatError, match="memory limit"):
        Network.load(path, device="cpu", max_memory_bytes=100)
    with pytest.raises(ModelFormatError, match="an input or output"):
        Network.load(path, device="cpu", max_memory_bytes=30_000)
    for limits in ({"max_work": -1.0}, {"max_work": math.nan}, {"max_memory_bytes": -1}):
        with pytest.raises(InputError, match="out of range"):
            Network.load(path, device="cpu", **limits)


def test_loading_takes_as_long_as_the_file_is_large(tmp_path: Path) -> None:
    """Not as long as its maps: each of these pools has a million rows."""
    path = stored(chain("long", (1 << 20, 1, 1), MaxPool2D(Window((1, 1))), 400), tmp_path)
    begin = time.process_time()
    Network.load(path, device="cpu", threads=1)
    assert time.process_time() - begin < 0.2


def ends_soon(network: Network, x: np.ndarray) -> float:
    """Processor seconds from ``cancel`` to the end of the inference; the best of some.

    Inferences follow each other until then, so that one is under way, however fast the machine is.
    """
    minimum = np.inf
    for _ in range(5):
        begun, asked = threading.Event(), threading.Event()

        def infer(begun: threading.Event = begun, asked: threading.Event = asked) -> None:
            begun.set()
            with suppress(CancelledError):
                while not asked.is_set():
                    network.forward(x)

        worker = threading.Thread(target=infer)
        worker.start()
        begun.wait()
        time.sleep(0.3)
        begin = time.process_time()
        asked.set()
        network.cancel()
        worker.join()
        minimum = min(minimum, time.process_time() - begin)
        if minimum < LATE_S:
            break
    return minimum


GRAPHS = {graph.name: graph for graph in endless_graphs()}


def test_every_operator_is_among_the_endless_ones() -> None:
    kinds = {node.op.kind for graph in GRAPHS.values() for node in graph.nodes if node.inputs}
    assert kinds == set(OpKind)


@pytest.mark.parametrize(
    "device", ["cpu", "cpu:scalar", pytest.param("gpu", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", GRAPHS)
def test_cancel_ends_an_inference_within_a_layer(name: str, device: str, tmp_path: Path) -> None:
    if device == "gpu":
        device = device_name(pyopencl_device())
    path = stored(GRAPHS[name], tmp_path)
    if device.startswith("gpu") and name == "max_pool2d_one_window":
        with pytest.raises(DeviceError, match=r"window of 16777216 taps.*use the CPU"):
            Network.load(path, device=device)
        return
    network = Network.load(path, device=device, threads=1)
    (x,) = zeros(network).values()
    threads = 1 if device.startswith("cpu") else (os.cpu_count() or 1)
    assert ends_soon(network, x) < threads * LATE_S


def zeros(network: Network) -> dict[str, np.ndarray]:
    kinds = {"u8": np.uint8, "f32": np.float32}
    return {info.name: np.zeros((1, *info.shape), kinds[info.dtype]) for info in network.inputs}


@pytest.mark.parametrize("delay_s", [0.01, 0.03, 0.1])
def test_ctrl_c_ends_loading(delay_s: float, large_file: Path) -> None:
    came: list[float] = []

    def interrupt(*_: object) -> None:
        came.append(time.process_time())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_PROF, delay_s)
            Network.load(large_file, device="cpu", threads=1)
        assert time.process_time() - came[0] < LATE_S
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose check takes some tenths of a second, and its weights are packed for longer."""
    net = Net("large")
    value = net.input("x", (1, 1, 1 << 20))
    weights = np.full((8, 1, 1, 1 << 20), 0.5, np.float32)
    for index in range(3):
        net.op(f"op{index}", Conv2D(weights + index, Window((1, 1))), value)
    graph = net.done(*(f"op{index}" for index in range(3)))
    return stored(graph, tmp_path_factory.mktemp("large"))


INTERRUPTED = """
import sys, time, numpy, phonebit
network = phonebit.Network.load(sys.argv[1], device=sys.argv[2], threads=1)
x = numpy.zeros((1, 1536, 1536, 1), "f4")
print("begins", flush=True)
try:
    network.forward(x)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_ctrl_c_ends_an_inference(device: str, tmp_path: Path) -> None:
    if device == "gpu":
        device = device_name(pyopencl_device())
    path = stored(pooling(1536, 60), tmp_path)
    with subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", INTERRUPTED, str(path), device],
        # How long a launch takes is meant for kernels as users have them.
        env={**os.environ, **dict.fromkeys(UNOPTIMIZED, "")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        begin = time.monotonic()
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < 2.0  # an uninterrupted one takes half a minute
