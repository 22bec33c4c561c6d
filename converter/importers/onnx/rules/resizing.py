"""Maps of another size.

Sizes and places follow from factors in float32, as in PyTorch and ONNX Runtime: ten
pixels times 0.7 are seven, although the float32 next to 0.7 is below it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.moving import axis_of, taken
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.ir import FloatArray

LIMIT: Final = 1 << 16
CORNERS: Final = {"half_pixel": False, "pytorch_half_pixel": False, "align_corners": True}
"""Coordinates of interpolation that the engine has, and whether corners are aligned."""
SMOOTH: Final = {"linear": "upsample_bilinear2d", "cubic": "upsample_bicubic2d"}


def resize(builder: Builder, node: Node) -> Call:
    """Resize and Upsample: the nearest pixels of any map, interpolation of (N, C, H, W).

    Raises:
        UnsupportedError: The interpolation is another one.
    """
    call = node.operand(0)
    size, scales = _sizes(builder, node, call)
    mode = node.get("mode", "nearest")
    old_rules = node.op == "Upsample" or node.version < 11
    place = "asymmetric" if old_rules else node.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest" and size == list(call.shape):
        return call  # whatever the factor, as in PyTorch and ONNX Runtime
    if mode == "nearest":
        rounding = "floor" if old_rules else node.get("nearest_mode", "round_prefer_floor")
        for axis, (old, new) in enumerate(zip(call.shape, size, strict=True)):
            where = _places(place, old, new, scales[axis])
            positions = np.clip(_rounded(where, rounding), 0, old - 1)
            call = taken(builder, call, positions.tolist(), axis, "upsample_nearest2d")
        return call
    corners = CORNERS.get(place)
    is_other_cubic = node.get("cubic_coeff_a", -0.75) != -0.75 or node.get("exclude_outside", 0)
    if mode not in SMOOTH or corners is None or node.get("antialias", 0) or is_other_cubic:
        raise UnsupportedError(
            f"interpolates in mode {mode!r} with coordinates {place!r}; expected 'nearest', or "
            f"'linear' or 'cubic' of a = -0.75 with one of {', '.join(CORNERS)}"
        )
    if len(size) != 4 or size[:2] != list(call.shape[:2]):
        raise UnsupportedError(f"interpolates {call.shape} to {tuple(size)}")
    for old, new, scale in zip(call.shape[2:], size[2:], scales[2:], strict=True):
        if not corners and scale * np.float32(old) != new:
            raise UnsupportedError(f"makes {new} of {old} pixels by a scale of {scale:g}")
    arguments = {"self": call, "align_corners": corners, "scale_factors": [None, None]}
    return builder.emit(SMOOTH[mode], arguments, None, size)


def _sizes(builder: Builder, node: Node, call: Call) -> tuple[list[int], list[np.float32]]:
    """The result's shape and the scales, for all axes."""
    first = 1 if node.op == "Upsample" or node.version < 11 else 2
    scales_input, sizes_input = node.input(first), node.input(first + 1)
    given = node.get("axes")
    rank = len(call.shape)
    axes = list(range(rank)) if given is None else [axis_of(axis, rank) for axis in given]
    sizes, scales = list(call.shape), [np.float32(1)] * rank
    if sizes_input is not None:
        wanted = builder.integers(sizes_input, "sizes")
        if len(wanted) != len(axes) or node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise UnsupportedError(f"has sizes {wanted} for {len(axes)} axes, or another policy")
        for axis, new in zip(axes, wanted, strict=True):
            sizes[axis], scales[axis] = new, np.float32(new) / np.float32(max(1, call.shape[axis]))
    else:
        factors = np.array(node.get("scales") or [], np.float32)
        if scales_input is not None:
            factors = builder.value(scales_input, "scales").reshape(-1).astype(np.float32)
        if len(factors) != len(axes) or not np.all((factors > 0) & (factors < LIMIT)):
            raise UnsupportedError(f"has scales {factors.tolist()} for {len(axes)} axes")
        for axis, factor in zip(axes, factors, strict=True):
            sizes[axis] = math.floor(np.float32(call.shape[axis]) * factor)
            scales[axis] = factor
    if not all(0 < size < LIMIT for size in sizes):
        raise UnsupportedError(f"has a result of shape {tuple(sizes)}")
    return sizes, scales


def _places(mode: str, old: int, new: int, scale: np.float32) -> FloatArray:
    """Where each new pixel lies among the old ones."""
    new_places, half = np.arange(new, dtype=np.float32), np.float32(0.5)
    if mode == "asymmetric":
        return new_places / scale
    if mode == "align_corners":
        return new_places * np.float32(old - 1) / np.float32(max(1, new - 1))
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and new > 1):
        return (new_places + half) / scale - half
    if mode == "pytorch_half_pixel":
        return np.zeros(new, np.float32)
    raise UnsupportedError(f"has coordinates {mode!r}")


def _rounded(places: FloatArray, mode: str) -> NDArray[np.int64]:
    if mode == "floor":
        result = np.floor(places)
    elif mode == "ceil":
        result = np.ceil(places)
    elif mode == "round_prefer_floor":
        result = np.ceil(places - 0.5)
    elif mode == "round_prefer_ceil":
        result = np.floor(places + 0.5)
    else:
        raise UnsupportedError(f"rounds coordinates by {mode!r}")
    return result.astype(np.int64)


RESIZING: Final = {"Resize": resize, "Upsample": resize}
