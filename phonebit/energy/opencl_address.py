"""Where an OpenCL device sits on the PCI bus, by which NVML knows it too.

One query of NVIDIA's extension cl_nv_device_attribute_query, made here by ctypes: pyopencl, which
has it as well, is not needed to run networks.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from phonebit.devices.gpus import LIBRARY_VARIABLE, pyopencl_library

if TYPE_CHECKING:
    from phonebit import _runtime

BUS_ID, SLOT_ID, DOMAIN_ID = 0x4008, 0x4009, 0x400A
"""CL_DEVICE_PCI_BUS_ID_NV, CL_DEVICE_PCI_SLOT_ID_NV, CL_DEVICE_PCI_DOMAIN_ID_NV."""
SLOT_FUNCTION_BITS = 3
"""The low bits of a slot are the function on the device."""


def pci_address(device: _runtime.GpuDevice) -> tuple[int, int, int] | None:
    """Address of a device of NVIDIA's platform.

    Args:
        device: from ``gpu_devices``; those of another API than OpenCL have no address.

    Returns:
        PCI domain, bus and device; None if the driver does not tell.
    """
    if not device.id:
        return None
    library = os.environ.get(LIBRARY_VARIABLE) or str(pyopencl_library() or "libOpenCL.so.1")
    try:
        query = ctypes.CDLL(library).clGetDeviceInfo
    except (OSError, AttributeError):
        return None
    query.restype = ctypes.c_int
    query.argtypes = [
        ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip

    def number(key: int) -> int | None:
        value = ctypes.c_uint()
        failed = query(device.id, key, ctypes.sizeof(value), ctypes.byref(value), None)
        return None if failed else value.value

    bus, slot = number(BUS_ID), number(SLOT_ID)
    if bus is None or slot is None:
        return None
    return number(DOMAIN_ID) or 0, bus, slot >> SLOT_FUNCTION_BITS
