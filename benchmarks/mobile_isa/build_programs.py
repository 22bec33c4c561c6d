"""Runs inside the unpacked root, on its own Python: builds OpenCL programs for the fake GPU.

    build_programs.py FOLDER COUNT

The programs are FOLDER/0.cl, 1.cl, ... Between the compiler's own output it prints `=== PROGRAM N`
before and `=== BUILT` or `=== FAILED` after each of them; `=== GPU` comes first. One process builds
many programs, because starting it takes ten seconds.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

ALL_DEVICES = ctypes.c_uint64(0xFFFFFFFF)
DEVICE_NAME, PROGRAM_KERNEL_NAMES, PROGRAM_BUILD_LOG = 0x102B, 0x1168, 0x1183
TEXT_BYTES = 1 << 16
BUILD_OPTIONS = b"-cl-std=CL1.2"


def main() -> None:
    """Builds the programs in order."""
    cl = ctypes.CDLL("libOpenCL.so.1")
    for name in ("clCreateContext", "clCreateProgramWithSource", "clCreateKernel"):
        getattr(cl, name).restype = ctypes.c_void_p
    platform, device, error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    text = ctypes.create_string_buffer(TEXT_BYTES)
    room = ctypes.c_size_t(TEXT_BYTES)
    cl.clGetPlatformIDs(1, ctypes.byref(platform), None)
    if cl.clGetDeviceIDs(platform, ALL_DEVICES, 1, ctypes.byref(device), None):
        sys.exit("no fake device")
    cl.clGetDeviceInfo(device, DEVICE_NAME, room, text, None)
    print("=== GPU", text.value.decode(), flush=True)
    context = ctypes.c_void_p(
        cl.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(error))
    )

    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    for index in range(count):
        print("=== PROGRAM", index, flush=True)
        source = (folder / f"{index}.cl").read_bytes()
        pointer, length = ctypes.c_char_p(source), ctypes.c_size_t(len(source))
        program = ctypes.c_void_p(
            cl.clCreateProgramWithSource(
                context, 1, ctypes.byref(pointer), ctypes.byref(length), ctypes.byref(error)
            )
        )
        failed = cl.clBuildProgram(program, 1, ctypes.byref(device), BUILD_OPTIONS, None, None)
        if failed:
            cl.clGetProgramBuildInfo(program, device, PROGRAM_BUILD_LOG, room, text, None)
            print(text.value.decode(errors="replace"))
        else:
            cl.clGetProgramInfo(program, PROGRAM_KERNEL_NAMES, room, text, None)
            for kernel in text.value.split(b";"):
                kernel_object = ctypes.c_void_p(
                    cl.clCreateKernel(program, kernel, ctypes.byref(error))
                )
                failed = failed or error.value
                cl.clReleaseKernel(kernel_object)
        cl.clReleaseProgram(program)
        print("===", "FAILED" if failed else "BUILT", flush=True)


main()
