"""Runs one OpenCL kernel of bnn_kernels through pyopencl, on NumPy arrays.

``pyopencl_device`` says which device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.bnn_kernels.sources import assemble, kernel_paths, tunables
from support.opencl_device import pyopencl_device

Array = NDArray[Any]
kernels_run: set[str] = set()
"""Names, since somebody cleared it."""


@cache
def opencl_queue() -> Any:
    """A queue on the device under test; skips the test where there is none."""
    device = pyopencl_device()
    import pyopencl as cl

    return cl.CommandQueue(cl.Context([device]))


@cache
def _kernel(name: str, text: str) -> Any:
    import pyopencl as cl

    queue = opencl_queue()
    options = ["-cl-std=CL1.2"]
    if queue.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append("-cl-fp32-correctly-rounded-divide-sqrt")
    return cl.Kernel(cl.Program(queue.context, text).build(options), name)


def run_kernel(
    name: str,
    defines: Mapping[str, int | str],
    global_size: Sequence[int],
    local_size: Sequence[int],
    arguments: Sequence[Any],
) -> list[Array]:
    """Builds and runs a kernel once.

    Args:
        name: the kernel, e.g. "bconv2d_tiled".
        defines: macros of its program; tunables that are missing have their defaults.
        global_size: work-items in each dimension.
        local_size: the same for a work-group.
        arguments: ints (passed as int), arrays (in and out; the same one twice is one buffer) or
            pyopencl memory objects, in order.

    Returns:
        What the arrays hold afterwards, in order; the arguments themselves stay as they are.
    """
    queue = opencl_queue()
    import pyopencl as cl

    kernel = _kernel(name, assemble(name, defines))
    kernels_run.add(name)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers: list[tuple[Any, Array]] = []
    passed: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            if passed and argument is arguments[len(passed) - 1]:
                passed.append(passed[-1])
                continue
            array = np.ascontiguousarray(argument)
            buffer = cl.Buffer(queue.context, flags, hostbuf=array)
            buffers.append((buffer, array))
            passed.append(buffer)
        else:
            passed.append(np.int32(argument) if isinstance(argument, int) else argument)
    kernel(queue, tuple(global_size), tuple(local_size), *passed)
    results = []
    for buffer, array in buffers:
        result = np.empty_like(array)
        cl.enqueue_copy(queue, result, buffer)
        results.append(result)
    queue.finish()
    return results


def run_pixels(
    name: str, defines: Mapping[str, int | str], pixels: int, arguments: Sequence[Any]
) -> list[Array]:
    """Runs a layer's kernel on all pixels of its batch; ``arguments`` follow the pixels'."""
    sizes = work_sizes(name, defines, pixels, int(defines["OUT_C"]))
    return run_kernel(name, defines, *sizes, [0, pixels, *arguments])


def work_sizes(
    kernel: str, defines: Mapping[str, int | str], pixels: int, channels: int
) -> tuple[list[int], list[int]]:
    """Global and local size of a launch from the header's ``@geometry`` line."""
    text = kernel_paths()[kernel].read_text(encoding="utf-8")
    line = re.search(r"^// @geometry global = \((.*)\), local = \((.*)\)$", text, re.MULTILINE)
    assert line is not None, f"{kernel}: no @geometry"
    scope: dict[str, Any] = {tunable.name: tunable.default for tunable in tunables(kernel)}
    scope |= {"pixels": pixels, "channels": channels, **defines}
    makes_bits = "HAS_BITS" in defines or "THRESHOLD" in defines
    scope["CHANNEL_UNIT"] = 32 if makes_bits and "CHANNEL_PARTS" not in defines else 1
    scope |= {"ceil": math.ceil, "max": max, "min": min}
    window = [int(defines.get(name, 0)) for name in ("KERNEL_H", "KERNEL_W", "IN_C")]
    scope["WINDOW_WORDS"] = math.ceil(math.prod(window) / 32)
    scope["roundup"] = lambda count, multiple: math.ceil(count / multiple) * multiple
    sizes = [eval(f"[{part}]", scope) for part in line.groups()]
    return [math.ceil(size) for size in sizes[0]], [int(size) for size in sizes[1]]


def pack_bits(signs: Array) -> NDArray[np.uint32]:
    """Packs -1/+1 of the last axis into 32-bit words, least significant bit first, tail bits 0."""
    channels = signs.shape[-1]
    words = -(-channels // 32)
    bits = np.zeros((*signs.shape[:-1], words * 32), np.uint8)
    bits[..., :channels] = signs > 0
    packed = np.packbits(bits, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4").reshape(*signs.shape[:-1], words)


def unpack_bits(words: NDArray[np.uint32], channels: int) -> NDArray[np.int8]:
    """The inverse of ``pack_bits``; asserts that tail bits are 0."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    assert not bits[..., channels:].any(), "tail bits are not 0"
    return np.where(bits[..., :channels] > 0, 1, -1).astype(np.int8)
