"""Whatever Python does to its threads and signals meanwhile, computing ends in no dead-lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from phonebit.converter.ir import Window
from phonebit.converter.ops import MaxPool2D
from phonebit.converter.writer import to_bytes
from support.engine_net import Net

LOAD = """
import sys, signal, threading, time, numpy as np, phonebit
network = phonebit.Network.load(sys.argv[1], device="cpu", threads=int(sys.argv[2]))
x = np.zeros((int(sys.argv[3]), 64, 64, 1), np.float32)
"""
ENDING = """
def compute():
    while True:
        network.forward(x)
threading.Thread(target=compute, daemon=True).start()
time.sleep(0.1)
"""
HANDLING = """
def handler(*_):
    try:
        network.forward(x[:1])
    except phonebit.DeviceError as error:
        print(error)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
begin = time.monotonic()
while time.monotonic() < begin + 0.3:
    network.forward(x)
print(network.forward(x).max())
"""
SUBINTERPRETER = """
try:
    import _interpreters as interpreters  # from Python 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters
inner = '''
import sys, phonebit
try:
    phonebit.Network.load({path!r}, device="cpu")
except phonebit.DeviceError as error:
    with open({out!r}, "w") as file:
        file.write(str(error))
'''
import sys
run = getattr(interpreters, "run_string", None) or interpreters.exec
made = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create()
run(made, inner.format(path=sys.argv[1], out=sys.argv[2]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    net = Net("pooling")
    value = net.input("x", (64, 64, 1))
    file = tmp_path / "pooling.pbit"
    file.write_bytes(to_bytes(net.done(net.op("pool", MaxPool2D(Window((5, 5))), value))))
    return file


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-W", "ignore", "-c", program, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_python_ends_quietly_with_a_daemon_thread_that_computes(path: Path, threads: int) -> None:
    runs = [started(LOAD + ENDING, path, threads, 1) for _ in range(3)]
    for run in runs:
        _, errors = run.communicate(timeout=60)
        assert (run.returncode, errors) == (0, "")


def test_a_signal_handler_cannot_use_the_network_that_it_interrupts(path: Path) -> None:
    run = started(LOAD + HANDLING, path, 1, 2000)
    output, errors = run.communicate(timeout=60)
    lines = output.splitlines()
    assert run.returncode == 0, errors
    assert "the network is computing in this thread" in lines[0]
    assert lines[1] == "0.0"


def test_a_subinterpreter_is_told_that_it_cannot_compute(path: Path, tmp_path: Path) -> None:
    text = tmp_path / "error.txt"
    run = started(SUBINTERPRETER, path, text)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 0, errors
    assert "in Python's main interpreter only" in text.read_text()
