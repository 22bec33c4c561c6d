"""Arrays on the device: what is accepted, and in which order queues work. The engine pretends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from phonebit import InputError
from phonebit.layer_info import TensorInfo
from phonebit.network.device_arrays import forward_on_device, holds_device_arrays, output_layout
from phonebit.network.host_outputs import named_results

cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
cl_array = pytest.importorskip("pyopencl.array")

X = TensorInfo("x", "f32", (2, 3, 4))
Y = TensorInfo("y", "f32", (2, 3, 4))
SHAPE = (5, 2, 3, 4)


class CopyingEngine:
    """A network of one layer that copies its input to its output, on a queue."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.batches: list[int] = []

    def forward_on_device(
        self, inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]], batch: int
    ) -> None:
        self.batches.append(batch)
        for (source, source_offset), (target, target_offset) in zip(inputs, outputs, strict=True):
            cl.enqueue_copy(
                self._queue,
                cl.Buffer.from_int_ptr(target),
                cl.Buffer.from_int_ptr(source),
                byte_count=batch * 24 * 4,
                src_offset=source_offset,
                dst_offset=target_offset,
            )


@pytest.fixture
def values() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)


def forward(queue: Any, x: Any, out: Any = None, outputs: Sequence[TensorInfo] = (Y,)) -> Any:
    engine: Any = CopyingEngine(queue)
    return forward_on_device(engine, queue, ([X], outputs), x, out)["y"]


def test_results_are_new_arrays_on_the_networks_queue(
    opencl_queue: Any, values: np.ndarray[Any, Any]
) -> None:
    x = cl_array.to_device(opencl_queue, values)
    assert holds_device_arrays(x)
    assert holds_device_arrays({"x": x})
    result = forward(opencl_queue, {"x": x})
    assert result.queue == opencl_queue
    np.testing.assert_array_equal(result.get(), values)


def test_out_and_offsets_are_honoured(opencl_queue: Any, values: np.ndarray[Any, Any]) -> None:
    x = cl_array.to_device(opencl_queue, values)[2:4]
    out = cl_array.zeros(opencl_queue, SHAPE, np.float32)
    assert forward(opencl_queue, x, out[1:3]).base_data is out.base_data
    expected = np.zeros_like(values)
    expected[1:3] = values[2:4]
    np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.parametrize("out_of_order", [False, True])
def test_the_pass_waits_for_the_arrays_queue_and_that_queue_for_it(
    opencl_queue: Any, values: np.ndarray[Any, Any], out_of_order: bool
) -> None:
    properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE if out_of_order else 0
    try:
        other = cl.CommandQueue(opencl_queue.context, properties=properties)
    except cl.Error as error:
        pytest.skip(f"no such queue: {error}")
    x = cl_array.zeros(other, SHAPE, np.float32)
    out = cl_array.zeros(other, SHAPE, np.float32)
    other.finish()
    gate = cl.UserEvent(opencl_queue.context)
    cl.enqueue_barrier(other, wait_for=[gate])
    written = cl.enqueue_copy(other, x.base_data, values, is_blocking=False)
    forward(opencl_queue, x, out)
    cl.enqueue_fill_buffer(other, x.base_data, np.float32(7), 0, x.nbytes)
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(out.with_queue(other).get(), values)
    other.finish()
    assert written.command_execution_status == cl.command_execution_status.COMPLETE
    np.testing.assert_array_equal(x.get(), np.full_like(values, 7))


def test_arrays_without_a_queue_carry_events(
    opencl_queue: Any, values: np.ndarray[Any, Any]
) -> None:
    x = cl_array.to_device(opencl_queue, values).with_queue(None)
    out = cl_array.zeros(opencl_queue, SHAPE, np.float32).with_queue(None)
    opencl_queue.finish()
    forward(opencl_queue, x, out)
    assert out.events
    np.testing.assert_array_equal(out.get(queue=cl.CommandQueue(opencl_queue.context)), values)


def test_bits_are_packed_words(opencl_queue: Any) -> None:
    info = TensorInfo("y", "bit", (2, 3, 33))
    assert output_layout(info, 5) == ((5, 2, 3, 2), np.dtype(np.uint32))
    x = cl_array.zeros(opencl_queue, SHAPE, np.float32)
    with pytest.raises(InputError, match=r"expected uint32 \(5, 2, 3, 2\)"):
        forward(opencl_queue, x, cl_array.zeros(opencl_queue, SHAPE, np.float32), [info])


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((2, 3, 4), np.float32, r"add the batch dimension"),
        ((), np.float32, "the order is batch"),
        ((0, 2, 3, 4), np.float32, "the batch is empty"),
        ((5, 4, 2, 3), np.float32, "channels first"),
        (SHAPE, np.float64, r"expected float32"),
        (SHAPE, np.uint8, r"expected float32"),
    ],
)
def test_wrong_inputs_are_refused(
    opencl_queue: Any, shape: tuple[int, ...], dtype: type, message: str
) -> None:
    x = cl_array.empty(opencl_queue, shape, dtype)
    with pytest.raises(InputError, match=message):
        forward(opencl_queue, x)


def test_strides_are_refused(opencl_queue: Any) -> None:
    x = cl_array.zeros(opencl_queue, (10, 2, 3, 4), np.float32)
    with pytest.raises(InputError, match="not C-contiguous"):
        forward(opencl_queue, x[::2])


def test_another_context_is_refused(opencl_queue: Any) -> None:
    other = cl.CommandQueue(cl.Context([opencl_queue.device]))
    with pytest.raises(InputError, match=r"another OpenCL context.*network\.queue"):
        forward(opencl_queue, cl_array.zeros(other, SHAPE, np.float32))


def test_an_array_beyond_its_buffer_is_refused(opencl_queue: Any) -> None:
    buffer = cl.Buffer(opencl_queue.context, cl.mem_flags.READ_WRITE, 16)
    x = cl_array.Array(opencl_queue, SHAPE, np.float32, data=buffer)
    with pytest.raises(InputError, match="beyond its buffer"):
        forward(opencl_queue, x)


def test_kinds_are_not_mixed(opencl_queue: Any, values: np.ndarray[Any, Any]) -> None:
    x = cl_array.to_device(opencl_queue, values)
    with pytest.raises(InputError, match=r"output 'y'.*not a device array.*ndarray"):
        forward(opencl_queue, x, np.zeros(SHAPE, np.float32))
    with pytest.raises(InputError, match=r"output 'y'.*not a NumPy array.*Array"):
        named_results([values], [Y], x)


def test_shared_memory_is_refused(opencl_queue: Any, values: np.ndarray[Any, Any]) -> None:
    x = cl_array.to_device(opencl_queue, np.concatenate([values, values]))
    with pytest.raises(InputError, match=r"output 'y'.*shares memory.*input 'x'"):
        forward(opencl_queue, x[:5], x[4:9])
    forward(opencl_queue, x[:5], x[5:])


def test_numpy_results_are_copied_into_out(values: np.ndarray[Any, Any]) -> None:
    out = np.zeros(SHAPE, np.float32)
    assert named_results([values], [Y], {"y": out})["y"] is out
    np.testing.assert_array_equal(out, values)
    flat = TensorInfo("y", "f32", (1, 1, 24))
    for shape in ((5, 24), (5, 1, 1, 24)):
        out = np.zeros(shape, np.float32)
        named_results([values.reshape(5, 1, 1, 24)], [flat], out)
        np.testing.assert_array_equal(out.ravel(), values.ravel())


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(SHAPE), "expected float32"),
        (np.zeros((5, 24), np.float32), r"got float32 \(5, 24\)"),
        (np.zeros(SHAPE[1:], np.float32), "does not fit"),
        ({"z": np.zeros(SHAPE, np.float32)}, "'y' is missing; 'z' is not an output"),
    ],
)
def test_outs_that_do_not_fit_are_refused(
    values: np.ndarray[Any, Any], out: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        named_results([values], [Y], out)


def test_a_read_only_out_is_refused(values: np.ndarray[Any, Any]) -> None:
    out = np.zeros(SHAPE, np.float32)
    out.flags.writeable = False
    with pytest.raises(InputError, match="read-only"):
        named_results([values], [Y], out)
