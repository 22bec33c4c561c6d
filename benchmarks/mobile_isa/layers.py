"""The layers that kernels are judged on, and the parameters that are tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from phonebit.bnn_kernels.sources import tunables
from phonebit.planner.predict.layer_shape import LayerShape

Defines = dict[str, int | str]
Parameters = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Layer:
    """A layer: its op as in tuning.table ("" where nothing is chosen), its defines, its kernels."""

    name: str
    op: str
    defines: Defines
    kernels: tuple[str, ...]


def _window(
    in_hw: int, in_c: int, out_c: int, kernel: int, stride: int = 1, groups: int = 1, pad: int = -1
) -> Defines:
    """Geometry of a square layer, padded to keep its size unless `pad` says otherwise."""
    pad = kernel // 2 if pad < 0 else pad
    out_hw = (in_hw + 2 * pad - kernel) // stride + 1
    return {
        "IN_H": in_hw, "IN_W": in_hw, "IN_C": in_c, "IN_WORDS": (in_c + 31) // 32,
        "OUT_H": out_hw, "OUT_W": out_hw, "OUT_C": out_c, "OUT_WORDS": (out_c + 31) // 32,
        "KERNEL_H": kernel, "KERNEL_W": kernel, "STRIDE_H": stride, "STRIDE_W": stride,
        "DILATION_H": 1, "DILATION_W": 1, "PAD_TOP": pad, "PAD_LEFT": pad, "GROUPS": groups,
        "PADDED": int(pad > 0), "PAD_BITS": 0,
        "ROW_CLASSES": 3 if pad else 1, "COLUMN_CLASSES": 3 if pad else 1,
        "INPUT_HALF": 0, "VALUES_HALF": 0, "TENSOR0_HALF": 0,
    }  # fmt: skip


_THRESHOLD: Defines = {
    "THRESHOLD": 1,
    "SINK_PARAMS": ", __global uint* bits",
    "SINK_ARGS": ", bits",
}


def _epilogue(out_c: int, values: bool = True, bits: bool = False, add: bool = False) -> Defines:
    """Scale and bias, perhaps a residual, into values and perhaps sign bits."""
    steps = f"STEP_SCALE_BIAS(W, 0, {out_c})"
    names = ["constants"]
    types = ["__global const float*"]
    if add:
        steps += " STEP_ADD(W, tensor0, TENSOR0_HALF, 1)"
        names.append("tensor0")
        types.append("__global const void*")
    found: Defines = {"EPILOGUE": 1, "APPLY_STEPS(W)": steps}
    if values:
        found["HAS_VALUES"] = 1
        names.append("values")
        types.append("__global void*")
    if bits:
        found["HAS_BITS"] = 1
        names.append("bits")
        types.append("__global uint*")
    found["SINK_PARAMS"] = "".join(
        f", {kind} {name}" for kind, name in zip(types, names, strict=True)
    )
    found["SINK_ARGS"] = "".join(f", {name}" for name in names)
    return found


_CONVOLUTIONS = ("bconv2d_tiled", "bconv2d_image", "bconv2d_byte", "bconv2d_grouped")
_FEW_PIXELS = (*_CONVOLUTIONS, "bconv2d_split")


def _binary(name: str, geometry: Defines, kernels: tuple[str, ...], **sink: bool) -> Layer:
    out_c = int(geometry["OUT_C"])
    defines = geometry | (_epilogue(out_c, **sink) if sink else _THRESHOLD)
    return Layer(name, "binary_conv2d", defines, kernels)


_U8: Defines = {"INPUT_MUL": 2, "INPUT_ADD": -255}
_F32 = ("conv2d_f32", "conv2d_f32_grouped")

LAYERS = (
    _binary("3x3 64@56", _window(56, 64, 64, 3), _CONVOLUTIONS),
    _binary("3x3 64@56 residual", _window(56, 64, 64, 3), _CONVOLUTIONS, bits=True, add=True),
    _binary("3x3 128@28", _window(28, 128, 128, 3), (*_CONVOLUTIONS, "bconv2d_accumulate")),
    _binary("3x3 256@14", _window(14, 256, 256, 3), _FEW_PIXELS),
    _binary("3x3 512@7", _window(7, 512, 512, 3), _FEW_PIXELS),
    _binary("1x1 64-128@56", _window(56, 64, 128, 1), _CONVOLUTIONS),
    _binary("1x1 256-512@14", _window(14, 256, 512, 1), _FEW_PIXELS),
    _binary("dense 4096-1000", _window(1, 4096, 1000, 1), ("bgemv", *_FEW_PIXELS), values=True),
    _binary("dense 25088-4096", _window(7, 512, 4096, 7, pad=0), ("bgemv", "bconv2d_split")),
    _binary("3x3 64@56 8 groups", _window(56, 64, 64, 3, groups=8), ("bconv2d_grouped",)),
    Layer(
        "depthwise 3x3 64@56", "binary_depthwise_conv2d",
        _window(56, 64, 64, 3, groups=64) | _THRESHOLD, ("bdepthwise2d",),
    ),
    Layer(
        "u8 3x3 3-64@224", "conv2d_u8",
        _window(224, 3, 64, 3) | _THRESHOLD | _U8, ("conv2d_u8_direct", "conv2d_u8_planes"),
    ),
    Layer(
        "u8 7x7s2 3-64@224", "conv2d_u8",
        _window(224, 3, 64, 7, 2) | _epilogue(64, bits=True) | _U8,
        ("conv2d_u8_direct", "conv2d_u8_planes"),
    ),
    Layer("u8 split 3x3 3@224", "", _window(224, 3, 64, 3) | _U8, ("split_planes",)),
    Layer("f32 3x3s2 3-16@224", "conv2d_f32", _window(224, 3, 16, 3, 2) | _epilogue(16), _F32),
    Layer("f32 3x3 64@56", "conv2d_f32", _window(56, 64, 64, 3) | _epilogue(64, bits=True), _F32),
    Layer(
        "f32 dense 512-1000", "conv2d_f32", _window(1, 512, 1000, 1) | _epilogue(1000),
        ("conv2d_f32", "conv2d_f32_dot"),
    ),
    Layer(
        "f32 depthwise 3x3 64@56", "", _window(56, 64, 64, 3, groups=64) | _epilogue(64),
        ("depthwise_f32",),
    ),
    Layer(
        "max pool 2x2s2 64@56", "", _window(56, 64, 64, 2, 2, pad=0) | _epilogue(64, bits=True)
        | {"POOL_MAX": 1}, ("pool",),
    ),
    Layer(
        "average pool 7x7 512", "", _window(7, 512, 512, 7, pad=0) | _epilogue(512)
        | {"POOL_MAX": 0}, ("pool",),
    ),
    Layer(
        "sign of f32 64@56", "", _window(56, 64, 64, 1) | _epilogue(64, values=False, bits=True)
        | {"INPUT_KIND": 0}, ("elementwise",),
    ),
    Layer(
        "bits to f32 64@56", "", _window(56, 64, 64, 1) | _epilogue(64) | {"INPUT_KIND": 2},
        ("elementwise",),
    ),
    Layer("pool bits 2x2s2 64@56", "", _window(56, 64, 64, 2, 2, pad=0), ("max_pool_bits",)),
    Layer(
        "concat bits 40+24@28", "", _window(28, 40, 64, 1) | {"CHANNEL_OFFSET": 24},
        ("concat_bits",),
    ),
    Layer(
        "concat f32 64+64@28", "", _window(28, 64, 128, 1) | {"CHANNEL_OFFSET": 64}, ("concat",)
    ),
    Layer("pad f32 64@56", "", _window(56, 64, 64, 3) | {"PAD_FLOAT": "0.0f"}, ("pad",)),
    Layer("select f32 64@56", "", _window(56, 64, 64, 1), ("select_channels",)),
    Layer("softmax 1000", "", _window(1, 1000, 1000, 1) | {"SOFTMAX_LOG": 0}, ("softmax",)),
    Layer("thresholds 512@7", "", _window(7, 512, 512, 1) | _THRESHOLD, ("pack_thresholds",)),
)  # fmt: skip


def _grid(**values: tuple[int, ...]) -> list[dict[str, int]]:
    """All combinations."""
    found: list[dict[str, int]] = [{}]
    for name, each in values.items():
        found = [{**one, name: value} for one in found for value in each]
    return found


def _tiles(*tiles: tuple[int, int], **more: int) -> list[dict[str, int]]:
    return [{"TILE_PIXELS": p, "TILE_FILTERS": f, **more} for p, f in tiles]


# Besides the @tune defaults and what tuning.table says, these are tried.
TRIED: dict[str, list[dict[str, int]]] = {
    "bconv2d_tiled": [
        *_tiles((1, 8), (1, 16), (2, 4), (2, 8), (2, 16), (4, 4), (4, 8), (4, 16), VECTOR_WORDS=4),
        *_tiles((2, 16), (4, 8), VECTOR_WORDS=4, ACCUMULATOR=1),
        *_tiles((2, 8), VECTOR_WORDS=4, COUNT=1),
        *_tiles((2, 8), VECTOR_WORDS=2),
    ],
    "bconv2d_image": [
        *_tiles((1, 8), (2, 4), (2, 8), (2, 16), (4, 4), (4, 8)),
        *_tiles((4, 8), ACCUMULATOR=1),
    ],
    "bconv2d_byte": _grid(GRANULARITY=(8, 32, 128)),
    "bconv2d_accumulate": _grid(VECTOR_WORDS=(1, 4)),
    "bconv2d_split": [*_grid(VECTOR_WORDS=(4,), TILE_FILTERS=(1, 2, 4)), {"VECTOR_WORDS": 1}],
    "bgemv": [*_grid(VECTOR_WORDS=(4,), TILE_FILTERS=(1, 2, 4)), {"VECTOR_WORDS": 1}],
    "conv2d_u8_direct": [*_tiles((1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (4, 8))],
    "conv2d_u8_planes": [*_tiles((1, 8), (1, 16), (2, 8))],
    "conv2d_f32": [
        *_tiles((1, 8), (2, 4), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8), (4, 16)),
    ],
    "conv2d_f32_dot": _grid(TILE_FILTERS=(8, 16)),
    "conv2d_f32_grouped": _grid(TILE_FILTERS=(4, 8, 16)),
    "depthwise_f32": _grid(TILE_CHANNELS=(4, 8, 16)),
    "pool": _grid(TILE_CHANNELS=(4, 8, 16)),
    "elementwise": _grid(TILE_CHANNELS=(4, 8, 16, 32)),
}  # fmt: skip


def fitted(layer: Layer, kernel: str, parameters: Mapping[str, int]) -> Parameters:
    """All parameters of a kernel, defaults included, with vectors that divide a pixel.

    The runtime shortens loads in the same way.
    """
    values = {tunable.name: tunable.default for tunable in tunables(kernel)} | dict(parameters)
    words = int(layer.defines["IN_WORDS"])
    if "VECTOR_WORDS" in values:
        values["VECTOR_WORDS"] = math.gcd(values["VECTOR_WORDS"], words)
    if "GRANULARITY" in values:
        values["GRANULARITY"] = math.gcd(values["GRANULARITY"], 32 * words)
    return tuple(values.items())


def serves(layer: Layer, kernel: str, parameters: Parameters) -> bool:
    """Whether a kernel's @requires line accepts a layer, as far as LAYERS need it."""
    if kernel not in layer.kernels:
        return False
    d = layer.defines | dict(parameters)
    taps = int(d["KERNEL_H"]) * int(d["KERNEL_W"]) * int(d["IN_C"])
    makes_bits = "THRESHOLD" in d or "HAS_BITS" in d
    channels = int(d.get("TILE_FILTERS", d.get("TILE_CHANNELS", 8)))
    if kernel in ("bconv2d_tiled", "bconv2d_image"):
        return not (kernel == "bconv2d_image" and int(d["IN_WORDS"]) % 4) and not (
            d["ACCUMULATOR"] and taps >= 1 << 16
        )
    if kernel in ("bconv2d_split", "bgemv", "bdepthwise2d", "conv2d_f32_dot"):
        return True
    return not (makes_bits and channels < 8)


def layer_of(shape: LayerShape, kernel: str) -> Layer:
    """A layer of a network for a kernel that serves it."""
    padding = bool(shape.pad_top or shape.pad_left)
    square = _window(shape.in_h, shape.in_c, shape.out_c, shape.kernel_h, shape.stride_h,
                     shape.groups, pad=shape.pad_top)  # fmt: skip
    geometry = square | {
        name.upper(): getattr(shape, name)
        for name in ("in_w", "out_h", "out_w", "kernel_w", "stride_w", "dilation_h", "dilation_w",
                     "pad_left")
    } | {"PADDED": int(padding)}  # fmt: skip
    defines = geometry | (
        _THRESHOLD
        if shape.thresholds
        else _epilogue(shape.out_c, shape.values, shape.bits, bool(shape.step_tensors))
    )
    if shape.family == "conv2d_u8":
        defines |= _U8
    if shape.op == "elementwise":
        defines["INPUT_KIND"] = 2 if shape.input == "bit" else 0
    return Layer(shape.family, "", defines, (kernel,))
