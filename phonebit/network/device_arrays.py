"""Inferences on arrays that live on the device: ``pyopencl.array.Array`` in and out, no copies.

Everything here runs only once a user has passed such an array, so pyopencl is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo
from phonebit.network.input_checks import (
    DTYPE_ADVICE,
    NUMPY_DTYPES,
    arrays_by_name,
    check_batches,
    check_shape,
)

if TYPE_CHECKING:
    import pyopencl as cl

    from phonebit import _runtime

WORD_BITS = 32


def is_device_array(x: Any) -> bool:
    """Whether it is a ``pyopencl.array.Array``."""
    module = sys.modules.get("pyopencl.array")
    return module is not None and isinstance(x, module.Array)


def holds_device_arrays(x: Any) -> bool:
    """Whether what a user passed to ``forward`` is, or holds, arrays on a device."""
    if isinstance(x, Mapping):
        return any(is_device_array(array) for array in x.values())
    return is_device_array(x)


def output_layout(info: TensorInfo, batch: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """How an output lies on the device.

    Args:
        info: the output.
        batch: inputs in the batch.

    Returns:
        Shape (N, *array_shape), the last axis counted in words of 32 bits for a "bit" output, and
        the element type: float32, uint8, or uint32 for bits.
    """
    if info.dtype == "bit":
        *pixels, channels = info.array_shape
        return (batch, *pixels, -(-channels // WORD_BITS)), np.dtype(np.uint32)
    return (batch, *info.array_shape), NUMPY_DTYPES[info.dtype]


def forward_on_device(
    engine: _runtime.Network,
    queue: cl.CommandQueue,
    infos: tuple[Sequence[TensorInfo], Sequence[TensorInfo]],
    x: Any,
    out: Any,
) -> dict[str, Any]:
    """Enqueue an inference; see ``Network.forward``.

    Args:
        engine: the runtime's network.
        queue: the queue that it works on.
        infos: its inputs and its outputs.
        x: device array, or mapping from input name to device array.
        out: the same for the outputs, or None: they are allocated.

    Returns:
        Outputs by name.

    Raises:
        InputError: if an array does not fit.
    """
    from pyopencl import array as cl_array

    inputs, outputs = infos
    given = arrays_by_name(x, inputs)
    for info in inputs:
        _check_kind(given[info.name], f"input '{info.name}'")
    batch = check_batches({info.name: _check_input(given[info.name], info) for info in inputs})
    for info in inputs:
        _check_memory(given[info.name], f"input '{info.name}'", queue)
    if out is None:
        results = {}
        for info in outputs:
            shape, dtype = output_layout(info, batch)
            results[info.name] = cl_array.empty(queue, shape, dtype)
    else:
        results = dict(arrays_by_name(out, outputs, "output"))
        for info in outputs:
            _check_kind(results[info.name], f"output '{info.name}'")
            _check_output(results[info.name], info, batch)
            _check_memory(results[info.name], f"output '{info.name}'", queue)
        _check_overlaps(
            [(f"output '{info.name}'", results[info.name]) for info in outputs],
            [(f"input '{info.name}'", given[info.name]) for info in inputs],
        )
    sources = [given[info.name] for info in inputs]
    targets = [results[info.name] for info in outputs]
    with _in_order(queue, sources + targets):
        engine.forward_on_device([_place(a) for a in sources], [_place(a) for a in targets], batch)
    return results


@contextmanager
def _in_order(queue: cl.CommandQueue, arrays: Sequence[Any]) -> Iterator[None]:
    """Make the network wait for what was enqueued with the arrays before, and later work for it.

    Commands of one in-order queue need nothing. Between queues events do it, without a wait on the
    host: a marker on each other queue, which the network's queue waits for, and afterwards one on
    the network's, which the others wait for (they may overwrite an input, or read an output).
    """
    import pyopencl as cl

    others = {
        array.queue.int_ptr: array.queue
        for array in arrays
        if array.queue is not None and array.queue.int_ptr != queue.int_ptr
    }
    loose = [array for array in arrays if array.queue is None]
    before = [event for array in arrays for event in array.events]
    for other in others.values():
        before.append(cl.enqueue_marker(other))
        other.flush()
    if before:
        cl.enqueue_barrier(queue, wait_for=before)
    yield
    if others or loose:
        done = cl.enqueue_marker(queue)
        queue.flush()
        for other in others.values():
            cl.enqueue_barrier(other, wait_for=[done])
        for array in loose:
            array.add_event(done)


def _place(array: Any) -> tuple[int, int]:
    return array.base_data.int_ptr, array.offset


def _check_kind(array: Any, where: str) -> None:
    if not is_device_array(array):
        raise InputError(
            "not a device array",
            where=where,
            expected="arrays that are all on the device, or all NumPy's",
            got=type(array).__name__,
            hint="put it there with pyopencl.array.to_device(network.queue, x)",
        )


def _check_memory(array: Any, where: str, queue: cl.CommandQueue) -> None:
    """Refuse what the network's kernels could not read or write in place."""
    import pyopencl as cl

    memory = array.base_data
    if not isinstance(memory, cl.MemoryObjectHolder):
        raise InputError(
            "not in a buffer",
            where=where,
            expected="an array in an OpenCL buffer",
            got=type(memory).__name__,
        )
    if array.context.int_ptr != queue.context.int_ptr:
        raise InputError(
            "the array belongs to another OpenCL context",
            where=where,
            hint="make arrays with network.queue, or load the network with your own context",
        )
    if not array.flags.c_contiguous:
        raise InputError(
            "not C-contiguous", where=where, got=f"strides {array.strides}", hint="copy it first"
        )
    if array.offset + array.nbytes > memory.size:
        raise InputError(
            "the array reaches beyond its buffer",
            where=where,
            expected=f"at most {memory.size} bytes",
            got=f"{array.nbytes} bytes from {array.offset}",
        )


def _check_input(array: Any, info: TensorInfo) -> int:
    """Check type and shape; gives the batch."""
    dtype = NUMPY_DTYPES[info.dtype]
    if array.dtype != dtype:
        raise InputError(
            "wrong element type",
            where=f"input '{info.name}'",
            expected=dtype.name,
            got=array.dtype,
            hint=DTYPE_ADVICE[info.dtype],
        )
    return check_shape(tuple(array.shape), info)[0]


def _check_output(array: Any, info: TensorInfo, batch: int) -> None:
    shape, dtype = output_layout(info, batch)
    as_map = (batch, *info.shape[:2], shape[-1])
    if array.dtype != dtype or tuple(array.shape) not in {shape, as_map}:
        raise InputError(
            "does not fit the output",
            where=f"output '{info.name}'",
            expected=f"{dtype.name} {shape}",
            got=f"{array.dtype} {tuple(array.shape)}",
        )


def _check_overlaps(outputs: list[tuple[str, Any]], inputs: list[tuple[str, Any]]) -> None:
    """A layer may write an output before another has read all of an input."""
    for number, (name, array) in enumerate(outputs):
        memory, begin = _place(array)
        for other_name, other in [*outputs[:number], *inputs]:
            other_memory, other_begin = _place(other)
            apart = begin + array.nbytes <= other_begin or other_begin + other.nbytes <= begin
            if memory == other_memory and not apart:
                raise InputError(
                    "shares memory with another array", where=name, got=f"memory of {other_name}"
                )
