"""Averages: within 1e-6 of the mean at any size, the same bits on every instruction set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from phonebit import _runtime
from phonebit.converter.interpreter import run
from phonebit.converter.ir import FloatArray, Graph, Window
from phonebit.converter.ops import AveragePool2D
from phonebit.converter.writer import to_bytes
from support.engine_net import Net

ISAS = [name for name, _, supported in _runtime.isas() if supported]


def average(size: tuple[int, int, int], window: Window) -> Graph:
    net = Net("average")
    return net.done(net.op("average", AveragePool2D(window), net.input("x", size)))


def exact_mean(x: FloatArray, window: Window) -> FloatArray:
    """In float64, over the taps inside the map."""
    top, left, bottom, right = window.pads
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x.astype(np.float64), pads, constant_values=np.nan)
    spans = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilation, strict=True)]
    taps = sliding_window_view(padded, spans, axis=(1, 2))
    taps = taps[:, :: window.strides[0], :: window.strides[1]]
    taps = taps[..., :: window.dilation[0], :: window.dilation[1]]
    mean: FloatArray = np.nanmean(taps, axis=(4, 5))
    return mean


def computed(x: FloatArray, window: Window, folder: Path) -> FloatArray:
    """By the reference, after a check that the engine has the same bits."""
    graph = average(x.shape[1:], window)
    expected = run(graph, {"x": x})["average"]
    path = folder / "average.pbit"
    path.write_bytes(to_bytes(graph))
    for isa in ISAS:
        network = _runtime.Network(str(path), threads=2, device=f"cpu:{isa}")
        np.testing.assert_array_equal(network.forward([x])[0], expected, err_msg=isa)
    return expected


@pytest.mark.parametrize("middle", [0.1, 11.0, 1000.0])
@pytest.mark.parametrize(
    ("size", "kernel"),
    [
        ((1, 1, 3), (1, 1)),
        ((7, 7, 70), (7, 7)),
        ((15, 28, 33), (15, 28)),
        ((224, 224, 3), (224, 224)),
        ((3, 768, 1), (1, 768)),
        ((9, 40, 5), (9, 1)),
    ],
)
def test_an_average_of_any_size_is_right(
    size: tuple[int, int, int], kernel: tuple[int, int], middle: float, tmp_path: Path
) -> None:
    rng = np.random.default_rng(kernel)
    window = Window(kernel, kernel)
    x = rng.uniform(0.9 * middle, 1.1 * middle, (2, *size)).astype(np.float32)
    x[1] = np.float32(middle)  # every addition rounds alike
    np.testing.assert_allclose(computed(x, window, tmp_path), exact_mean(x, window), rtol=1e-6)


def test_an_average_of_a_million_pixels_is_right(tmp_path: Path) -> None:
    window = Window((1024, 1024))
    x = np.full((1, 1024, 1024, 2), 0.1, np.float32)
    x[..., 1] = np.random.default_rng(0).uniform(0, 22, (1024, 1024))
    np.testing.assert_allclose(computed(x, window, tmp_path), exact_mean(x, window), rtol=1e-6)


@st.composite
def windows(draw: st.DrawFn) -> tuple[tuple[int, int, int], Window]:
    """Maps of up to 60 pixels an axis and windows that reach over their edges."""

    def number(minimum: int, maximum: int) -> int:
        return draw(st.integers(minimum, maximum))

    kernel = number(1, 40), number(1, 40)
    dilation = number(1, 2), number(1, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = number(spans[0], spans[0] + 20), number(spans[1], spans[1] + 20)
    pads = [number(0, (kernel[axis] - 1) // 2 * dilation[axis]) for axis in (0, 1, 0, 1)]
    strides = number(1, 9), number(1, 9)
    channels = draw(st.sampled_from([1, 2, 5, 16, 17, 33]))
    return (*size, channels), Window(
        kernel, strides, dilation, (pads[0], pads[1], pads[2], pads[3])
    )


@settings(max_examples=40, deadline=None)
@given(windows(), st.integers(0, 9))
def test_windows_of_any_shape_have_one_order(
    tmp_path_factory: pytest.TempPathFactory,
    case: tuple[tuple[int, int, int], Window],
    seed: int,
) -> None:
    (size, window), folder = case, tmp_path_factory.getbasetemp()
    x = np.random.default_rng(seed).lognormal(0, 3, (1, *size)).astype(np.float32)
    np.testing.assert_allclose(computed(x, window, folder), exact_mean(x, window), rtol=1e-6)


def test_the_worst_addends_keep_the_bound(tmp_path: Path) -> None:
    """Each block begins with a 1; the others are lost, as half of its last bit."""
    x = np.full((1, 1, 14 * 40, 1), 2.0**-24, np.float32)
    x[0, 0, ::14] = 1
    window = Window((1, 14 * 40))
    np.testing.assert_allclose(computed(x, window, tmp_path), exact_mean(x, window), rtol=1e-6)


def test_a_sum_that_overflows_is_infinite(tmp_path: Path) -> None:
    x = np.full((1, 7, 7, 2), 3e38, np.float32)
    x[..., 1] *= -1
    result = computed(x, Window((7, 7)), tmp_path)
    np.testing.assert_array_equal(result.reshape(2), [np.inf, -np.inf])
