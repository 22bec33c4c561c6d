"""The default number of threads: affinity, CPU quotas and OMP_NUM_THREADS."""

from __future__ import annotations

from pathlib import Path

import pytest

from phonebit.devices import thread_count
from phonebit.devices.thread_count import default_threads


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_count, "usable_cores", lambda: 8)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2, V1 = "0::/pod/own\n", "9:name=systemd:/\n4:cpuset:/pod\n3:cpu,cpuacct:/pod\n0::/\n"
CPU = "sys/fs/cgroup/cpu,cpuacct"
QUOTA, PERIOD = f"{CPU}/pod/cpu.cfs_quota_us", f"{CPU}/pod/cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("groups", "files", "threads"),
    [
        ("", {}, 8),
        (V2, {}, 8),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "max 100000\n"}, 8),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "200000 100000\n"}, 2),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "350000 100000\n"}, 3),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "50000 100000\n"}, 1),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "1600000 100000\n"}, 8),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "max 100000\n",
              "sys/fs/cgroup/pod/cpu.max": "300000 100000\n"}, 3),
        (V2, {"sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),
        (V2, {"sys/fs/cgroup/pod/own/cpu.max": "nonsense\n"}, 8),
        (V1, {QUOTA: "-1\n", PERIOD: "100000\n"}, 8),
        (V1, {QUOTA: "20000\n", PERIOD: "10000\n"}, 2),
        (V1, {f"{CPU}/cpu.cfs_quota_us": "500000\n", f"{CPU}/cpu.cfs_period_us": "100000\n"}, 5),
        (V1, {QUOTA: "500000\n", PERIOD: "0\n"}, 8),
    ],
)  # fmt: skip
def test_a_quota_limits_the_threads(
    tmp_path: Path, groups: str, files: dict[str, str], threads: int
) -> None:
    root = write(tmp_path, {"proc/self/cgroup": groups, **files})
    choice = default_threads({}, root)
    assert choice.threads == threads
    assert ("quota" in choice.reason) == (threads < 8)


@pytest.mark.parametrize(
    ("value", "threads"),
    [("3", 3), ("2,4", 2), (" 1 ", 1), ("64", 8), ("0", 8), ("-2", 8), ("many", 8), ("", 8)],
)
def test_omp_num_threads_limits_the_threads(tmp_path: Path, value: str, threads: int) -> None:
    choice = default_threads({"OMP_NUM_THREADS": value}, tmp_path)
    assert choice.threads == threads
    assert ("OMP_NUM_THREADS" in choice.reason) == (threads < 8)


def test_the_smallest_limit_counts(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": V2, "sys/fs/cgroup/pod/cpu.max": "300000 100000"}
    root = write(tmp_path, files)
    assert default_threads({"OMP_NUM_THREADS": "5"}, root).reason.startswith("CPU quota of 3")
    assert default_threads({"OMP_NUM_THREADS": "2"}, root).reason == "OMP_NUM_THREADS=2"
