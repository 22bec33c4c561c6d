"""The library through which these tests see OpenCL finds what it is there for."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from support.opencl_device import pyopencl_device
from support.opencl_library import mapping_library, take_mapping_faults

READ, WRITE, INVALIDATE = 1, 2, 4
BYTES = 256
KERNEL = "kernel void add(global uchar* x) { x[get_global_id(0)] += 1; }"


class Buffer:
    """A buffer of the numbers from 0 on, used through the library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        import pyopencl as cl

        self.library = library
        self.context = cl.Context([pyopencl_device()])
        self.queue = cl.CommandQueue(self.context)
        self.content = np.arange(BYTES, dtype=np.uint8)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.buffer = cl.Buffer(self.context, flags, hostbuf=self.content)
        self.add = cl.Program(self.context, KERNEL).build().add
        library.clEnqueueMapBuffer.restype = ctypes.c_void_p

    def map(self, flags: int, offset: int = 0, size: int = BYTES) -> np.ndarray[Any, Any]:
        """The whole buffer around the region."""
        address = self.library.clEnqueueMapBuffer(
            *self._handles(), 1, ctypes.c_uint64(flags), ctypes.c_size_t(offset),
            ctypes.c_size_t(size), 0, None, None, None,
        )  # fmt: skip
        self.address = ctypes.c_void_p(address)
        return np.ctypeslib.as_array((ctypes.c_uint8 * BYTES).from_address(address - offset))

    def unmap(self) -> None:
        status = self.library.clEnqueueUnmapMemObject(*self._handles(), self.address, 0, None, None)
        assert status == 0

    def on_device(self) -> np.ndarray[Any, Any]:
        import pyopencl as cl

        cl.enqueue_copy(self.queue, found := np.empty_like(self.content), self.buffer)
        return found

    def run(self, times: int = 1) -> None:
        """Adds 1 on the device, by the library's launch."""
        kernel = ctypes.c_void_p(self.add.int_ptr)
        value = ctypes.c_void_p(self.buffer.int_ptr)
        self.library.clSetKernelArg(kernel, 0, ctypes.c_size_t(8), ctypes.byref(value))
        for _ in range(times):
            items = (ctypes.c_size_t * 1)(BYTES)
            self.library.clEnqueueNDRangeKernel(
                self._handles()[0], kernel, 1, None, items, None, 0, None, None
            )

    def _handles(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        return ctypes.c_void_p(self.queue.int_ptr), ctypes.c_void_p(self.buffer.int_ptr)


@pytest.fixture
def buffer() -> Buffer:
    library = mapping_library()
    if library is None:
        pytest.skip("mappings are the driver's own (PHONEBIT_TEST_MAPPING, or no C++ compiler)")
    return Buffer(library)


def test_a_mapping_has_what_the_specification_promises_and_no_more(buffer: Buffer) -> None:
    read = buffer.map(READ, 64, 32)
    np.testing.assert_array_equal(read[64:96], buffer.content[64:96])
    assert (read[:64] != buffer.content[:64]).any()
    assert (read[96:] != buffer.content[96:]).any()
    buffer.unmap()
    assert (read[64:96] != buffer.content[64:96]).any()  # garbage after it
    assert (buffer.map(INVALIDATE) != buffer.content).any()
    buffer.unmap()
    assert take_mapping_faults() == []


def test_what_the_host_writes_arrives_at_the_unmap(buffer: Buffer) -> None:
    buffer.map(WRITE)[7] = 77
    np.testing.assert_array_equal(buffer.on_device(), buffer.content)
    buffer.unmap()
    assert buffer.on_device()[7] == 77
    assert np.delete(buffer.on_device(), 7).tolist() == np.delete(buffer.content, 7).tolist()
    assert take_mapping_faults() == []


def test_what_is_undefined_is_reported(buffer: Buffer) -> None:
    def faults_of(*steps: Any) -> str:
        for step in steps:
            step()
        (fault,) = take_mapping_faults()
        return fault

    def write_around() -> None:
        buffer.map(WRITE, 64, 32)[63] = 0

    def write_what_is_read() -> None:
        buffer.map(READ)[0] = 9

    def write_late() -> None:
        memory = buffer.map(WRITE)
        buffer.unmap()
        memory[0] = 9

    def map_again() -> None:
        buffer.map(READ, 0, 64)
        first = buffer.address
        buffer.map(WRITE, 32, 64)
        buffer.unmap()
        buffer.address = first
        buffer.unmap()

    assert "mapped again" in faults_of(map_again)
    assert "outside the region" in faults_of(write_around, buffer.unmap)
    assert "one of them was written" in faults_of(write_what_is_read, buffer.unmap)
    assert "one of them was written" in faults_of(
        lambda: buffer.map(READ), buffer.run, buffer.unmap
    )
    assert "after the unmap" in faults_of(write_late)
    used = faults_of(lambda: buffer.map(WRITE), buffer.run, buffer.unmap)
    assert used == "kernel add, argument 0 uses a buffer while it is mapped for writing"
