"""The layers that kernels are judged on, and the choices that are tried."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from benchmarks.layer_shapes import THRESHOLDS, binary_layer, layer_shape

_VALUES: Final[dict[str, Any]] = {"thresholds": False, "bits": False, "values": True, "steps": 1}
_BOTH: Final[dict[str, Any]] = {**_VALUES, "bits": True}
_RESIDUAL: Final[dict[str, Any]] = {**_BOTH, "steps": 2, "step_tensors": 1}
_u8 = partial(layer_shape, "conv2d", dtype="u8", weight_bits=1, input_add=-255)
_f32 = partial(layer_shape, "conv2d", dtype="f32", weight_bits=32)

LAYERS: Final = {
    "3x3 64@56": binary_layer(56, 64, 64, 3),
    "3x3 64@56 residual": binary_layer(56, 64, 64, 3, **_RESIDUAL),
    "3x3 128@28": binary_layer(28, 128, 128, 3),
    "3x3 256@14": binary_layer(14, 256, 256, 3),
    "3x3 512@7": binary_layer(7, 512, 512, 3),
    "1x1 64-128@56": binary_layer(56, 64, 128),
    "1x1 256-512@14": binary_layer(14, 256, 512),
    "dense 4096-1000": binary_layer(1, 4096, 1000, **_VALUES),
    "dense 25088-4096": binary_layer(7, 512, 4096, 7, pad=0),
    "3x3 64@56 8 groups": binary_layer(56, 64, 64, 3, groups=8),
    "depthwise 3x3 64@56": layer_shape(
        "binary_depthwise_conv2d", 56, 64, 64, 3, weight_bits=1, **THRESHOLDS
    ),
    "u8 3x3 3-64@224": _u8(224, 3, 64, 3, **THRESHOLDS),
    "u8 7x7s2 3-64@224": _u8(224, 3, 64, 7, 2, pad=3, **_BOTH),
    "f32 3x3s2 3-16@224": _f32(224, 3, 16, 3, 2, pad=1, **_VALUES),
    "f32 3x3 64@56": _f32(56, 64, 64, 3, **_BOTH),
    "f32 3x3 64@56 8 groups": _f32(56, 64, 64, 3, groups=8, **_BOTH),
    "f32 dense 512-1000": _f32(1, 512, 1000, **_VALUES),
    "f32 depthwise 3x3 64@56": _f32(56, 64, 64, 3, groups=64, **_VALUES),
    "max pool 2x2s2 64@56": layer_shape("max_pool2d", 56, 64, 64, 2, 2, 0, "f32", **_BOTH),
    "average pool 7x7 512": layer_shape("average_pool2d", 7, 512, 512, 7, 1, 0, "f32", **_VALUES),
    "sign of f32 64@56": layer_shape("elementwise", 56, 64, 64, dtype="f32", bits=True, steps=1),
    "bits to f32 64@56": layer_shape("elementwise", 56, 64, 64, **_VALUES),
    "pool bits 2x2s2 64@56": layer_shape("max_pool2d", 56, 64, 64, 2, 2, 0, bits=True),
    "concat bits 24+40@28": layer_shape("concat", 28, 24, 64, operand_channels=(24, 40), bits=True),
    "concat f32 64+64@28": layer_shape(
        "concat", 28, 64, 128, dtype="f32", operand_channels=(64, 64), values=True
    ),
    "pad f32 64@56": layer_shape("pad", 56, 64, 64, pad=1, dtype="f32", values=True),
    "select f32 64@56": layer_shape(
        "select_channels", 56, 64, 64, dtype="f32", values=True, weight_bits=32
    ),
    "softmax 1000": layer_shape("softmax", 1, 1000, 1000, dtype="f32", values=True),
}
UNJUDGED: Final = ("bconv2d_lanes", "conv2d_f32_run")
"""Kernels that serve where no mobile GPU takes them by default."""


def _tiles(kernel: str, *tiles: tuple[int, int], more: str = "") -> list[str]:
    return [f"{kernel} TILE_PIXELS={p} TILE_FILTERS={f} {more}" for p, f in tiles]


def _values(kernel: str, name: str, *values: int) -> list[str]:
    return [f"{kernel} {name}={value}" for value in values]


TRIED: Final = (
    *_tiles("bconv2d_tiled", (1, 8), (1, 16), (2, 4), (2, 8), (2, 16), (4, 4), (4, 8), (4, 16)),
    *_tiles("bconv2d_tiled", (2, 16), (4, 8), more="ACCUMULATOR=1"),
    *_tiles("bconv2d_tiled", (1, 8), (1, 16), (2, 8), more="COUNT=1"),
    *_tiles("bconv2d_tiled", (2, 8), more="VECTOR_WORDS=2"),
    *_tiles("bconv2d_image", (1, 8), (2, 4), (2, 8), (2, 16), (4, 4), (4, 8)),
    *_tiles("bconv2d_image", (4, 8), more="ACCUMULATOR=1"),
    *_values("bconv2d_byte", "GRANULARITY", 8, 32, 128),
    *_values("bconv2d_accumulate", "VECTOR_WORDS", 1, 4),
    *_values("bconv2d_split", "TILE_FILTERS", 1, 2, 4),
    *_values("bconv2d_split", "VECTOR_WORDS", 1),
    *_values("bgemv", "TILE_FILTERS", 1, 2, 4),
    *_values("bgemv", "VECTOR_WORDS", 1),
    *_tiles("conv2d_u8_direct", (1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (4, 8)),
    *_tiles("conv2d_u8_planes", (1, 8), (1, 16), (2, 8)),
    *_tiles("conv2d_u8_pairs", (2, 16), (2, 32), (4, 8), (4, 16), (4, 32), (8, 8), (8, 16)),
    *_tiles("conv2d_f32", (1, 8), (2, 4), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8), (4, 16)),
    *_tiles("conv2d_f32_staged", (1, 8), (1, 16), (1, 32), more="GROUP_SIZE=64"),
    *_tiles("conv2d_f32_staged", (1, 16), (1, 32), more="GROUP_SIZE=64 CHUNK=64"),
    *_values("conv2d_f32_dot", "TILE_FILTERS", 8, 16),
    *_values("conv2d_f32_grouped", "TILE_FILTERS", 4, 8, 16),
    *_values("depthwise_f32", "TILE_CHANNELS", 4, 8, 16),
    *_values("pool", "TILE_CHANNELS", 4, 8, 16),
    *_values("elementwise", "TILE_CHANNELS", 4, 8, 16, 32),
)
"""Besides the @tune defaults and what tuning.table says, as it is written there."""
