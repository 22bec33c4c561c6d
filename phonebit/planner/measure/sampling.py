"""Random layers whose times are worth knowing: structured sampling.

Each size is drawn uniformly from an interval [2^k, 2^(k + 1)], and k uniformly before that, so that
small and large layers are equally frequent. Source: Fine-Grained Co-execution (EPEW '25), section
5.2; adapted to the ops of binary networks. The first N layers of a seed are the same whatever is
asked for, so a collection can be made longer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.format.records import OpKind
from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.plan.operators import cuts_channels
from phonebit.planner.predict.kernels import FAMILIES
from phonebit.planner.predict.layer_shape import LayerShape

Random = np.random.Generator
Window = dict[str, Any]
PartPair = tuple[OutputPart | None, OutputPart | None]
"""What the CPU and the GPU compute of a layer in one measurement; None: nothing."""

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
"""Which family comes when, in the shares in which networks spend their time."""
OTHERS_A_CYCLE: Final = 2
"""Behind each cycle, of the families that it does not name, in turn: however many there are, they
take no more of the samples."""

MOST_OPERATIONS: Final = {"bit": 1_000_000_000, "u8": 150_000_000, "f32": 100_000_000}
"""Of a layer, by what it reads; larger ones would only be slower."""
MOST_ELEMENTS: Final = 4_000_000
"""Of a tensor."""
WINDOWS: Final = (
    (3, 1), (3, 1), (3, 1), (3, 2), (1, 1), (1, 1), (1, 2), (5, 1), (5, 2), (7, 1), (7, 2)
)  # fmt: skip
"""Kernel and stride of convolutions, the frequent ones more often."""


def sample_layers(seed: int = 0) -> Iterator[LayerShape]:
    """Layers without end."""
    others = [name for name in FAMILIES if name not in FAMILY_CYCLE]
    samplers = {name: partial(_values, name) for name in others} | _FAMILIES
    for number in itertools.count():
        rng = np.random.default_rng([seed, number])
        cycles, place = divmod(number, len(FAMILY_CYCLE) + OTHERS_A_CYCLE)
        turn = OTHERS_A_CYCLE * cycles + place - len(FAMILY_CYCLE)
        name = FAMILY_CYCLE[place] if place < len(FAMILY_CYCLE) else others[turn % len(others)]
        layer = samplers[name](rng)
        while not _is_moderate(layer):
            layer = samplers[name](rng)
        yield layer


def sample_cuts(layer: LayerShape, count: int, seed: int = 0) -> list[PartPair]:
    """What the CPU and the GPU compute of a layer that is cut, the GPU from its beginning on.

    So many at most in each direction, rows and channels; none where the layer cannot be cut.
    """
    rng = np.random.default_rng([seed, layer.out_h, layer.out_w, layer.out_c, layer.taps])
    cuts: list[PartPair] = []
    if layer.op != "reshape" and layer.out_h > 1:
        places = rng.permutation(np.arange(1, layer.out_h))[:count]
        cuts += [layer.whole.cut(row=int(row))[::-1] for row in sorted(places)]
    if cuts_channels(OpKind[layer.op.upper()], layer.groups):
        places = rng.permutation(np.arange(8, layer.out_c, 8))[:count]
        cuts += [layer.whole.cut(channel=int(channel))[::-1] for channel in sorted(places)]
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
    """Height and width, mostly alike, as those of images are."""
    height = _size(rng, lowest, highest)
    return height, height if rng.random() < 0.75 else _size(rng, lowest, highest)


def _channels(rng: Random, lowest: int = 4, highest: int = 10) -> int:
    """Mostly multiples of 32, else of 8."""
    return _size(rng, lowest, highest, 32 if rng.random() < 0.75 else 8)


def _window(size: tuple[int, int], kernel: int, stride: int, pad: int) -> Window:
    """A square window's fields, and the map that it makes."""
    out_h, out_w = ((side + 2 * pad - kernel) // stride + 1 for side in size)
    return {
        "kernel_h": kernel, "kernel_w": kernel, "stride_h": stride, "stride_w": stride,
        "pad_top": pad, "pad_left": pad, "out_h": out_h, "out_w": out_w,
    }  # fmt: skip


def _covering(size: tuple[int, int]) -> Window:
    """The fields of a window that covers the map."""
    return {"kernel_h": size[0], "kernel_w": size[1], "out_h": 1, "out_w": 1}


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


def _binary(
    rng: Random, size: tuple[int, int], window: Window, least_in: int, least_out: int
) -> LayerShape:
    fields = window | _results(rng, True)
    in_c, out_c = _channels(rng, least_in, 12), _channels(rng, least_out, 12)
    return _layer("binary_conv2d", "bit", size, in_c, out_c, weight_bits=1, **fields)


def _binary_conv(rng: Random) -> LayerShape:
    kernel, stride = WINDOWS[rng.integers(len(WINDOWS))]
    size = _map(rng)
    return _binary(rng, size, _window(size, kernel, stride, kernel // 2), 5, 4)


def _binary_linear(rng: Random) -> LayerShape:
    """Many rows at once: a 1x1 convolution of a map with one column."""
    size = _size(rng, 4, 12), 1
    return _binary(rng, size, _window(size, 1, 1, 0), 4, 4)


def _binary_dense(rng: Random) -> LayerShape:
    size = (1, 1) if rng.random() < 0.5 else (int(rng.integers(2, 8)),) * 2
    return _binary(rng, size, _covering(size), 6, 6)


def _depthwise(op: str, dtype: str, rng: Random) -> LayerShape:
    is_binary = dtype == "bit"
    size, channels = _map(rng), _channels(rng, 5) if is_binary else _channels(rng, 4, 9)
    fields = _window(size, 3, int(rng.integers(1, 3)), 1) | _results(rng, is_binary)
    groups, bits = (1, 1) if is_binary else (channels, 32)
    return _layer(op, dtype, size, channels, channels, groups=groups, weight_bits=bits, **fields)


def _u8_conv(rng: Random) -> LayerShape:
    kernel, stride = ((3, 1), (3, 2), (5, 2), (7, 2), (11, 4))[rng.integers(5)]
    size = _map(rng, 4, 8)
    fields = _window(size, kernel, stride, kernel // 2) | _results(rng, True)
    fields |= {"weight_bits": 1, "input_add": -255}
    return _layer("conv2d", "u8", size, 3, _channels(rng, 4, 8), **fields)


def _float_conv(rng: Random) -> LayerShape:
    kernel, stride = ((1, 1), (3, 1), (3, 2), (5, 1))[rng.integers(4)]
    size = _map(rng)
    in_c = 3 if rng.random() < 0.2 else _channels(rng, 4, 9)
    fields = _window(size, kernel, stride, kernel // 2) | _results(rng, False)
    return _layer("conv2d", "f32", size, in_c, _channels(rng, 4, 9), weight_bits=32, **fields)


def _float_dense(rng: Random) -> LayerShape:
    in_c, out_c = _channels(rng, 5, 12), _size(rng, 3, 11)
    return _layer("conv2d", "f32", (1, 1), in_c, out_c, values=True, steps=1, weight_bits=32)


def _float_grouped(rng: Random) -> LayerShape:
    size, groups = _map(rng, 2, 6), int(rng.choice([2, 4, 8]))
    channels = groups * _size(rng, 3, 6, 8)
    fields = _window(size, 3, 1, 1) | _results(rng, False) | {"groups": groups, "weight_bits": 32}
    return _layer("conv2d", "f32", size, channels, channels, **fields)


def _pool(op: str, dtype: str, rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 8), _channels(rng, 4, 9)
    window = _window(size, *((2, 2), (2, 2), (3, 2), (3, 1))[rng.integers(4)], 0)
    if op == "average_pool2d" and rng.random() < 0.5:
        window = _covering(size)
    makes = {"bits": True} if dtype == "bit" else {"values": True}
    return _layer(op, dtype, size, channels, channels, **window, **makes)


def _elementwise(rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 8), _channels(rng, 4, 9)
    dtype = "f32" if rng.random() < 0.75 else "u8"
    return _layer("elementwise", dtype, size, channels, channels, **_results(rng, False))


def _elementwise_bits(rng: Random) -> LayerShape:
    size, channels = _map(rng, 2, 8), _channels(rng, 5, 10)
    return _layer("elementwise", "f32", size, channels, channels, bits=True)


def _concat(dtype: str, rng: Random) -> LayerShape:
    size = _map(rng)
    channels = tuple(_channels(rng, 4, 8) for _ in range(int(rng.integers(2, 5))))
    makes = {"bits": True} if dtype == "bit" else {"values": True}
    more = {"operand_channels": channels, **makes}
    return _layer("concat", dtype, size, channels[0], sum(channels), **more)


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


def _softmax(op: str, rng: Random) -> LayerShape:
    size = (1, 1) if rng.random() < 0.5 else _map(rng, 2, 5)
    channels = _size(rng, 3, 11)
    return _layer(op, "f32", size, channels, channels, values=True)


def _product(op: str, dtype: str, rng: Random) -> LayerShape:
    """As in attention: each pixel with each, or with as many vectors."""
    pixels, groups, depth = _size(rng, 3, 9), int(rng.choice([1, 4, 8])), _size(rng, 4, 7, 8)
    channels, columns = groups * depth, groups * pixels
    in_c, out_c = (columns, channels) if op == "matmul" else (channels, columns)
    more = {"operand_channels": (in_c, channels), "groups": groups, "values": True}
    return _layer(op, dtype, (1, pixels), in_c, out_c, **more)


def _bit_planes(rng: Random) -> LayerShape:
    channels = _channels(rng, 4, 8)
    planes = int(rng.integers(2, 9))
    return _layer("bit_planes", "f32", _map(rng), channels, channels, bits=True, planes=planes)


def _values(op: str, rng: Random) -> LayerShape:
    """An op that makes a map of floats of one, of any size."""
    size, channels = _map(rng), _channels(rng, 4, 8)
    out_h, out_w = (int(rng.integers(1, 2 * side + 1)) for side in size)
    return _layer(op, "f32", size, channels, channels, out_h=out_h, out_w=out_w, values=True)


_FAMILIES: Final[dict[str, Callable[[Random], LayerShape]]] = {
    "binary_linear": _binary_linear,
    "binary_conv2d": _binary_conv,
    "binary_dense": _binary_dense,
    "binary_depthwise_conv2d": partial(_depthwise, "binary_depthwise_conv2d", "bit"),
    "conv2d_u8": _u8_conv,
    "conv2d_f32": _float_conv,
    "conv2d_f32_dense": _float_dense,
    "conv2d_f32_grouped": _float_grouped,
    "depthwise_conv2d_f32": partial(_depthwise, "conv2d", "f32"),
    "max_pool2d": partial(_pool, "max_pool2d", "f32"),
    "max_pool2d_bits": partial(_pool, "max_pool2d", "bit"),
    "average_pool2d": partial(_pool, "average_pool2d", "f32"),
    "bit_planes": _bit_planes,
    "elementwise": _elementwise,
    "elementwise_bits": _elementwise_bits,
    "concat": partial(_concat, "f32"),
    "concat_bits": partial(_concat, "bit"),
    "pad": _pad,
    "reshape": _reshape,
    "select_channels": _select_channels,
    "softmax": partial(_softmax, "softmax"),
    "log_softmax": partial(_softmax, "log_softmax"),
    "matmul": partial(_product, "matmul", "f32"),
    "matmul_transposed": partial(_product, "matmul_transposed", "f32"),
    "matmul_bits": partial(_product, "matmul_transposed", "bit"),
}
