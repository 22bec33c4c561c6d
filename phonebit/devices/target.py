"""What a user's ``device`` argument stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from phonebit.devices.gpus import (
    api_of,
    borrow,
    device_key,
    device_name,
    gpu_device,
    is_pyopencl_object,
    real_gpu,
)
from phonebit.devices.runtime import checked_cpu
from phonebit.errors import DeviceError

if TYPE_CHECKING:
    import pyopencl as cl

    from phonebit import _runtime

DeviceLike: TypeAlias = "str | cl.Device | cl.Context | cl.CommandQueue"
"""A name ("auto", "cpu", "cpu:avx2", "gpu", "gpu:1", "vulkan", "gpu+cpu", "vulkan:1+cpu:avx2"), or
a pyopencl object."""


@dataclass(frozen=True)
class Target:
    """A device, as the runtime takes it.

    Attributes:
        device: "cpu:avx2", "gpu:n", "vulkan:n+cpu", or handles that pyopencl made.
        key: identifies a GPU, API and driver in caches; "" for the CPU.
        owner: keeps alive what handles name.
    """

    device: str | _runtime.GpuHandles
    key: str = ""
    owner: object = None

    @property
    def is_gpu(self) -> bool:
        """Whether it is a device of OpenCL or Vulkan."""
        return self.key != ""


def find_target(device: DeviceLike) -> Target:
    """Find a device.

    Args:
        device: "auto": the first GPU of OpenCL, otherwise of Vulkan, otherwise the CPU; "cpu", or
            "cpu:<instruction set>"; "gpu": as "auto", without a GPU the first other device, such as
            PoCL; "gpu:<n>" and "vulkan:<n>": that device of ``phonebit devices``, of OpenCL or of
            Vulkan; "gpu+cpu", "vulkan+cpu": such a device and the CPU together, each of which may
            be more precise ("gpu:1+cpu:avx2"); or a pyopencl Device, Context with one device, or
            in-order CommandQueue.

    Returns:
        The device.

    Raises:
        DeviceError: if it is unknown or absent, or the compiled runtime cannot be loaded.
    """
    if is_pyopencl_object(device):
        handles, key, owner = borrow(device)
        return Target(handles, key=key, owner=owner)
    if not isinstance(device, str):
        raise DeviceError(
            "not a device",
            where="device",
            expected="a name such as 'gpu', or a pyopencl Device, Context or CommandQueue",
            got=type(device).__name__,
        )
    if device == "auto":
        found = real_gpu()
        return Target("cpu") if found is None else _gpu_target(found)
    if api_of(device) is not None:
        gpu, plus, cpu = device.partition("+")
        target = _gpu_target(gpu_device(gpu))
        return replace(target, device=f"{target.device}+{checked_cpu(cpu)}") if plus else target
    return Target(checked_cpu(device))


def find_gpu_target(device: DeviceLike, purpose: str) -> Target:
    """The same, for what exists on GPUs only.

    Args:
        device: as for ``find_target``.
        purpose: what needs it, for the message.

    Returns:
        The device.

    Raises:
        DeviceError: as ``find_target``, and if the device is the CPU.
    """
    target = find_target(device)
    if not target.is_gpu:
        raise DeviceError(
            f"{purpose} is for GPUs",
            where=f"device '{device}'",
            hint="use --device gpu, or a name that `phonebit devices` lists",
        )
    return target


def _gpu_target(device: _runtime.GpuDevice) -> Target:
    return Target(device_name(device), key=device_key(device))
