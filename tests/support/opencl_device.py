"""The OpenCL device that these tests use, as pyopencl and as the runtime know it.

It is the first whose platform's name contains PHONEBIT_TEST_OPENCL, otherwise the first GPU,
otherwise the first device; simulators (Oclgrind) only if named.

Tests ask two questions of it. Whether our kernels are right is for drivers that are sound: one that
computes wrongly is reported, and skips the test; where the variable of ``SOUND_DRIVERS`` is set, as
CI does for drivers that it knows, it fails the test, since our kernel may be what is wrong. Whether
a failing driver costs no result is for tests that plant a fault of their own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from phonebit.devices.gpus import gpu_devices, gpu_error

SOUND_DRIVERS = "PHONEBIT_TEST_SOUND_DRIVERS"
"""Environment variable: not empty where a driver's fault is an error."""
UNOPTIMIZED = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
"""Environment in which PoCL does not optimise kernels; tests do not, unless
PHONEBIT_TEST_OPTIMIZED is set."""
FAULT = "a fault of the OpenCL driver"
"""How the reasons of ``driver_fault`` begin."""


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
    usable = {known.id for known in gpu_devices()}
    devices = [device for platform in platforms for device in platform.get_devices()]
    devices = [device for device in devices if device.int_ptr in usable]
    devices.sort(key=lambda device: 0 if device.type & cl.device_type.GPU else 1)
    if not devices:
        pytest.skip(f"no OpenCL device (PHONEBIT_TEST_OPENCL={wanted}): {gpu_error()}")
    return devices[0]


def device_name(device: Any) -> str:
    """What phonebit calls a pyopencl device: "gpu:n"."""
    (index,) = (known.index for known in gpu_devices() if known.id == device.int_ptr)
    return f"gpu:{index}"


def driver_fault(what: str) -> NoReturn:
    """Ends a test because the driver computes wrongly: a skip, or a failure (``SOUND_DRIVERS``)."""
    device = pyopencl_device()
    reason = (
        f"{FAULT} {device.platform.name.strip()} {device.driver_version} "
        f"({device.name.strip()}, {device.version.strip()}): {what}"
    )
    if os.environ.get(SOUND_DRIVERS):
        pytest.fail(reason)
    pytest.skip(reason)


def check_warnings(warnings: Sequence[str]) -> None:
    """Asserts that a network gave none, but for kernels that the driver computes wrongly.

    To be called last: results are right whatever the driver does.
    """
    faults = [text for text in warnings if "failed the self-test" in text]
    others = [text for text in warnings if text not in faults]
    assert not others, others
    if faults:
        driver_fault(faults[0])


@contextmanager
def judging_the_driver(kernels: Collection[str]) -> Iterator[None]:
    """What is asserted in here is asserted of the driver, once it has run some of ``kernels``."""
    try:
        yield
    except AssertionError as error:
        if not kernels:
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        driver_fault(f"{', '.join(sorted(kernels))}: {'; '.join(lines[:3]) or 'wrong results'}")
