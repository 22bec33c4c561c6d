"""Whether the testbed holds: where threads may run, whether the sides disturb each other, balance.

    python -m benchmarks.coexec.confinement --testbed g1c1-avx2

Fails where a thread may run on cores of the other side. How much each side slows down while the
other one works is measured and printed: caches, memory and the clock are shared, as in a phone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.coexec import layer_files
from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.layer_files import REFERENCE, in_turns, macs_of, name_of
from benchmarks.coexec.testbed import TestbedError, core_list
from phonebit import Network
from phonebit.network.random_inputs import random_inputs

TASKS: Final = Path("/proc/self/task")
ROUNDS: Final = 7


def task_cores() -> dict[int, tuple[str, frozenset[int]]]:
    """Name and allowed cores of each thread of this process."""
    tasks = {}
    for task in TASKS.iterdir():
        fields = dict(
            line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line
        )
        cores = frozenset(core_list(fields["Cpus_allowed_list"]))
        tasks[int(task.name)] = (fields["Name"].strip(), cores)
    return tasks


def check_threads(
    tasks: dict[int, tuple[str, frozenset[int]]], gpu: list[int], cpu: list[int]
) -> dict[str, int]:
    """How many threads each side has; a TestbedError unless each is on one side, one a GPU core."""
    on_gpu = [cores for _, cores in tasks.values() if cores <= set(gpu)]
    astray = [
        f"{name} ({task}) on {sorted(cores)}"
        for task, (name, cores) in tasks.items()
        if not (cores <= set(gpu) or cores <= set(cpu))
    ]
    if astray:
        raise TestbedError(
            f"threads may leave the GPU's cores {gpu} and the CPU's {cpu}: {', '.join(astray)}"
        )
    pinned = sorted(core for cores in on_gpu for core in cores)
    if pinned != gpu:
        raise TestbedError(
            f"PoCL should have one thread on each of the cores {gpu}, but has them on {pinned}; "
            "does this PoCL honour POCL_AFFINITY?"
        )
    return {"cpu_threads": len(tasks) - len(on_gpu), "gpu_threads": len(on_gpu)}


@contextmanager
def busy(network: Network) -> Iterator[None]:
    """A network that runs over and over meanwhile."""
    image = random_inputs(network.inputs, 1)
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            network.forward(image)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def interference(bench: Bench) -> dict[str, float]:
    """How much longer the reference layer takes while the other side works on it, too.

    Kernel times by the GPU's clock; the CPU's side is measured with a thread that waits for the
    GPU, which is what co-execution has.
    """
    path, place = layer_files.stored_layer(REFERENCE, bench.networks)
    networks = bench.alone(path)
    image = random_inputs(networks["cpu"].inputs, 1)
    alone: dict[str, list[float]] = {"cpu": [], "gpu": []}
    together: dict[str, list[float]] = {"cpu": [], "gpu": []}
    for _ in range(2 if bench.smoke else ROUNDS):
        for side, other in (("cpu", "gpu"), ("gpu", "cpu")):
            alone[side].append(networks[side].profile(image, 3)[place].latency_ms)
            with busy(networks[other]):
                together[side].append(networks[side].profile(image, 3)[place].latency_ms)
    return {side: median(together[side]) / median(alone[side]) for side in alone}


def balance(bench: Bench) -> dict[str, Any]:
    """Giga multiply-accumulates per second of either side on the reference layer."""
    layer = layer_files.MeasuredLayer(bench, REFERENCE)
    alone = {"cpu_gmacs": 0, "gpu_gmacs": layer.channels}
    times = in_turns(layer, alone.values(), repeats=3 if bench.smoke else 15, rounds=3)
    speeds = {side: macs_of(REFERENCE) / times[cut] / 1e3 for side, cut in alone.items()}
    return {**speeds, "cpu_over_gpu": speeds["cpu_gmacs"] / speeds["gpu_gmacs"]}


def measure(bench: Bench) -> dict[str, Any]:
    """The check and both measurements."""
    speeds = balance(bench)
    gpu, cpu = bench.testbed.cores()
    threads = check_threads(task_cores(), gpu, cpu)
    slowed = interference(bench)
    for side, cores in (("gpu", gpu), ("cpu", cpu)):
        speed = f"{speeds[f'{side}_gmacs']:.0f} GMAC/s on {name_of(REFERENCE)}"
        meanwhile = f"{slowed[side]:.2f} times as long with the other side"
        print(f"{side.upper()}: cores {cores}, {speed}, {meanwhile}")
    return {
        "gpu_cores": gpu,
        "cpu_cores": cpu,
        "isa": bench.testbed.isa,
        "device": bench.both,
        "reference": name_of(REFERENCE),
        **threads,
        **speeds,
        "slower_together": slowed,
    }


if __name__ == "__main__":
    sys.exit(main({"testbed": measure}, __doc__, budget_s=60))
