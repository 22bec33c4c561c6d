"""Testbeds: which cores are the GPU's and the CPU's, and whether threads stay on their side."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import ROOT
from benchmarks.coexec import confinement
from benchmarks.coexec import testbed as testbeds


def test_a_testbed_is_known_by_its_name() -> None:
    testbed = testbeds.Testbed(4, 2, "avx2")
    assert testbed.name == "g4c2-avx2"
    assert testbeds.Testbed.named(testbed.name) == testbed
    with pytest.raises(testbeds.TestbedError, match="such as g1c1-avx2"):
        testbeds.Testbed.named("g4-avx2")


def test_cores_are_divided_without_overlap() -> None:
    gpu, cpu = testbeds.Testbed(2, 3, "avx2").divide(range(16))
    assert gpu == [0, 1]
    assert len(cpu) == 3
    assert not set(gpu) & set(cpu)


def test_threads_of_the_gpus_cores_are_the_cpus_last_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = {core: {core, core ^ 1} for core in range(8)}
    monkeypatch.setattr(testbeds, "_siblings", pairs.__getitem__)
    gpu, cpu = testbeds.Testbed(1, 6, "avx2").divide(range(8))
    assert (gpu, cpu) == ([0], [2, 3, 4, 5, 6, 7])


@pytest.mark.parametrize(
    ("cores", "allowed", "reason"),
    [((1, 1), [1, 2], "may not use"), ((2, 2), [0, 1, 2], "needs 4 cores")],
)
def test_too_few_cores_are_an_error_that_says_which(
    cores: tuple[int, int], allowed: list[int], reason: str
) -> None:
    with pytest.raises(testbeds.TestbedError, match=reason):
        testbeds.Testbed(*cores, "avx2").divide(allowed)


@pytest.mark.skipif(
    not {0, 1} <= os.sched_getaffinity(0), reason="this process may not use cores 0 and 1"
)
def test_a_command_runs_on_the_cpus_cores_and_knows_its_testbed() -> None:
    testbed = testbeds.Testbed(1, 1, "avx2")
    enter = "from benchmarks.coexec.testbed import Testbed; Testbed(1, 1, 'avx2').enter(); "
    told = "import os; print(sorted(os.sched_getaffinity(0)), *(os.environ[name] for name in {}))"
    names = ["POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT", "POCL_AFFINITY", "PHONEBIT_CPU"]
    command = [sys.executable, "-c", enter + told.format(names)]
    said = subprocess.check_output(command, cwd=ROOT, text=True)
    _, cores = testbed.divide(sorted(os.sched_getaffinity(0)))
    assert said.split("]") == [str(cores)[:-1], " 1 1 1 avx2\n"]


def test_core_lists_are_read_as_the_kernel_writes_them() -> None:
    assert list(testbeds.core_list("0,2-4,7\n")) == [0, 2, 3, 4, 7]
    name, cores = confinement.task_cores()[os.getpid()]
    assert name and cores == os.sched_getaffinity(0)


def test_a_thread_that_may_leave_its_side_is_found() -> None:
    tasks = {1: ("python", frozenset({1})), 2: ("pocl", frozenset({0}))}
    check = confinement.check_threads
    assert check(tasks, [0], [1]) == {"cpu_threads": 1, "gpu_threads": 1}
    with pytest.raises(testbeds.TestbedError, match=r"other \(3\) on \[0, 1\]"):
        check(tasks | {3: ("other", frozenset({0, 1}))}, [0], [1])
    with pytest.raises(testbeds.TestbedError, match="POCL_AFFINITY"):
        check({1: tasks[1]}, [0], [1])
