"""Kernel tests judge our kernels on drivers that are sound (support/opencl_device.py)."""

from __future__ import annotations

from collections.abc import Generator

import kernel_driver
import pytest

from support.opencl_device import judging_the_driver


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Results that differ after a kernel ran are a fault of the driver."""
    kernel_driver.kernels_run.clear()
    with judging_the_driver(kernel_driver.kernels_run):
        return (yield)
