"""Random layers whose times are worth knowing: structured sampling.

Each size is drawn uniformly from an interval [2^k, 2^(k + 1)], and k uniformly before that, so that
small and large layers are equally frequent. Source: Fine-Grained Co-execution (EPEW '25), section
5.2; adapted to the ops of binary networks. The first N layers of a seed are the same whatever is
asked for, so a collection can be made longer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.kernels import FAMILIES
from phonebit.planner.predict.layer_shape import LayerShape

Random = np.random.Generator
Size = tuple[int, int]
"""Height and width."""
Fields = dict[str, Any]
"""Of a ``LayerShape``."""
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
"""After each cycle, of the families that it does not name, in turn: however many there are, they
take no more of the samples."""

MAX_OPERATIONS: Final = {"bit": 1_000_000_000, "u8": 150_000_000, "f32": 100_000_000}
"""Of a layer, by what it reads; larger ones would only be slower."""
MAX_ELEMENTS: Final = 4_000_000
"""Of a tensor."""
WINDOWS: Final = (
    (3, 1), (3, 1), (3, 1), (3, 2), (1, 1), (1, 1), (1, 2), (5, 1), (5, 2), (7, 1), (7, 2)
)  # fmt: skip
"""Kernel and stride of convolutions, the frequent ones more often."""


def sample_layers(seed: int = 0) -> Iterator[LayerShape]:
    """Layers without end."""
    others = [name for name in FAMILIES if name not in FAMILY_CYCLE]
    for number in itertools.count():
        rng = np.random.default_rng([seed, number])
        cycles, place = divmod(number, len(FAMILY_CYCLE) + OTHERS_A_CYCLE)
        turn = OTHERS_A_CYCLE * cycles + place - len(FAMILY_CYCLE)
        name = FAMILY_CYCLE[place] if place < len(FAMILY_CYCLE) else others[turn % len(others)]
        layer = _sample(name, rng)
        while not _is_moderate(layer):
            layer = _sample(name, rng)
        yield layer


def sample_cuts(layer: LayerShape, count: int, seed: int = 0) -> list[PartPair]:
    """What the CPU and the GPU compute of a layer that is cut, the GPU from its beginning on.

    So many at most in each direction, rows and channels; none where the layer cannot be cut.
    """
    rng = np.random.default_rng([seed, layer.out_h, layer.out_w, layer.out_c, layer.taps])
    cuts: list[PartPair] = []
    if layer.can_cut_rows:
        places = rng.permutation(np.arange(1, layer.out_h))[:count]
        cuts += [layer.whole.cut(row=int(row))[::-1] for row in sorted(places)]
    if layer.can_cut_channels:
        places = rng.permutation(np.arange(8, layer.out_c, 8))[:count]
        cuts += [layer.whole.cut(channel=int(channel))[::-1] for channel in sorted(places)]
    return cuts


def _is_moderate(layer: LayerShape) -> bool:
    elements = max(
        layer.in_h * layer.in_w * sum(layer.operand_channels),
        layer.out_h * layer.out_w * layer.out_c,
    )
    return layer.operations(layer.whole) <= MAX_OPERATIONS[layer.input] and elements <= MAX_ELEMENTS


def _size(rng: Random, lowest: int, highest: int, multiple: int = 1) -> int:
    """Uniform in [2^k, 2^(k + 1)], with k uniform in lowest .. highest - 1."""
    k = int(rng.integers(lowest, highest))
    value = int(rng.integers(2**k, 2 ** (k + 1) + 1))
    return max(multiple, round(value / multiple) * multiple)


def _map(rng: Random, lowest: int = 2, highest: int = 7) -> Size:
    """Height and width, mostly alike, as those of images are."""
    height = _size(rng, lowest, highest)
    return height, height if rng.random() < 0.75 else _size(rng, lowest, highest)


def _channels(rng: Random, lowest: int = 4, highest: int = 10) -> int:
    """Mostly multiples of 32, else of 8."""
    return _size(rng, lowest, highest, 32 if rng.random() < 0.75 else 8)


def _window(size: Size, kernel: int, stride: int, pad: int) -> Fields:
    """A square window's fields, and the map that it makes."""
    out_h, out_w = ((side + 2 * pad - kernel) // stride + 1 for side in size)
    return {
        "kernel_h": kernel, "kernel_w": kernel, "stride_h": stride, "stride_w": stride,
        "pad_top": pad, "pad_left": pad, "out_h": out_h, "out_w": out_w,
    }  # fmt: skip


def _map_and_window(
    rng: Random, windows: Sequence[tuple[int, int]], lowest: int = 2, highest: int = 7
) -> tuple[Size, Fields]:
    """A map, and one of some windows, a kernel and a stride each, padded by half of the kernel."""
    kernel, stride = windows[int(rng.integers(len(windows)))]
    size = _map(rng, lowest, highest)
    return size, _window(size, kernel, stride, kernel // 2)


def _covering(size: Size) -> Fields:
    """The fields of a window that covers the map."""
    return {"kernel_h": size[0], "kernel_w": size[1], "out_h": 1, "out_w": 1}


def _results(rng: Random, can_compare: bool) -> Fields:
    """What a convolution makes: bits by thresholds, or values through an epilogue, or both."""
    if can_compare and rng.random() < 0.5:
        return {"values": False, "bits": True, "thresholds": True}
    adds = int(rng.random() < 0.3)
    return {
        "values": True, "bits": bool(rng.random() < 0.5), "steps": 1 + adds, "step_tensors": adds,
    }  # fmt: skip


def _layer(op: str, dtype: str, size: Size, in_c: int, **more: Any) -> LayerShape:
    """A layer whose result is like its operand where ``more`` does not say otherwise."""
    fields = {
        "out_h": size[0], "out_w": size[1], "out_c": in_c, "operand_channels": (in_c,),
        "values": dtype != "bit", "bits": dtype == "bit",
    }  # fmt: skip
    return LayerShape(
        op=op, input=dtype, in_h=size[0], in_w=size[1], in_c=in_c, **{**fields, **more}
    )


def _binary(rng: Random, size: Size, window: Fields, min_in: int, min_out: int) -> LayerShape:
    more = window | _results(rng, True)
    in_c, out_c = _channels(rng, min_in, 12), _channels(rng, min_out, 12)
    return _layer("binary_conv2d", "bit", size, in_c, out_c=out_c, weight_bits=1, **more)


def _sample(family: str, rng: Random) -> LayerShape:
    """A random layer of a family: convolutions here."""
    match family:
        case "binary_conv2d":
            size, window = _map_and_window(rng, WINDOWS)
            return _binary(rng, size, window, 5, 4)
        case "binary_linear":  # many rows at once: a 1x1 convolution of a map with one column
            size = _size(rng, 4, 12), 1
            return _binary(rng, size, _window(size, 1, 1, 0), 4, 4)
        case "binary_dense":
            size = (1, 1) if rng.random() < 0.5 else (int(rng.integers(2, 8)),) * 2
            return _binary(rng, size, _covering(size), 6, 6)
        case "binary_depthwise_conv2d":
            size, channels = _map(rng), _channels(rng, 5)
            more = _window(size, 3, int(rng.integers(1, 3)), 1) | _results(rng, True)
            return _layer(family, "bit", size, channels, weight_bits=1, **more)
        case "conv2d_u8":
            size, window = _map_and_window(rng, ((3, 1), (3, 2), (5, 2), (7, 2), (11, 4)), 4, 8)
            more = window | _results(rng, True) | {"out_c": _channels(rng, 4, 8)}
            return _layer("conv2d", "u8", size, 3, weight_bits=1, input_add=-255, **more)
        case "conv2d_f32":
            size, more = _map_and_window(rng, ((1, 1), (3, 1), (3, 2), (5, 1)))
            in_c = 3 if rng.random() < 0.2 else _channels(rng, 4, 9)
            more |= _results(rng, False) | {"out_c": _channels(rng, 4, 9)}
        case "conv2d_f32_dense":
            size, in_c = (1, 1), _channels(rng, 5, 12)
            more = {"out_c": _size(rng, 3, 11), "steps": 1}
        case "conv2d_f32_grouped":
            size, groups = _map(rng, 2, 6), int(rng.choice([2, 4, 8]))
            in_c = groups * _size(rng, 3, 6, 8)
            more = _window(size, 3, 1, 1) | _results(rng, False) | {"groups": groups}
        case "depthwise_conv2d_f32":
            size, in_c = _map(rng), _channels(rng, 4, 9)
            more = _window(size, 3, int(rng.integers(1, 3)), 1) | _results(rng, False)
            more |= {"groups": in_c}
        case _:
            return _sample_without_filters(family, rng)
    return _layer("conv2d", "f32", size, in_c, weight_bits=32, **more)


def _sample_without_filters(family: str, rng: Random) -> LayerShape:
    """Of the other families."""
    op, dtype = family.removesuffix("_bits"), "bit" if family.endswith("_bits") else "f32"
    more: Fields = {}
    match family:
        case "max_pool2d" | "max_pool2d_bits" | "average_pool2d":
            size, in_c = _map(rng, 2, 8), _channels(rng, 4, 9)
            more = _window(size, *((2, 2), (2, 2), (3, 2), (3, 1))[rng.integers(4)], 0)
            if op == "average_pool2d" and rng.random() < 0.5:
                more = _covering(size)
        case "elementwise":
            size, in_c = _map(rng, 2, 8), _channels(rng, 4, 9)
            dtype = "f32" if rng.random() < 0.75 else "u8"
            more = _results(rng, False)
        case "elementwise_bits":
            size, in_c = _map(rng, 2, 8), _channels(rng, 5, 10)
            dtype, more = "f32", {"values": False, "bits": True}
        case "bit_planes":
            in_c, planes = _channels(rng, 4, 8), int(rng.integers(2, 9))
            size, more = _map(rng), {"values": False, "bits": True, "planes": planes}
        case "concat" | "concat_bits":
            size = _map(rng)
            operands = tuple(_channels(rng, 4, 8) for _ in range(int(rng.integers(2, 5))))
            in_c, more = operands[0], {"operand_channels": operands, "out_c": sum(operands)}
        case "pad":
            size, in_c = _map(rng), _channels(rng, 4, 8)
            more = _window(size, 1, 1, int(rng.integers(1, 4)))
        case "reshape":
            size, in_c = _map(rng, 2, 5), _channels(rng, 4, 7)
            more = {"out_h": 1, "out_w": 1, "out_c": size[0] * size[1] * in_c}
        case "select_channels":
            size, in_c = _map(rng), _channels(rng, 4, 8)
            more = {"out_c": _channels(rng, 4, 8), "weight_bits": 32}
        case "softmax" | "log_softmax":
            size = (1, 1) if rng.random() < 0.5 else _map(rng, 2, 5)
            in_c = _size(rng, 3, 11)
        case "matmul" | "matmul_transposed" | "matmul_bits":
            # As in attention: each pixel with each, or with as many vectors.
            pixels, groups = _size(rng, 3, 9), int(rng.choice([1, 4, 8]))
            depth, columns = groups * _size(rng, 4, 7, 8), groups * pixels
            op, size, in_c, out_c = "matmul_transposed", (1, pixels), depth, columns
            if family == "matmul":
                op, in_c, out_c = family, columns, depth
            more = {"operand_channels": (in_c, depth), "out_c": out_c, "groups": groups}
            more |= {"values": True, "bits": False}
        case _:  # makes a map of floats of one, of any size
            size, in_c = _map(rng), _channels(rng, 4, 8)
            out_h, out_w = (int(rng.integers(1, 2 * side + 1)) for side in size)
            more = {"out_h": out_h, "out_w": out_w}
    return _layer(op, dtype, size, in_c, **more)
