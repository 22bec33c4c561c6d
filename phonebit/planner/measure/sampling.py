"""Random layers whose times are worth knowing: structured sampling.

Each size is drawn uniformly from an interval [2^k, 2^(k + 1)], and k uniformly before that, so that
small and large layers are equally frequent. Source: Fine-Grained Co-execution (EPEW '25), section
5.2; adapted to the ops of binary networks. The first N layers of a seed are the same whatever is
asked for, so a collection can be made longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.kernels import FAMILIES
from phonebit.planner.predict.layer_shape import LayerShape

Random = np.random.Generator

FAMILY_CYCLE: Final = (
    "binary_conv2d", "binary_linear", "conv2d_u8", "binary_conv2d", "binary_dense",
    "binary_conv2d", "conv2d_f32", "binary_linear", "max_pool2d_bits", "binary_conv2d",
    "elementwise", "binary_linear", "conv2d_f32_dense", "binary_conv2d", "max_pool2d",
    "binary_linear", "average_pool2d", "conv2d_f32", "binary_dense", "elementwise_bits",
    "binary_linear", "binary_depthwise_conv2d", "concat_bits", "binary_conv2d", "conv2d_u8",
    "depthwise_conv2d_f32", "binary_conv2d", "concat", "softmax", "binary_conv2d",
    "pad", "select_channels", "binary_conv2d", "reshape", "log_softmax",
    "binary_conv2d", "conv2d_f32_grouped", "conv2d_u8", "binary_conv2d", "conv2d_f32",
)  # fmt: skip
"""Which family comes when, in the shares in which networks spend their time; behind them come those
that this does not name, once each."""

MOST_OPERATIONS: Final = {"bit": 1_000_000_000, "u8": 150_000_000, "f32": 100_000_000}
"""Of a layer, by what it reads; larger ones would only be slower."""
MOST_ELEMENTS: Final = 4_000_000
"""Of a tensor."""
WINDOWS: Final = (
    (3, 1), (3, 1), (3, 1), (3, 2), (1, 1), (1, 1), (1, 2), (5, 1), (5, 2), (7, 1), (7, 2)
)  # fmt: skip
"""Kernel and stride of convolutions, the frequent ones more often."""


def sample_layers(seed: int = 0) -> Iterator[LayerShape]:
    """Layers without end.

    Args:
        seed: Another one gives other layers.
    """
    number = 0
    others = {name: _values(name) for name in FAMILIES if name not in _FAMILIES}
    samplers, cycle = _FAMILIES | others, (*FAMILY_CYCLE, *others)
    while True:
        rng = np.random.default_rng([seed, number])
        name = cycle[number % len(cycle)]
        layer = samplers[name](rng)
        while not _is_moderate(layer):
            layer = samplers[name](rng)
        yield layer
        number += 1


def sample_cuts(layer: LayerShape, count: int, seed: int = 0) -> list[OutputPart]:
    """Parts from a layer's first row and channel on, as GPUs get them.

    Args:
        layer: The layer.
        count: Most parts in each direction, rows and channels.
        seed: Of the places.

    Returns:
        The parts, none of them whole; none where the layer cannot be cut.
    """
    rng = np.random.default_rng([seed, layer.out_h, layer.out_w, layer.out_c, layer.taps])
    cuts = []
    if layer.op != "reshape" and layer.out_h > 1:
        places = rng.permutation(np.arange(1, layer.out_h))[:count]
        cuts += [OutputPart(0, int(row), 0, layer.out_c) for row in sorted(places)]
    if layer.op in ("binary_conv2d", "conv2d") and layer.groups == 1:
        places = rng.permutation(np.arange(8, layer.out_c, 8))[:count]
        cuts += [OutputPart(0, layer.out_h, 0, int(channel)) for channel in sorted(places)]
    return cuts


def _is_moderate(layer: LayerShape) -> bool:
    elements = max(
        layer.in_h * layer.in_w * sum(layer.operand_channels),
        layer.out_h * layer.out_w * layer.out_c,
    )
    return (
        layer.operations(layer.whole) <= MOST_OPERATIONS[layer.input] and elements <= MOST_ELEMENTS
    )


def _size(rng: Random, lowest: int, highest: int, multiple: int = 1) -> int:
    """Uniform in [2^k, 2^(k + 1)], with k uniform in lowest .. highest - 1."""
    k = int(rng.integers(lowest, highest))
    value = int(rng.integers(2**k, 2 ** (k + 1) + 1))
    return max(multiple, round(value / multiple) * multiple)


def _map(rng: Random, lowest: int = 2, highest: int = 7) -> tuple[int, int]:
    """Height and width, mostly alike, as those of pictures are."""
    height = _size(rng, lowest, highest)
    return height, height if rng.random() < 0.75 else _size(rng, lowest, highest)


def _channels(rng: Random, lowest: int = 4, highest: int = 10) -> int:
    """Mostly multiples of 32, else of 8."""
    return _size(rng, lowest, highest, 32 if rng.random() < 0.75 else 8)


def _window(size: tuple[int, int], kernel: int, stride: int, pad: int) -> dict[str, int]:
    """A square window's fields, and the map that it makes."""
    out_h, out_w = ((side + 2 * pad - kernel) // stride + 1 for side in size)
    return {
        "kernel_h": kernel, "kernel_w": kernel, "stride_h": stride, "stride_w": stride,
        "pad_top": pad, "pad_left": pad, "out_h": out_h, "out_w": out_w,
    }  # fmt: skip


def _layer(
    op: str, dtype: str, size: tuple[int, int], in_c: int, out_c: int, **more: Any
) -> LayerShape:
    fields = {
        "in_h": size[0], "in_w": size[1], "out_h": size[0], "out_w": size[1],
        "operand_channels": (in_c,),
    }  # fmt: skip
    return LayerShape(op=op, input=dtype, in_c=in_c, out_c=out_c, **{**fields, **more})


def _results(rng: Random, can_compare: bool) -> dict[str, Any]:
    """What a convolution makes: bits by thresholds, or values through an epilogue, or both."""
    if can_compare and rng.random() < 0.5:
        return {"bits": True, "thresholds": True}
    adds = int(rng.random() < 0.3)
    return {
        "values": True, "bits": bool(rng.random() < 0.5), "steps": 1 + adds, "step_tensors": adds,
    }  # fmt: skip


def _binary_conv(rng: Random) -> LayerShape:
    kernel, stride = WINDOWS[rng.integers(len(WINDOWS))]
    size = _map(rng)
    window = _window(size, kernel, stride, kernel // 2)
    more = {**window, **_results(rng, True), "weight_bits": 1}
    in_c, out_c = _channels(rng, 5, 12), _channels(rng, 4, 12)
    return _layer("binary_conv2d", "bit", size, in_c, out_c, **more)


def _binary_linear(rng: Random) -> LayerShape:
    """Many rows at once: a 1x1 convolution of a map with one column."""
    size = _size(rng, 4, 12), 1
    more = {**_window(size, 1, 1, 0), **_results(rng, True), "weight_bits": 1}
    in_c, out_c = _channels(rng, 4, 12), _channels(rng, 4, 12)
    return _layer("binary_conv2d", "bit", size, in_c, out_c, **more)


def _binary_dense(rng: Random) -> LayerShape:
    size = (1, 1) if rng.random() < 0.5 else (int(rng.integers(2, 8)),) * 2
    window = _window(size, 1, 1, 0) | {
        "kernel_h": size[0],
        "kernel_w": size[1],
        "out_h": 1,
        "out_w": 1,
    }
    more = {**window, **_results(rng, True), "weight_bits": 1}
    return _layer(
        "binary_conv2d", "bit", size, _channels(rng, 6, 12), _channels(rng, 6, 12), **more
    )


def _binary_depthwise(rng: Random) -> LayerShape:
    size, channels = _map(rng), _channels(rng, 5)
    window = _window(size, 3, int(rng.integers(1, 3)), 1)
    more = {**window, **_results(rng, True), "weight_bits": 1}
    return _layer("binary_depthwise_conv2d", "bit", size, channels, channels, **more)


def _u8_conv(rng: Random) -> LayerShape:
    kernel, stride = ((3, 1), (3, 2), (5, 2), (7, 2), (11, 4))[rng.integers(5)]
    size = _map(rng, 4, 8)
    size = max(size[0], kernel), max(size[1], kernel)
    window = _window(size, kernel, stride, kernel // 2)
    more = {**window, **_results(rng, True), "weight_bits": 1, "input_add": -255}
    return _layer("conv2d", "u8", size, 3, _channels(rng, 4, 8), **more)


def _float_conv(rng: Random) -> LayerShape:
    kernel, stride = ((1, 1), (3, 1), (3, 2), (5, 1))[rng.integers(4)]
    size = _map(rng)
    in_c = 3 if rng.random() < 0.2 else _channels(rng, 4, 9)
    more = {**_window(size, kernel, stride, kernel // 2), **_results(rng, False), "weight_bits": 32}
    return _layer("conv2d", "f32", size, in_c, _channels(rng, 4, 9), **more)


def _float_dense(rng: Random) -> LayerShape:
    more = {"values": True, "steps": 1, "weight_bits": 32}
    return _layer("conv2d", "f32", (1, 1), _channels(rng, 5, 12), _size(rng, 3, 11), **more)


def _float_grouped(rng: Random) -> LayerShape:
    size, groups = _map(rng, 2, 6), int(rng.choice([2, 4, 8]))
    channels = groups * _size(rng, 3, 6, 8)
    more = {**_window(size, 3, 1, 1), **_results(rng, False), "groups": groups, "weight_bits": 32}
    return _layer("conv2d", "f32", size, channels, channels, **more)


def _float_depthwise(rng: Random) -> LayerShape:
    size, channels = _map(rng), _channels(rng, 4, 9)
    window = _window(size, 3, int(rng.integers(1, 3)), 1)
    more = {**window, **_results(rng, False), "groups": channels, "weight_bits": 32}
    return _layer("conv2d", "f32", size, channels, channels, **more)


def _pool(op: str, dtype: str) -> Callable[[Random], LayerShape]:
    def make(rng: Random) -> LayerShape:
        size, channels = _map(rng, 2, 8), _channels(rng, 4, 9)
        kernel, stride = ((2, 2), (2, 2), (3, 2), (3, 1))[rng.integers(4)]
        if op == "average_pool2d" and rng.random() < 0.5:
            window = _window(size, 1, 1, 0) | {
                "kernel_h": size[0], "kernel_w": size[1], "out_h": 1, "out_w": 1,
            }  # fmt: skip
        else:
            window = _window(size, kernel, stride, 0)
        makes = {"bits": True} if dtype == "bit" else {"values": True}
        return _layer(op, dtype, size, channels, channels, **window, **makes)

    return make


def _elementwise(rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 8), _channels(rng, 4, 9)
    dtype = "f32" if rng.random() < 0.75 else "u8"
    return _layer("elementwise", dtype, size, channels, channels, **_results(rng, False))


def _elementwise_bits(rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 8), _channels(rng, 5, 10)
    return _layer("elementwise", "f32", size, channels, channels, bits=True)


def _concat(dtype: str) -> Callable[[Random], LayerShape]:
    def make(rng: Random) -> LayerShape:
        size = _map(rng)
        channels = tuple(_channels(rng, 4, 8) for _ in range(int(rng.integers(2, 5))))
        makes = {"bits": True} if dtype == "bit" else {"values": True}
        more = {"operand_channels": channels, **makes}
        return _layer("concat", dtype, size, channels[0], sum(channels), **more)

    return make


def _pad(rng: Random) -> LayerShape:
    size, channels, pad = _map(rng), _channels(rng, 4, 8), int(rng.integers(1, 4))
    more = {"out_h": size[0] + 2 * pad, "out_w": size[1] + 2 * pad, "values": True}
    return _layer("pad", "f32", size, channels, channels, pad_top=pad, pad_left=pad, **more)


def _reshape(rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 5), _channels(rng, 4, 7)
    flat = size[0] * size[1] * channels
    return _layer("reshape", "f32", size, channels, flat, out_h=1, out_w=1, values=True)


def _select_channels(rng: Random) -> LayerShape:
    size, channels = _map(rng), _channels(rng, 4, 8)
    more = {"values": True, "weight_bits": 32}
    return _layer("select_channels", "f32", size, channels, _channels(rng, 4, 8), **more)


def _softmax(op: str) -> Callable[[Random], LayerShape]:
    def make(rng: Random) -> LayerShape:
        size = (1, 1) if rng.random() < 0.5 else _map(rng, 2, 5)
        channels = _size(rng, 3, 11)
        return _layer(op, "f32", size, channels, channels, values=True)

    return make


def _values(op: str) -> Callable[[Random], LayerShape]:
    """An op that makes a map of floats of one, of any size."""

    def make(rng: Random) -> LayerShape:
        size, channels = _map(rng), _channels(rng, 4, 8)
        out_h, out_w = (int(rng.integers(1, 2 * side + 1)) for side in size)
        return _layer(op, "f32", size, channels, channels, out_h=out_h, out_w=out_w, values=True)

    return make


_FAMILIES: Final[dict[str, Callable[[Random], LayerShape]]] = {
    "binary_linear": _binary_linear,
    "binary_conv2d": _binary_conv,
    "binary_dense": _binary_dense,
    "binary_depthwise_conv2d": _binary_depthwise,
    "conv2d_u8": _u8_conv,
    "conv2d_f32": _float_conv,
    "conv2d_f32_dense": _float_dense,
    "conv2d_f32_grouped": _float_grouped,
    "depthwise_conv2d_f32": _float_depthwise,
    "max_pool2d": _pool("max_pool2d", "f32"),
    "max_pool2d_bits": _pool("max_pool2d", "bit"),
    "average_pool2d": _pool("average_pool2d", "f32"),
    "elementwise": _elementwise,
    "elementwise_bits": _elementwise_bits,
    "concat": _concat("f32"),
    "concat_bits": _concat("bit"),
    "pad": _pad,
    "reshape": _reshape,
    "select_channels": _select_channels,
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
}
