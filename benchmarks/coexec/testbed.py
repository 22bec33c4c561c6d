"""A CPU and a "GPU" out of the cores of one PC: two processors with one memory, as in a phone.

PoCL (OpenCL on the CPU) confined to some cores is the GPU, PhoneBit's CPU backend pinned to others,
with an instruction set of choice, is the CPU. Numbers of cores and instruction sets set the balance
between both as different phones do; all that is measured there is measured, not simulated.

    python -m benchmarks.coexec.testbed --testbed g1c1-avx2
    python -m benchmarks.coexec.testbed --testbed g1c1-avx2 -- COMMAND

g4c3-avx2 is a GPU of 4 cores and a CPU of 3 with AVX2. The command checks that the confinement
holds, prints the balance, and runs COMMAND in there.

PoCL honours POCL_AFFINITY=1 (its thread i runs on core i) and the number of its threads,
POCL_CPU_MAX_CU_COUNT or, in older versions, POCL_MAX_PTHREAD_COUNT. They count when OpenCL is
loaded, so whatever uses the testbed is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.command_line import parser_of

SIBLINGS: Final = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
DEFAULT: Final = "g1c1-avx2"
MARK: Final = "PHONEBIT_TESTBED"
"""Environment variable that tells a process in which testbed it runs."""


class TestbedError(RuntimeError):
    """The machine cannot be divided so, or the division does not hold."""


@dataclass(frozen=True)
class Testbed:
    """How the machine is divided: cores of PoCL, cores and instruction set of the CPU backend."""

    gpu_cores: int
    cpu_cores: int
    isa: str

    @property
    def name(self) -> str:
        """On command lines and in results files, such as "g1c1-avx2"."""
        return f"g{self.gpu_cores}c{self.cpu_cores}-{self.isa}"

    @classmethod
    def named(cls, name: str) -> Testbed:
        """The testbed of a name."""
        found = re.fullmatch(r"g(\d+)c(\d+)-(\w+)", name)
        if found is None:
            raise TestbedError(f"{name!r} is no testbed; one is called such as g1c1-avx2")
        return cls(int(found[1]), int(found[2]), found[3])

    def divide(self, allowed: Sequence[int]) -> tuple[list[int], list[int]]:
        """Which of the cores that this process may use the GPU gets, and which the CPU."""
        gpu = list(range(self.gpu_cores))
        missing = sorted(set(gpu) - set(allowed))
        if missing:
            raise TestbedError(
                f"PoCL pins its thread i to core i, but this process may not use {missing}; "
                f"it may use {sorted(allowed)}: start it without a restriction on cores"
            )
        shared = {sibling for core in gpu for sibling in _siblings(core)}
        free = sorted(set(allowed) - set(gpu), key=lambda core: (core in shared, core))
        if len(free) < self.cpu_cores:
            raise TestbedError(
                f"{self.name} needs {self.gpu_cores + self.cpu_cores} cores; "
                f"this process may use {len(allowed)}"
            )
        return gpu, sorted(free[: self.cpu_cores])

    def cores(self) -> tuple[list[int], list[int]]:
        """The GPU's cores and the CPU's, from inside the testbed."""
        return list(range(self.gpu_cores)), sorted(os.sched_getaffinity(0))

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of a process in the testbed."""
        return dict(base) | {
            "POCL_MAX_PTHREAD_COUNT": str(self.gpu_cores),
            "POCL_CPU_MAX_CU_COUNT": str(self.gpu_cores),
            "POCL_AFFINITY": "1",
            "PHONEBIT_CPU": self.isa,
            MARK: self.name,
        }

    def enter(self) -> None:
        """Makes this process one in the testbed: starts it again, unless it already is one."""
        there = os.environ.get(MARK)
        if there == self.name:
            return
        if there is not None:
            raise TestbedError(f"this process is in testbed {there}, not in {self.name}")
        _, cores = self.divide(sorted(os.sched_getaffinity(0)))
        os.sched_setaffinity(0, cores)
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, self.environment(os.environ))


def _siblings(core: int) -> set[int]:
    """Hardware threads of the same core; only itself where the system does not tell."""
    try:
        text = Path(SIBLINGS.format(core)).read_text()
    except OSError:
        return {core}
    return set(core_list(text))


def core_list(text: str) -> Iterator[int]:
    """Numbers of a list as the kernel writes it: "0,2-3"."""
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def pocl_device() -> str:
    """PoCL's name among OpenCL's devices, "gpu:0" where there is no other."""
    from phonebit.devices.gpus import gpu_devices

    devices = gpu_devices()
    for device in devices:
        if device.platform == "Portable Computing Language":
            return f"gpu:{device.index}"
    found = ", ".join(device.platform for device in devices) or "none"
    raise TestbedError(
        f"no PoCL among OpenCL's platforms ({found}): pip install 'phonebit[opencl]'"
    )


def main() -> int:
    """Command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--testbed", default=DEFAULT, help="cores of GPU and CPU, its ISA")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --; runs in the testbed")
    options = parser.parse_args()
    testbed = Testbed.named(options.testbed)
    testbed.enter()
    check = [sys.executable, "-m", "benchmarks.coexec.confinement", f"--testbed={testbed.name}"]
    with tempfile.TemporaryDirectory() as folder:
        checked = subprocess.run([*check, f"--json={folder}/testbed.json"], check=False)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if checked.returncode or not command:
        return checked.returncode
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TestbedError as error:
        sys.exit(f"testbed: {error}")
