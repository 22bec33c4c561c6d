"""The windows of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.element_positions import UnsupportedError

Sizes = tuple[int, ...]
LIMIT: Final = 1 << 16


def window_of(
    node: Node, kernel: Sequence[int] = (), maximum: int = 2
) -> tuple[Sizes, Sizes, Sizes]:
    """Kernel, strides and dilations of a node, of at most ``maximum`` axes.

    Raises:
        UnsupportedError: They are no positive sizes for the same axes.
    """
    size = tuple(node.get("kernel_shape", kernel))
    strides = tuple(node.get("strides") or [1] * len(size))
    dilation = tuple(node.get("dilations") or [1] * len(size))
    sizes = (*size, *strides, *dilation)
    same = len(size) == len(strides) == len(dilation)
    if not same or not 1 <= len(size) <= maximum or not all(0 < n < LIMIT for n in sizes):
        raise UnsupportedError(
            f"has a window of {size} with strides {strides} and dilations {dilation}; expected 1 "
            f"to {maximum} axes"
        )
    return size, strides, dilation


def pads_of(
    node: Node, size: Sizes, kernel: Sizes, strides: Sizes, dilation: Sizes
) -> tuple[int, ...]:
    """Zeros around a map: those in front of each axis, then those after it.

    Raises:
        UnsupportedError: There are too many, negative ones, or they are chosen in an unknown way.
    """
    mode = node.get("auto_pad", "NOTSET")
    pads = list(node.get("pads") or [0] * (2 * len(kernel)))
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        total = [
            max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            for n, k, s, d in zip(size, kernel, strides, dilation, strict=True)
        ]
        small, large = [n // 2 for n in total], [n - n // 2 for n in total]
        pads = [*small, *large] if mode == "SAME_UPPER" else [*large, *small]
    elif mode == "VALID":
        pads = [0] * (2 * len(kernel))
    elif mode not in ("NOTSET", ""):
        raise UnsupportedError(f"has auto_pad={mode!r}")
    if len(pads) != 2 * len(kernel) or not all(0 <= n < LIMIT for n in pads):
        raise UnsupportedError(f"has pads {pads}")
    return tuple(pads)


def output_size(
    size: Sizes,
    kernel: Sizes,
    strides: Sizes,
    dilation: Sizes,
    pads: tuple[int, ...],
    ceil: bool = False,
) -> Sizes:
    """How many windows lie along each axis.

    Raises:
        UnsupportedError: None does.
    """
    result = []
    axes = len(kernel)
    for axis in range(axes if len(size) == axes else 0):
        room = size[axis] + pads[axis] + pads[axis + axes]
        room -= (kernel[axis] - 1) * dilation[axis] + 1
        count = room // strides[axis] + 1
        if ceil and room % strides[axis] and room >= 0:
            # A further window must begin in the map or in what is in front of it.
            count += count * strides[axis] < size[axis] + pads[axis]
        result.append(count)
    if min(result, default=0) < 1:
        raise UnsupportedError(f"has a window of {kernel} on a map of {size} with pads {pads}")
    return tuple(result)
