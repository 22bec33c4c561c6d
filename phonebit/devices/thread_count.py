"""The number of CPU threads of an inference when the caller names no number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from phonebit.devices.runtime import usable_cores

OMP_VARIABLE: Final = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class ThreadCount:
    """The default, and why it is that.

    Attributes:
        threads: of an inference, at least 1.
        reason: what limits it, for people.
    """

    threads: int
    reason: str


def default_threads(environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> ThreadCount:
    """The minimum of what affinity, the CPU quota and OMP_NUM_THREADS allow.

    A quota is rounded down: threads beyond it do not compute sooner, they are all stopped together
    in the middle of an inference until the quota's next period.

    Args:
        environ: environment variables.
        root: folder that holds ``proc`` and ``sys``.

    Returns:
        The number, and its reason: the first of the three in a tie.
    """
    cores = usable_cores()
    found = [ThreadCount(cores, f"one per usable core, {cores}")]
    quota = min(_cgroup_quotas(root), default=None)
    if quota is not None:
        found.append(ThreadCount(max(1, int(quota)), f"CPU quota of {quota:g} cores (cgroup)"))
    asked = environ.get(OMP_VARIABLE, "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:  # OpenMP, too, ignores other values
        found.append(ThreadCount(int(asked), f"{OMP_VARIABLE}={asked}"))
    return min(found, key=lambda each: each.threads)


def _cgroup_quotas(root: Path) -> Iterator[float]:
    """CPU quotas, in cores, of this process's control groups and the groups around them."""
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)  # cgroups(7): 0::/path, or 4:cpu,cpuacct:/path
        if controllers and "cpu" not in controllers.split(","):
            continue
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):  # the last is the mount: all that a container may see
            if controllers:
                quota = _text(mount / controllers / group / "cpu.cfs_quota_us")
                period = _text(mount / controllers / group / "cpu.cfs_period_us")
            else:
                quota, _, period = _text(mount / group / "cpu.max").partition(" ")
            if quota.isdecimal() and period.isdecimal() and int(period) > 0:  # not "max", not -1
                yield int(quota) / int(period)


def _text(path: Path) -> str:
    """Of a small file of the system's; nothing where there is none."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
