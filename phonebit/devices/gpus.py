"""GPUs as Python sees them: the devices that the runtime finds by OpenCL and Vulkan.

This module also tells it which OpenCL library to use.

The runtime finds OpenCL with dlopen. Where pyopencl is installed it must use the loader that
pyopencl uses: then handles can be exchanged, and the PoCL of ``pyopencl[pocl]``, which only the
loader in pyopencl's wheel knows of, is found. pyopencl itself is not imported for that (it takes
longer than loading a network).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from phonebit.compiled import load_runtime
from phonebit.devices.drivers import obstacle
from phonebit.errors import DeviceError

if TYPE_CHECKING:
    from phonebit import _runtime

LIBRARY_VARIABLE = "PHONEBIT_OPENCL_LIBRARY"
"""Environment variable with the path of the OpenCL library to use; the runtime reads it."""
INSTALL_HINT = "pip install 'phonebit[opencl]' brings pyopencl, on Linux with PoCL"
_API_OF = {"gpu": "opencl", "vulkan": "vulkan"}
"""By the beginnings of device names."""
APIS = tuple(_API_OF.values())
"""In the order in which "auto" and "gpu" look for a GPU."""
_TITLES = {"opencl": "OpenCL", "vulkan": "Vulkan"}
_SIMULATORS = ("Oclgrind",)
"""Platforms that check kernels, slowly; their devices may call themselves GPUs."""


def gpu_runtime() -> ModuleType:
    """The compiled runtime, told which OpenCL library to use.

    Raises:
        DeviceError: if it cannot be loaded.
    """
    runtime = load_runtime()
    _choose_library(runtime)
    return runtime


@cache
def _choose_library(runtime: ModuleType) -> None:
    if os.environ.get(LIBRARY_VARIABLE):
        return
    path = pyopencl_library()
    if path is not None:
        _prepare_bundled(path)
        runtime.use_opencl_library(str(path))


def pyopencl_library() -> Path | None:
    """The loader library that pyopencl uses, or will use once it is imported.

    Returns:
        Its path; None if pyopencl is not installed or uses the system's.
    """
    if "pyopencl" in sys.modules:
        mapped = _mapped_library()
        if mapped is not None:
            return mapped
    try:
        spec = find_spec("pyopencl")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).resolve().parent
    bundled = _bundled_library(folder)
    if bundled is not None:
        return bundled
    # Built in this environment: conda keeps its loader where dlopen would not look by itself.
    candidate = Path(sys.prefix) / "lib" / "libOpenCL.so.1"
    return candidate if sys.platform == "linux" and candidate.exists() else None


def _bundled_library(folder: Path) -> Path | None:
    """Where auditwheel, delocate and delvewheel put a wheel's libraries."""
    places = (
        folder / ".libs",
        folder.parent / "pyopencl.libs",
        folder / ".dylibs",
    )
    for place in places:
        found = sorted([*place.glob("libOpenCL*"), *place.glob("OpenCL*.dll")])
        if found:
            return found[0]
    return None


def _prepare_bundled(library: Path) -> None:
    """Let the loader of pyopencl's wheel find the drivers next to it, as it does for pyopencl.

    It reads ``$PYOPENCL_HOME/.libs/*.icd``, which pyopencl's import sets, and opens the drivers by
    their bare names, which the search path of pyopencl's extension module resolves. Without that
    module they are found if they are loaded already.
    """
    if "pyopencl" in sys.modules:
        return
    folder = library.parent
    # Also where there are no drivers: the loader reads the variable without a look whether it is
    # set.
    os.environ.setdefault("PYOPENCL_HOME", str(folder.parent))
    for driver in sorted(folder.glob("*.icd")):
        with contextlib.suppress(
            OSError, UnicodeDecodeError
        ):  # a broken one is the loader's to skip
            ctypes.CDLL(str(folder / driver.read_text(encoding="utf-8").strip()))


def _mapped_library() -> Path | None:
    """The first OpenCL loader mapped into this process (Linux); pyopencl's, once it is imported."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        path = Path(line.partition("/")[2])
        if path.name.startswith(("libOpenCL.", "libOpenCL-")):
            return Path("/") / path
    return None


def gpu_devices(api: str = "opencl") -> list[_runtime.GpuDevice]:
    """The devices of an API that can be used: GPUs first, then others.

    Args:
        api: one of ``APIS``. A driver that is not asked for is not loaded.

    Returns:
        An empty list where there is none, of which ``gpu_error`` says why.

    Raises:
        DeviceError: if the compiled module cannot be loaded.
    """
    return [device for device in gpu_runtime().gpu_devices(api) if not obstacle(device)]


def gpu_error(api: str = "opencl") -> str:
    """Why an API has no device, or devices of it cannot be used; "" if neither."""
    runtime = gpu_runtime()
    devices = runtime.gpu_devices(api)
    if not devices:
        reason = runtime.gpu_error(api) or f"{api} has no device"
        return f"{reason}; {INSTALL_HINT}" if api == "opencl" else reason
    return "\n".join(f"{device.name}: {why}" for device in devices if (why := obstacle(device)))


def real_gpu() -> _runtime.GpuDevice | None:
    """What "auto" stands for: the first GPU, by OpenCL or else by Vulkan; None: the CPU."""
    return next((gpu for api in APIS if (gpu := first_real_gpu(gpu_devices(api)))), None)


def first_real_gpu(devices: list[_runtime.GpuDevice]) -> _runtime.GpuDevice | None:
    """The first GPU that is no simulator, if there is one."""
    return next((device for device in devices if device.is_gpu and not _is_simulator(device)), None)


def _is_simulator(device: _runtime.GpuDevice) -> bool:
    return any(name in device.platform for name in _SIMULATORS)


def device_name(device: _runtime.GpuDevice) -> str:
    """What users call a device: "gpu:0", "vulkan:0"."""
    prefix = next(prefix for prefix, api in _API_OF.items() if api == device.api)
    return f"{prefix}:{device.index}"


def api_of(device: str) -> str | None:
    """The API of a name such as "gpu:1" or "vulkan+cpu"; None where it begins with no GPU."""
    return _API_OF.get(device.partition("+")[0].partition(":")[0])


def device_key(device: _runtime.GpuDevice) -> str:
    """Identifies a device and its driver in caches, as the runtime does."""
    return f"{device.name} | {device.platform} | {device.driver_version}"


def gpu_device(name: str) -> _runtime.GpuDevice:
    """The device that a name stands for.

    Args:
        name: "gpu", "gpu:n", "vulkan" or "vulkan:n".

    Returns:
        The n-th device of OpenCL, or of Vulkan, counted from 0. "gpu" is what "auto" is; without a
        GPU the first device that is no simulator.

    Raises:
        DeviceError: if there is no such device, or none at all.
    """
    if name == "gpu":
        return real_gpu() or _any_device()
    prefix, colon, number = name.partition(":")
    api = _API_OF[prefix]
    devices = gpu_devices(api)
    listed = ", ".join(f"{device_name(device)} ({device.name})" for device in devices)
    if colon and not (number.isascii() and number.isdigit()):
        expected = listed or f"{prefix} or {prefix}:<n>"
        raise DeviceError("unknown device", where=f"device '{name}'", expected=expected)
    if not devices:
        raise _no_device(name, (api,))
    index = int(number or "0") if len(number) < 10 else -1
    found = [device for device in devices if device.index == index]
    if not found:
        raise DeviceError(
            "there is no such device",
            where=f"device '{name}'",
            expected=listed,
            got=gpu_error(api) or None,
        )
    return found[0]


def _any_device() -> _runtime.GpuDevice:
    for api in APIS:
        if devices := gpu_devices(api):
            return min(devices, key=_is_simulator)
    raise _no_device("gpu", APIS)


def _no_device(name: str, apis: Iterable[str]) -> DeviceError:
    return DeviceError(
        f"there is no device of {' or '.join(_TITLES[api] for api in apis)} here",
        where=f"device '{name}'",
        got="\n".join(gpu_error(api) for api in apis),
        hint="use device 'cpu'",
    )


def is_pyopencl_object(device: object) -> bool:
    """Whether it is a pyopencl Device, Context or CommandQueue."""
    cl = sys.modules.get("pyopencl")
    return cl is not None and isinstance(device, cl.Device | cl.Context | cl.CommandQueue)


def borrow(device: Any) -> tuple[_runtime.GpuHandles, str, object]:
    """Handles of a pyopencl object.

    Args:
        device: a pyopencl Device (a context is made for it), a Context with one device, or an
            in-order CommandQueue.

    Returns:
        The handles; the device's key; an object that must live until the runtime has made its own
        references to what the handles name, which it does when it loads a network.

    Raises:
        DeviceError: if the context has several devices, the queue is out of order, or the driver
            cannot compile.
    """
    import pyopencl as cl

    runtime = gpu_runtime()
    queue = 0
    if isinstance(device, cl.CommandQueue):
        if device.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
            raise DeviceError(
                "the queue is out of order",
                where=f"device {device!r}",
                expected="an in-order queue",
                hint="make one with pyopencl.CommandQueue(context)",
            )
        context, chosen, queue = device.context, device.device, device.int_ptr
    elif isinstance(device, cl.Context):
        if len(device.devices) != 1:
            raise DeviceError(
                "the context has several devices",
                where=f"device {device!r}",
                expected="a context with one device",
                got=", ".join(other.name for other in device.devices),
                hint="pass a pyopencl.CommandQueue on one of them",
            )
        context, chosen = device, device.devices[0]
    else:
        context, chosen = cl.Context([device]), device
    handles = runtime.GpuHandles(context.int_ptr, chosen.int_ptr, queue)
    return handles, _key_of(chosen), context


def _key_of(device: Any) -> str:
    for known in gpu_runtime().gpu_devices("opencl"):
        if known.id == device.int_ptr:
            if why := obstacle(known):
                raise DeviceError("the device cannot be used", where=known.name, got=why)
            return device_key(known)
    parts = (device.name, device.platform.name, device.driver_version)
    return " | ".join(part.strip() for part in parts)
