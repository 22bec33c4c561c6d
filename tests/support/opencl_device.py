"""The OpenCL device that these tests use, as pyopencl and as the runtime know it.

It is the first whose platform's name contains PHONEBIT_TEST_OPENCL, otherwise the first GPU,
otherwise the first device; simulators (Oclgrind) only if named.
"""

from __future__ import annotations

import os
from typing import Any

import pytest


def pyopencl_device() -> Any:
    """The device; skips the test where there is none."""
    cl = pytest.importorskip(
        "pyopencl", reason="pyopencl is not installed: pip install 'phonebit[opencl]'"
    )
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        pytest.skip(f"no OpenCL platform: {error}")
    wanted = os.environ.get("PHONEBIT_TEST_OPENCL")
    if wanted:
        platforms = [platform for platform in platforms if wanted in platform.name]
    else:
        platforms = [platform for platform in platforms if "Oclgrind" not in platform.name]
    devices = [device for platform in platforms for device in platform.get_devices()]
    devices.sort(key=lambda device: 0 if device.type & cl.device_type.GPU else 1)
    if not devices:
        pytest.skip(f"no OpenCL device (PHONEBIT_TEST_OPENCL={wanted})")
    return devices[0]


def device_name(device: Any) -> str:
    """What phonebit calls a pyopencl device: "gpu:n"."""
    from phonebit.opencl import opencl_devices

    (index,) = (known.index for known in opencl_devices() if known.id == device.int_ptr)
    return f"gpu:{index}"
