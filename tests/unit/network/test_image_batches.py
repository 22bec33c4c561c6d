"""Images as bytes, and streams of batches, on every kind of device."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phonebit
from phonebit import CancelledError, InputError, Network
from support.opencl_device import device_name, pyopencl_device

DEVICES = ("cpu", "gpu", "gpu+cpu")
LEVELS = np.random.default_rng(3).integers(0, 256, (9, 28, 28, 1), np.uint8)


@pytest.fixture(scope="module")
def ruled_file(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network reading float values, with a rule that is exact in no step."""
    path = tmp_path_factory.mktemp("converted") / "ruled.pbit"
    rule = phonebit.Preprocessing((0.0, 1.0), mean=(0.2860,), std=(0.3530,))
    phonebit.convert(checkpoint, path, preprocessing=rule)
    return path


@pytest.fixture(scope="module", params=DEVICES)
def network(ruled_file: Path, request: pytest.FixtureRequest) -> Network:
    gpu = device_name(pyopencl_device()) if "gpu" in request.param else "cpu"
    return Network.load(ruled_file, device=request.param.replace("gpu", gpu), threads=2)


@pytest.fixture
def values(network: Network) -> np.ndarray[Any, Any]:
    return network.preprocessing["picture"].values(LEVELS)


def test_levels_give_the_bits_of_their_values(network: Network, values: Any) -> None:
    expected = network.forward(values)
    np.testing.assert_array_equal(network.forward(LEVELS), expected)
    kept, kept_of_values = network.activations(LEVELS), network.activations(values)
    for name, array in kept_of_values.items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)
    assert network.profile(LEVELS, repeats=1)


def test_a_large_batch_gives_what_its_images_give(network: Network) -> None:
    """On a GPU it runs in pieces; no result is written where one of them has a bad value."""
    levels = np.random.default_rng(4).integers(0, 256, (131, 28, 28, 1), np.uint8)
    expected = np.concatenate([network.forward(levels[:9]), network.forward(levels[9:40])])
    np.testing.assert_array_equal(network.forward(levels)[:40], expected)
    values = network.preprocessing["picture"].values(levels)
    np.testing.assert_array_equal(network.forward(values)[90:], network.forward(values[90:]))
    values[130, 3, 4, 0] = np.nan
    with pytest.raises(InputError, match=r"1 of 102704 .*nan at \(130, 3, 4, 0\)"):
        network.forward(values)
    np.testing.assert_array_equal(network.forward(levels)[:40], expected)


def test_a_stream_gives_what_forward_gives(network: Network, values: Any) -> None:
    sizes = (1, 1, 4, 1, 9, 2)
    expected = [network.forward(values[:size]) for size in sizes]
    buffer = np.empty_like(LEVELS)

    def batches() -> Any:
        for index, size in enumerate(sizes):
            buffer[:size] = LEVELS[:size]  # one array for all: what was begun is not read again
            yield buffer[:size] if index % 2 else {"picture": values[:size]}

    for index, (got, wanted) in enumerate(zip(network.stream(batches()), expected, strict=True)):
        result = got if index % 2 else next(iter(got.values()))
        np.testing.assert_array_equal(result, wanted)


def test_a_stream_goes_with_async_for(network: Network, values: Any) -> None:
    async def source() -> AsyncIterator[Any]:
        for begin in range(0, 9, 3):
            await asyncio.sleep(0)
            yield LEVELS[begin : begin + 3]

    async def run(batches: Any) -> list[Any]:
        return [result async for result in network.stream(batches)]

    expected = network.forward(values)
    for batches in (source(), [LEVELS[:3], LEVELS[3:6], LEVELS[6:]]):
        np.testing.assert_array_equal(np.concatenate(asyncio.run(run(batches))), expected)
    with pytest.raises(TypeError, match="async for"):
        next(iter(network.stream(source())))


def test_a_stream_ends_with_an_error_and_leaves_the_network_usable(
    network: Network, values: Any
) -> None:
    bad = values.copy()
    bad[5, 3, 4, 0] = np.inf
    stream = iter(network.stream([values, values, bad, values]))
    expected = network.forward(values)
    np.testing.assert_array_equal(next(stream), expected)
    with pytest.raises(InputError, match=r"1 of 7056 .*inf at \(5, 3, 4, 0\)"):
        next(stream)
    left = iter(network.stream([values] * 3))
    next(left)
    del left  # an inference is on its way
    np.testing.assert_array_equal(network.forward(LEVELS), expected)


def test_an_inference_that_was_begun_can_be_cancelled(network: Network) -> None:
    stream = iter(network.stream([LEVELS] * 3))
    next(stream)
    network.cancel()
    if network.device.startswith("gpu:") and "+" not in network.device:
        with pytest.raises(CancelledError):
            next(stream)
    assert network.forward(LEVELS).shape == (9, 10)


def test_levels_need_a_rule(f32_file: Path) -> None:
    with (
        Network.load(f32_file, device="cpu") as network,
        pytest.raises(InputError, match=r"levels of an image.*float32.*uint8.*--input-range"),
    ):
        network.forward(LEVELS)
