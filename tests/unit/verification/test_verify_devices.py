"""One report over several devices, and arrays in either order of axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit import InputError, Network
from phonebit.layer_info import TensorInfo
from phonebit.verification import verify
from phonebit.verification.layout import to_nhwc
from support.cli_process import Cli

Array = NDArray[Any]


class Altered:
    """A network on a device that gets one element of one layer, or of the output, wrong."""

    def __init__(self, network: Network, layer: int | None) -> None:
        self._network = network
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def run_layer(self, index: int, operands: list[Array]) -> dict[str, Array]:
        results = self._network.run_layer(index, operands)
        return (
            {name: altered(x) for name, x in results.items()} if index == self._layer else results
        )

    def activations(self, x: Any) -> dict[str, Array]:
        values = self._network.activations(x)
        last = self._network.outputs[0].name
        return values if self._layer is not None else {**values, last: altered(values[last])}


def altered(array: Array) -> Array:
    """One bit flipped, or one value moved to its neighbour in float32."""
    array = array.copy()
    first = array.reshape(-1)[:1]
    first[:] = -first if array.dtype == np.int8 else np.nextafter(first, np.float32(9))
    return array


def test_devices_that_agree_pass_in_one_report(checkpoint: Path, u8_file: Path) -> None:
    networks = [Network.load(u8_file, "cpu:scalar"), Network.load(u8_file, "cpu")]
    report = verify(checkpoint, networks, seed=7, framework=False)
    assert report.passed, report.to_dict()
    assert [device.device for device in report.devices] == [net.device for net in networks]
    assert report.layers is report.devices[0].layers
    for device in report.devices:
        assert [layer.other_device for layer in device.layers] == [0] * len(device.layers)
        assert device.end_to_end.samples == 8


def test_one_wrong_element_of_the_second_device_parts_at_its_layer(
    checkpoint: Path, u8_file: Path
) -> None:
    good = Network.load(u8_file, "cpu")
    for index in (0, 4, len(good.layers) - 1):
        layer = good.layers[index]
        report = verify(checkpoint, [good, Altered(good, index)], seed=7, framework=False)
        first, second = report.devices
        assert first.passed, layer.name
        assert second.first_mismatch is report.first_mismatch is second.layers[index]
        assert second.layers[index].other_device == len(layer.outputs)
        assert "not what the first device computed" in second.layers[index].explanation
        assert [check.name for check in second.layers if check.mismatch] == [layer.name]


def test_one_wrong_output_of_the_second_device_parts_end_to_end(
    checkpoint: Path, u8_file: Path
) -> None:
    good = Network.load(u8_file, "cpu")
    report = verify(checkpoint, [good, Altered(good, None)], seed=7, framework=False)
    assert report.first_mismatch is None
    assert not report.passed
    assert report.devices[1].end_to_end.other_device == 1
    assert report.devices[1].end_to_end.verdict == "mismatch"


def test_networks_of_different_files_are_refused(
    checkpoint: Path, u8_file: Path, f32_file: Path
) -> None:
    networks = [Network.load(u8_file, "cpu"), Network.load(f32_file, "cpu")]
    with pytest.raises(InputError, match="not one file on several devices"):
        verify(checkpoint, networks, framework=False)
    with pytest.raises(InputError, match="none"):
        verify(checkpoint, [], framework=False)


def test_a_gpu_and_the_cpu_agree_to_the_last_bit(
    cli: Cli, gpu: str, checkpoint: Path, u8_file: Path
) -> None:
    options = ("--samples", 2, "--interpreter", "--device", "cpu", "--device", gpu)
    document = cli("verify", checkpoint, u8_file, *options, "--json").document
    assert document["passed"] is True
    assert [device["device"].split(" ")[0] for device in document["devices"]][1:] == [gpu]
    done = cli("verify", checkpoint, u8_file, *options)
    assert done.code == 0, done.out + done.err
    assert "the same to the last bit on all devices" in done.out
    assert gpu in done.out


# --- the order of axes ---


def info(*shape: int) -> TensorInfo:
    height, width, channels = shape
    return TensorInfo("x", "f32", (height, width, channels))


def arranged(array: Array, of: TensorInfo, layout: Any = None, torch: bool = True) -> Array:
    return to_nhwc({"x": array}, [of], layout, torch)["x"]


def test_channels_first_are_recognised_by_the_shape() -> None:
    array = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert np.array_equal(arranged(array, info(4, 5, 3)), array.transpose(0, 2, 3, 1))
    assert arranged(array, info(3, 4, 5)) is array
    assert arranged(array, info(9, 9, 9)) is array  # its refusal is not this function's


def test_only_pytorch_arrays_may_have_channels_first_unasked() -> None:
    array = np.zeros((2, 3, 4, 5))
    assert arranged(array, info(4, 5, 3), torch=False) is array
    assert arranged(array, info(4, 5, 3), "nchw", torch=False).shape == (2, 4, 5, 3)
    assert arranged(array, info(4, 5, 3), "nhwc") is array


def test_a_shape_that_fits_both_orders_is_refused_unless_the_layout_is_given() -> None:
    array = np.arange(2 * 4 * 4 * 4).reshape(2, 4, 4, 4)
    with pytest.raises(InputError, match="--layout"):
        arranged(array, info(4, 4, 4))
    assert arranged(array, info(4, 4, 4), "nhwc") is array
    assert np.array_equal(arranged(array, info(4, 4, 4), "nchw"), np.moveaxis(array, 1, 3))


def test_vectors_have_no_order() -> None:
    array = np.zeros((2, 7))
    assert arranged(array, info(1, 1, 7), "nchw") is array


def test_the_command_reads_channels_first_when_told(
    cli: Cli, checkpoint: Path, f32_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((2, 1, 28, 28), np.float32))
    options = ("--dataset", path, "--interpreter")
    assert "--layout" not in cli.refused("verify", checkpoint, f32_file, *options)
    assert cli("verify", checkpoint, f32_file, *options, "--layout", "nchw").code == 0
