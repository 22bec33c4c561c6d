"""Networks may be used from several Python threads; the interpreter runs on while they compute."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from phonebit import _runtime
from support.golden import integer_inputs
from support.stress_graphs import ISAS, Array, load, many_parts

GRAPH = many_parts(24, 96)


def inputs_of(network: _runtime.Network, seed: int, batch: int = 1) -> list[Array]:
    inputs = integer_inputs(GRAPH, batch, seed)
    return [inputs[info.name] for info in network.inputs]


def assert_equal(left: list[Array], right: list[Array]) -> None:
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("isa", ISAS)
def test_results_do_not_depend_on_the_number_of_threads(isa: str, tmp_path: Path) -> None:
    networks = [load(GRAPH, tmp_path, threads, isa) for threads in (1, 2, 4)]
    assert [network.threads for network in networks] == [1, 2, 4]
    for seed in range(3):
        expected = networks[0].forward(inputs_of(networks[0], seed, 2))
        for network in networks[1:]:
            assert_equal(network.forward(inputs_of(network, seed, 2)), expected)


@pytest.mark.parametrize("isa", ISAS)
def test_batches_on_many_threads_have_kernels_for_one(isa: str, tmp_path: Path) -> None:
    """Images side by side run on a thread each: not with the small tiles that suit many threads."""
    graph = many_parts(28, 128) if isa == "avx512" else many_parts(12, 64)
    alone, many = (load(graph, tmp_path, threads, isa) for threads in (1, 24))
    kernels = [[layer.kernel for layer in network.layers] for network in (alone, many)]
    assert isa != "avx512" or kernels[0] != kernels[1]
    values = integer_inputs(graph, 25, 1)
    inputs = [values[info.name] for info in many.inputs]
    assert_equal(many.forward(inputs), alone.forward(inputs))


def test_zero_threads_means_all_processors_of_the_process(tmp_path: Path) -> None:
    assert load(GRAPH, tmp_path, 0, "").threads == len(os.sched_getaffinity(0))


def test_one_network_runs_in_several_python_threads(tmp_path: Path) -> None:
    network = load(GRAPH, tmp_path, 2, ISAS[0])
    expected = [network.forward(inputs_of(network, seed)) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: network.forward(inputs_of(network, i % 4)), range(40)))
    for index, result in enumerate(results):
        assert_equal(result, expected[index % 4])


def test_several_networks_run_at_the_same_time(tmp_path: Path) -> None:
    networks = [load(GRAPH, tmp_path, 2, ISAS[0]) for _ in range(3)]
    expected = networks[0].forward(inputs_of(networks[0], 7))
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(networks[i % 3].forward, inputs_of(networks[0], 7)) for i in range(30)]
        results = [job.result() for job in jobs]
    for result in results:
        assert_equal(result, expected)


def test_networks_may_be_loaded_and_dropped_in_threads(tmp_path: Path) -> None:
    path = tmp_path / "shared.pbit"
    load(GRAPH, tmp_path)
    (tmp_path / f"{GRAPH.name}.pbit").rename(path)

    def load_and_run(seed: int) -> list[Array]:
        network = _runtime.Network(str(path), 3, f"cpu:{ISAS[0]}")
        return network.forward(inputs_of(network, seed % 2))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(load_and_run, range(24)))
    for index, result in enumerate(results):
        assert_equal(result, results[index % 2])


def test_the_interpreter_runs_during_an_inference(tmp_path: Path) -> None:
    network = load(GRAPH, tmp_path, 1, "scalar")
    inputs = inputs_of(network, 0, batch=8)
    started, finished = threading.Event(), threading.Event()

    def compute() -> None:
        started.set()
        network.forward(inputs)
        finished.set()

    worker = threading.Thread(target=compute)
    worker.start()
    started.wait()
    ticks = 0
    while not finished.is_set():
        ticks += 1
        time.sleep(0.001)
    worker.join()
    # Without the release at most one tick would fit in, before the inference begins.
    assert ticks > 5


def test_a_forked_process_can_use_a_network_of_its_parent(tmp_path: Path) -> None:
    network = load(GRAPH, tmp_path, 2, ISAS[0])
    inputs = inputs_of(network, 1)
    expected = network.forward(inputs)
    child = os.fork()
    if child == 0:
        same = all(
            np.array_equal(a, b) for a, b in zip(network.forward(inputs), expected, strict=True)
        )
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
