"""Any arrangement of a value's elements is restored, by the cheapest operator (no PyTorch here)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phonebit.converter.importers.torch.element_positions import (
    ZERO,
    Layout,
    UnsupportedError,
    View,
    in_layout,
    plain_view,
)
from phonebit.converter.importers.torch.emission import Emission
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.program import Program
from phonebit.converter.infer import infer
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Input, Sign

BATCH = 2


def start(shape: tuple[int, ...], layout: Layout = "channels_first") -> tuple[Emission, View]:
    """A graph with one input for tensors of a shape, and the view that the input is."""
    emission = Emission(Program())
    view = plain_view("x", (BATCH, *shape), BATCH, layout)
    emission.emit(Input(), [], view.hwc, "x")
    return emission, view


def result(emission: Emission, view: View, tensor: NDArray[Any]) -> NDArray[Any]:
    """The view's value, of an input that holds the tensor (BATCH, C, H, W) or (BATCH, C)."""
    maps = np.moveaxis(tensor, 1, -1).reshape(BATCH, *emission.types["x"].shape)
    graph = Graph("g", emission.nodes, dict(emission.types), ["x"], [view.value])
    graph.types = infer(graph)
    assert graph.types[view.value].shape == view.hwc
    return run(graph, {"x": maps})[view.value]


def applied(change: tuple[str, int, int], array: NDArray[Any], zero: Any) -> NDArray[Any]:
    """One view operation on all axes but the batch; the same on positions and on numbers."""
    kind, one, two = change
    axes = array.ndim - 1
    axis, other = 1 + one % axes, 1 + two % axes
    size = array.shape[axis]
    if kind == "swap":
        return array.swapaxes(axis, other)
    if kind == "flip":
        return np.flip(array, axis)
    if kind == "flatten":
        return array.reshape(BATCH, -1)
    if kind == "step":
        return array[(slice(None),) * axis + (slice(one % size, None, 1 + two % 3),)]
    if kind == "select":
        return np.take(array, np.arange(two, two + 3) * 7 % size, axis)
    if kind == "zeros":
        pads = [(0, 0)] * array.ndim
        pads[axis] = (one % 2, two % 2)
        return np.pad(array, pads, constant_values=zero)
    factor = next((f for f in (2, 3) if size % f == 0), 1)  # split one axis, merge it with another
    shape = (*array.shape[:axis], size // factor, factor, *array.shape[axis + 1 :])
    split = np.moveaxis(array.reshape(shape), axis + 1, other)
    merged = (*split.shape[:other], split.shape[other] * split.shape[other + 1])
    return split.reshape(*merged, *split.shape[other + 2 :]) if other + 1 < split.ndim else array


changes = st.lists(
    st.tuples(
        st.sampled_from(["swap", "flip", "flatten", "step", "select", "zeros", "fold"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=5,
)


@settings(max_examples=300)
@given(changes, st.sampled_from(["channels_first", "channels_last"]), st.booleans())
def test_any_chain_of_views_is_what_numpy_makes_of_the_numbers(
    chain: list[tuple[str, int, int]], layout: Layout, as_bits: bool
) -> None:
    emission, view = start((6, 4, 3))
    original = np.random.default_rng(0).integers(1, 100, (BATCH, 6, 4, 3)).astype(np.float32)
    tensor, positions = original, view.indices
    for change in chain:
        positions = applied(change, positions, ZERO)
        tensor = applied(change, tensor, 0.0)
    moved = replace(view, indices=positions)
    if as_bits:
        signs = emission.emit(Sign(50.0), ["x"], view.hwc, "signs")
        moved = moved.with_value(signs, quantized=True)
        tensor = np.where(tensor == 0, 0, np.where(tensor >= 50, 1, -1))
    plain = relayout(emission, moved, layout, "y")
    expected = np.stack([in_layout(image, layout) for image in tensor])
    np.testing.assert_array_equal(result(emission, plain, original), expected)
    np.testing.assert_array_equal(
        plain.indices, plain_view("", tensor.shape, BATCH, layout).indices
    )


@pytest.mark.parametrize(
    ("name", "arrange", "nodes"),
    [
        ("as it is", lambda t: t, []),
        ("rows as one", lambda t: t.reshape(BATCH, 8, 1, 36), ["Reshape"]),
        ("every third pixel", lambda t: t[:, :, ::3, ::3], ["MaxPool2D"]),
        ("channels turned", lambda t: t[:, ::-1], ["SelectChannels"]),
        ("half of the channels", lambda t: t[:, 4:, ::2, ::2], ["MaxPool2D", "SelectChannels"]),
        ("without the border", lambda t: t[:, :, 1:-1, 1:-1], ["Conv2D"]),
        (
            "squares as channels",
            lambda t: t.reshape(BATCH, 8, 3, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4)
            .reshape(BATCH, 32, 3, 3),
            ["Conv2D"],
        ),
        ("turned over", lambda t: t[:, :, ::-1], ["Reshape", "SelectChannels", "Reshape"]),
    ],
)  # fmt: skip
def test_an_arrangement_takes_the_cheapest_operators(name: str, arrange: Any, nodes: Any) -> None:
    emission, view = start((8, 6, 6))
    plain = relayout(emission, replace(view, indices=arrange(view.indices)), "channels_first", "y")
    assert [type(node.op).__name__ for node in emission.nodes[1:]] == nodes, name
    tensor = np.random.default_rng(1).normal(size=(BATCH, 8, 6, 6)).astype(np.float32)
    expected = np.moveaxis(arrange(tensor), 1, -1)
    np.testing.assert_array_equal(result(emission, plain, tensor), expected)


def test_selected_bits_stay_bits() -> None:
    emission, view = start((8, 4, 4))
    signs = emission.emit(Sign(), ["x"], view.hwc, "signs")
    turned = replace(view, value=signs, indices=view.indices[:, ::-1], quantized=True)
    plain = relayout(emission, turned, "channels_first", "y")
    assert [type(node.op).__name__ for node in emission.nodes[1:]] == [
        "Sign",
        "SelectChannels",
        "Sign",
    ]
    assert plain.quantized
    tensor = np.random.default_rng(2).normal(size=(BATCH, 8, 4, 4)).astype(np.float32)
    assert result(emission, plain, tensor).dtype == np.int8


def test_images_of_one_batch_cannot_be_mixed() -> None:
    _, view = start((2, 4, 4))
    folded = replace(view, indices=view.indices.reshape(1, 4, 4, 4))
    with pytest.raises(UnsupportedError, match="mixes the images"):
        folded.sample()


def test_what_is_too_large_to_gather_is_refused() -> None:
    emission, view = start((2, 1024, 1024))
    with pytest.raises(UnsupportedError, match="at most 1048576"):
        relayout(emission, replace(view, indices=view.indices[:, :, ::-1]), "channels_first", "y")


@pytest.mark.parametrize("shape", [(3, 2, 200_000), (2, 600_000)])
def test_channels_of_large_tensors_move_by_a_kernel(shape: tuple[int, ...]) -> None:
    emission, view = start(shape, "channels_last")  # elements as they are
    plain = relayout(emission, view, "channels_first", "y")
    assert [type(node.op).__name__ for node in emission.nodes[1:]] == ["Reshape", "Conv2D"]
    tensor = np.random.default_rng(1).integers(0, 9, (BATCH, *shape)).astype(np.float32)
    graph = Graph("g", emission.nodes, dict(emission.types), ["x"], [plain.value])
    graph.types = infer(graph)
    x = tensor.reshape(BATCH, *emission.types["x"].shape)
    expected = np.moveaxis(tensor, 1, -1).reshape(BATCH, *plain.hwc)
    np.testing.assert_array_equal(run(graph, {"x": x})[plain.value], expected)
