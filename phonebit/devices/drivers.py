"""OpenCL drivers that cannot compile here, recognised before they try: some end the process."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phonebit import _runtime

_POCL_3 = re.compile(r"[123]\.")
"""Versions that link kernels by the program ld, and end the process where it is missing."""
_X86 = re.compile(r"PoCL .*x86_64.*-generic$")
"""PoCL's version on a processor whose name its LLVM does not know; its clang then refuses to
compile for "generic", which is a name on other architectures only."""


def obstacle(device: _runtime.GpuDevice) -> str:
    """Why no kernel can be compiled for a device, and what to do; "" if nothing is known."""
    if "PoCL" not in device.version:
        return ""
    driver = f"PoCL {device.driver_version}"
    if _X86.search(device.version):
        return (
            f"{driver} is older than this processor and cannot compile for it; install a newer "
            "one (Debian, Ubuntu: apt-get install pocl-opencl-icd) and uninstall "
            "pocl-binary-distribution"
        )
    if _POCL_3.match(device.driver_version) and shutil.which("ld") is None:
        return (
            f"{driver} links kernels with the program ld, which is not on the PATH; install it "
            "(Debian, Ubuntu: apt-get install binutils)"
        )
    return ""
