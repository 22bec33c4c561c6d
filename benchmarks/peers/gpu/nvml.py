"""What NVIDIA's management library knows of the GPU and of the processes on it; or why nothing."""

from __future__ import annotations

import contextlib
from typing import Any

MIB = 2**20


class Nvml:
    """The first GPU of the machine; where there is none, ``reason`` says why and answers are None.

    Needs the package ``nvidia-ml-py``.
    """

    def __init__(self) -> None:
        self.reason = ""
        try:
            import pynvml

            pynvml.nvmlInit()
            self._device = pynvml.nvmlDeviceGetHandleByIndex(0)
            self._library: Any = pynvml
        except Exception as error:  # absent package, library, driver or device: all alike here
            self.reason = f"{type(error).__name__}: {error}"

    def describe(self) -> dict[str, str]:
        """Name of the GPU and version of its driver; why not, otherwise."""
        if self.reason:
            return {"gpu": "none", "gpu_reason": self.reason}
        return {
            "gpu": self._library.nvmlDeviceGetName(self._device),
            "driver": self._library.nvmlSystemGetDriverVersion(),
        }

    def memory_mib(self, pid: int) -> float | None:
        """Device memory of a process now, contexts included; None if the driver does not tell."""
        if self.reason:
            return None
        sizes = [0]
        for kind in ("Compute", "Graphics"):
            list_processes = getattr(self._library, f"nvmlDeviceGet{kind}RunningProcesses")
            with contextlib.suppress(self._library.NVMLError):
                entries = list_processes(self._device)
                sizes += [entry.usedGpuMemory or 0 for entry in entries if entry.pid == pid]
        return max(sizes) / MIB or None
