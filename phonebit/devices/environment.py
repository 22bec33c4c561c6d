"""What a measurement's JSON says of the machine, the driver and PhoneBit."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from phonebit.devices.gpus import gpu_device
from phonebit.devices.runtime import usable_cores
from phonebit.devices.target import find_target


def cpu_model() -> str:
    """The processor's name as the kernel reports it, or the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def cpu_generation() -> str:
    """What tells processors of one name apart: "family 25 model 17", or Arm's part; else empty."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    fields = dict(re.findall(r"^(cpu family|model|CPU part)\s*: (\S+)$", text, re.MULTILINE))
    if "cpu family" in fields:
        return f"family {fields['cpu family']} model {fields['model']}"
    return f"part {fields['CPU part']}" if "CPU part" in fields else ""


CHECKOUT: Final = Path(__file__).resolve().parents[2]


def commit(here: Path = CHECKOUT) -> str:
    """The checked-out commit, with a mark if the tree has changes.

    Empty outside PhoneBit's own checkout, and where git is not installed.

    Args:
        here: The checkout; by default the one that this package is used in.
    """
    if not (here / ".git").exists() or shutil.which("git") is None:
        return ""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def gpu_context(device: str) -> dict[str, Any]:
    """The GPU that "auto", "gpu", "vulkan:1", "gpu+cpu", ... stand for; nothing for the CPU.

    Returns:
        "opencl" or "vulkan": name, platform, versions of device and driver, and the processor that
        the driver compiles for. PoCL may take a processor for an older one, whose kernels are
        slower.
    """
    target = find_target(device)
    if not target.is_gpu:
        return {}
    found = gpu_device(str(target.device).partition("+")[0])
    # "... PoCL HSTR: pthread-x86_64-unknown-linux-gnu-icelake-client": the processor follows the
    # triple, and its name may have hyphens.
    pocl_target = re.search(r"PoCL .*-linux-\w+-([\w-]+)$", found.version)
    return {
        found.api: {
            "device": found.name,
            "platform": found.platform,
            "version": found.version,
            "driver": found.driver_version,
            "compiles_for": pocl_target[1] if pocl_target else found.name,
        }
    }


def environment(device: str = "cpu") -> dict[str, Any]:
    """Machine, versions and commit; of a GPU, its driver too."""
    import phonebit

    return {
        "cpu": cpu_model(),
        "cpu_generation": cpu_generation(),
        "cores": usable_cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "phonebit": phonebit.__version__,
        "commit": commit(),
    } | gpu_context(device)
