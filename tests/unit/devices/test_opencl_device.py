"""Networks on a real OpenCL device (PoCL in CI), against the CPU backend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import DeviceError, InputError, Network
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import device_key, gpu_device, pyopencl_library
from phonebit.devices.target import find_target
from phonebit.network.random_inputs import random_inputs
from support.golden import golden_graph
from support.opencl_device import device_name

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def file(tiny_file: Path) -> Path:
    return tiny_file


@pytest.fixture(scope="module")
def block_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A residual block of 31 channels: a float output and two of bits."""
    path = tmp_path_factory.mktemp("networks") / "block.pbit"
    path.write_bytes(to_bytes(golden_graph("residual_block_31"), {}))
    return path


@pytest.fixture(scope="module")
def network(file: Path, opencl_queue: Any, gpu: str) -> Network:
    """On the user's own queue."""
    return Network.load(file, device=opencl_queue)


@pytest.fixture(scope="module")
def reference(file: Path) -> Network:
    return Network.load(file, device="cpu", threads=1)


@pytest.fixture
def batch(reference: Network) -> Array:
    return random_inputs(reference.inputs, 3)["image"]


def pack(signs: Array) -> Array:
    """-1, +1 to words of 32 bits along the last axis."""
    words = -(-signs.shape[-1] // 32)
    bits = np.zeros((*signs.shape[:-1], 32 * words), np.uint8)
    bits[..., : signs.shape[-1]] = signs > 0
    return np.packbits(bits, axis=-1, bitorder="little").view("<u4")


def test_the_runtime_uses_pyopencls_library(gpu: str) -> None:
    import pyopencl as cl

    library = pyopencl_library()
    assert library is None or library.exists()
    ids = {device.int_ptr for platform in cl.get_platforms() for device in platform.get_devices()}
    assert gpu_device(gpu).id in ids


def test_pyopencl_is_not_imported_for_a_device_by_name(gpu: str, file: Path) -> None:
    code = (
        "import sys, numpy as np, phonebit\n"
        f"network = phonebit.Network.load({str(file)!r}, device={gpu!r})\n"
        "network.forward(np.zeros((1, 28, 28, 1), np.uint8))\n"
        "print(network.device, 'pyopencl' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(gpu)
    assert done.stdout.endswith(" False\n")


def test_numpy_in_and_out_is_what_the_cpu_gives(
    network: Network, reference: Network, batch: Array
) -> None:
    np.testing.assert_array_equal(network.forward(batch), reference.forward(batch))
    for size in (1, 2, 3, 1):
        result = network.forward(batch[:size])
        np.testing.assert_array_equal(result, reference.forward(batch[:size]))


@pytest.mark.parametrize("kind", ["name", "device", "context", "queue"])
def test_every_way_to_name_a_device(
    file: Path, opencl_queue: Any, gpu: str, reference: Network, batch: Array, kind: str
) -> None:
    device = {
        "name": gpu,
        "device": opencl_queue.device,
        "context": opencl_queue.context,
        "queue": opencl_queue,
    }[kind]
    network = Network.load(file, device=device)
    assert opencl_queue.device.name.strip() in network.device
    assert network.device in repr(network)
    assert network.isa == "opencl"
    assert find_target(device).key == device_key(gpu_device(gpu))
    if kind in {"context", "queue"}:
        assert network.queue.context == opencl_queue.context
    if kind == "queue":
        assert network.queue == opencl_queue
    np.testing.assert_array_equal(network.forward(batch), reference.forward(batch))


def test_device_arrays_stay_on_the_device(
    network: Network, reference: Network, batch: Array
) -> None:
    from pyopencl import array as cl_array

    x = cl_array.to_device(network.queue, batch)
    result = network.forward(x)
    assert isinstance(result, cl_array.Array)
    assert (result.shape, result.dtype) == ((3, 10), np.float32)
    np.testing.assert_array_equal(result.get(), reference.forward(batch))
    out = cl_array.empty(network.queue, (3, 1, 1, 10), np.float32)
    assert network.forward(x, out=out) is out
    np.testing.assert_array_equal(out.get().reshape(3, 10), reference.forward(batch))


def test_device_arrays_at_offsets_and_in_varying_batches(
    network: Network, reference: Network, batch: Array
) -> None:
    from pyopencl import array as cl_array

    x = cl_array.to_device(network.queue, np.concatenate([batch, batch]))
    expected = reference.forward(np.concatenate([batch, batch]))
    for begin, end in ((0, 1), (1, 4), (5, 6), (2, 3), (0, 6)):
        np.testing.assert_array_equal(network.forward(x[begin:end]).get(), expected[begin:end])


def test_passes_in_a_row_on_one_queue_need_no_wait(network: Network, reference: Network) -> None:
    from pyopencl import array as cl_array

    images = random_inputs(reference.inputs, 8, seed=5)["image"]
    x = cl_array.empty(network.queue, (1, 28, 28, 1), np.uint8)
    results = []
    for image in images:
        x.set(image[None])
        results.append(network.forward(x))
    got = np.concatenate([result.get() for result in results])
    np.testing.assert_array_equal(got, reference.forward(images))


def test_arrays_on_another_queue_of_the_context(
    network: Network, reference: Network, batch: Array
) -> None:
    import pyopencl as cl
    from pyopencl import array as cl_array

    if "Oclgrind" in network.queue.device.platform.name:
        pytest.skip("Oclgrind crashes on events between queues")
    other = cl.CommandQueue(network.queue.context)
    gate = cl.UserEvent(network.queue.context)
    x = cl_array.zeros(other, batch.shape, np.uint8)
    out = cl_array.zeros(other, (3, 10), np.float32)
    other.finish()
    cl.enqueue_barrier(other, wait_for=[gate])
    # (the event waits for the copy when it is dropped, so it is kept)
    copied = cl.enqueue_copy(other, x.base_data, batch, is_blocking=False)
    network.forward(x, out=out)
    x.fill(0)
    assert copied.command_execution_status != cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(out.get(), reference.forward(batch))


def test_several_outputs_and_packed_bits(block_file: Path, opencl_queue: Any, gpu: str) -> None:
    from pyopencl import array as cl_array

    cpu = Network.load(block_file, device="cpu", threads=1)
    network = Network.load(block_file, device=opencl_queue)
    x = (np.arange(2 * 6 * 5 * 31) % 7 - 3).reshape(2, 6, 5, 31).astype(np.float32)
    name = cpu.inputs[0].name
    expected = cpu.forward({name: x})
    on_host = network.forward({name: x})
    on_device = network.forward({name: cl_array.to_device(opencl_queue, x)})
    assert list(on_device) == list(on_host) == list(expected)
    for info in cpu.outputs:
        result = on_device[info.name].get()
        if info.dtype == "bit":
            np.testing.assert_array_equal(on_host[info.name], expected[info.name])
            assert result.dtype == np.uint32
            np.testing.assert_array_equal(result, pack(expected[info.name]))
        else:
            np.testing.assert_allclose(on_host[info.name], expected[info.name], rtol=1e-5)
            np.testing.assert_array_equal(result, on_host[info.name])


def test_numpy_out_is_written(network: Network, reference: Network, batch: Array) -> None:
    out = np.empty((3, 10), np.float32)
    assert network.forward(batch, out=out) is out
    np.testing.assert_array_equal(out, reference.forward(batch))


def test_half_precision_takes_and_gives_float32(file: Path, opencl_queue: Any, gpu: str) -> None:
    from pyopencl import array as cl_array

    network = Network.load(file, device=opencl_queue, precision="f16")
    batch = random_inputs(network.inputs, 2)["image"]
    result = network.forward(batch)
    assert result.dtype == np.float32
    on_device = network.forward(cl_array.to_device(opencl_queue, batch))
    np.testing.assert_array_equal(on_device.get(), result)


def test_profile_activations_and_layers(network: Network, reference: Network, batch: Array) -> None:
    profiles = network.profile(batch, repeats=2)
    assert [entry.name for entry in profiles] == [layer.name for layer in reference.layers]
    assert sum(entry.latency_ms for entry in profiles) > 0
    values, expected = network.activations(batch), reference.activations(batch)
    assert values.keys() == expected.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    operands = [expected[name] for name in network.layers[1].inputs]
    for name, value in network.run_layer(1, operands).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_an_out_of_order_queue_is_refused(file: Path, opencl_queue: Any) -> None:
    import pyopencl as cl

    order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    try:
        queue = cl.CommandQueue(opencl_queue.context, properties=order)
    except cl.Error as error:
        pytest.skip(f"no such queue: {error}")
    with pytest.raises(DeviceError, match=r"out of order.*in-order"):
        Network.load(file, device=queue)


def test_device_arrays_are_refused_on_the_cpu(reference: Network, opencl_queue: Any) -> None:
    from pyopencl import array as cl_array

    x = cl_array.zeros(opencl_queue, (1, 28, 28, 1), np.uint8)
    with pytest.raises(DeviceError, match=r"runs on cpu:.*device='gpu:0'"):
        reference.forward(x)
    assert reference.candidates(0) == []


def test_the_network_works_on_after_a_refusal(
    network: Network, reference: Network, batch: Array
) -> None:
    from pyopencl import array as cl_array

    with pytest.raises(InputError):
        network.forward(cl_array.zeros(network.queue, (1, 28, 28, 1), np.float32))
    with pytest.raises(InputError):
        network.measure_choice(0, "no_such_kernel")
    with pytest.raises(InputError, match="no such layer"):
        network.candidates(len(network.layers))
    np.testing.assert_array_equal(network.forward(batch), reference.forward(batch))


def test_a_network_outlives_the_users_objects(
    file: Path, opencl_queue: Any, gpu: str, reference: Network, batch: Array
) -> None:
    import gc

    import pyopencl as cl

    network = Network.load(file, device=cl.CommandQueue(cl.Context([opencl_queue.device])))
    gc.collect()
    np.testing.assert_array_equal(network.forward(batch), reference.forward(batch))
    assert device_name(network.queue.device) == gpu
