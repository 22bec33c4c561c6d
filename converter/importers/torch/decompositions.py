"""Operators without a rule that PyTorch does not define by simpler ones, in terms of those.

This file needs PyTorch; import it inside functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

Tensor = Any


def fake_quantize(
    x: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """torch.ao's quantizer: levels are integers, rounded before the zero point is added."""
    if isinstance(scale, float):
        inverse: Any = float(np.float32(1) / np.float32(scale))
    else:
        inverse = torch.reciprocal(scale)
    if not isinstance(zero_point, int):
        zero_point = zero_point.to(torch.float32)
    levels = torch.clamp(torch.round(x * inverse) + zero_point, quant_min, quant_max)
    return (levels - zero_point) * scale, torch.ones_like(x, dtype=torch.bool)


def fake_quantize_channels(
    x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """The same with a scale for each place along an axis."""
    shape = [-1 if place == axis % x.ndim else 1 for place in range(x.ndim)]
    return fake_quantize(x, scale.view(shape), zero_point.view(shape), quant_min, quant_max)


def logaddexp(x: Tensor, other: Tensor) -> Tensor:
    """The larger one, plus what the other adds to it."""
    return torch.maximum(x, other) + F.softplus(-(x - other).abs())


def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The product with a triangle of ones."""
    x = x if dtype is None else x.to(dtype)
    count = x.shape[dim]
    triangle = torch.ones(count, count).triu()
    return (x.movedim(dim, -1) @ triangle).movedim(-1, dim)


def prod(x: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Halves multiplied with each other, until one is left."""
    x = x if dtype is None else x.to(dtype)
    while (count := x.shape[dim]) > 1:
        half = count // 2
        product = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = torch.cat([product, x.narrow(dim, 2 * half, 1)], dim) if count % 2 else product
    return x if keepdim else x.squeeze(dim)


_ERF: Final = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def erf(x: Tensor) -> Tensor:
    """Within 1.5e-7.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
    """
    t = 1 / (1 + 0.3275911 * x.abs())
    sum_ = torch.zeros_like(x)
    for factor in _ERF:
        sum_ = (sum_ + factor) * t
    size = 1 - sum_ * torch.exp(-x * x)
    return torch.where(x >= 0, 1.0, -1.0) * size


def erfc(x: Tensor) -> Tensor:
    """Within 1.5e-7, as erf."""
    return 1 - torch.erf(x)


def hypot(x: Tensor, other: Tensor) -> Tensor:
    """The length of a vector of two."""
    return torch.sqrt(x * x + other * other)


def sinh(x: Tensor) -> Tensor:
    """Half the difference of two exponentials."""
    return (torch.expm1(x) - torch.expm1(-x)) * 0.5


def cosh(x: Tensor) -> Tensor:
    """Half the sum of two exponentials."""
    return (torch.exp(x) + torch.exp(-x)) * 0.5


def var_mean(
    x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Both on their own."""
    var = torch.var(x, dim, correction=correction, keepdim=keepdim)
    return var, torch.mean(x, dim, keepdim=keepdim)


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """The first operand plus the product of ``source`` with ones where its places belong."""
    places = torch.arange(x.shape[dim])
    ones = (index.view(-1, 1) == places.view(1, -1)).to(x.dtype) * alpha
    return x + (source.movedim(dim, -1) @ ones).movedim(-1, dim)


def col2im(
    x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    """Fold: a transposed convolution whose filters have a one at their own tap."""
    count = math.prod(kernel_size)
    channels = x.shape[1] // count
    steps = [
        (size + 2 * pad - d * (k - 1) - 1) // s + 1
        for size, k, d, pad, s in zip(
            output_size, kernel_size, dilation, padding, stride, strict=True
        )
    ]
    taps = torch.eye(count).view(count, 1, *kernel_size).repeat(channels, 1, 1, 1)
    columns = x.view(x.shape[0], channels * count, *steps)
    whole = F.conv_transpose2d(columns, taps, None, stride, 0, 0, channels, dilation)
    edges: list[int] = []
    for axis in (3, 2):  # as F.pad has them, the last axis first
        before = padding[axis - 2]
        edges += [-before, output_size[axis - 2] + before - whole.shape[axis]]
    return F.pad(whole, edges)


def avg_pool3d(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = (0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Means of maps, and means of those along the depth."""
    if ceil_mode or divisor_override or (any(padding) and not count_include_pad):
        return NotImplemented
    kernel, stride, padding = (
        [*values] * (3 // len(values)) for values in (kernel, stride or kernel, padding)
    )
    maps = F.avg_pool2d(x.flatten(1, 2), kernel[1:], stride[1:], padding[1:])
    height, width = maps.shape[2:]
    depth = maps.view(*x.shape[:3], height * width)
    pooled = F.avg_pool2d(depth, [kernel[0], 1], [stride[0], 1], [padding[0], 0])
    return pooled.unflatten(3, (height, width))


def quantizers() -> dict[Any, Callable[..., Any]]:
    """Those of torch.ao, by ATen's operator: PyTorch itself cannot trace them again."""
    aten = torch.ops.aten
    return {
        aten.fake_quantize_per_tensor_affine.default: lambda *a: fake_quantize(*a)[0],
        aten.fake_quantize_per_tensor_affine.tensor_qparams: lambda *a: fake_quantize(*a)[0],
        aten.fake_quantize_per_tensor_affine_cachemask.default: fake_quantize,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: (
            lambda x, scale, zero, _enabled, low, high: fake_quantize(x, scale, zero, low, high)
        ),
        aten.fake_quantize_per_channel_affine.default: lambda *a: fake_quantize_channels(*a)[0],
        aten.fake_quantize_per_channel_affine_cachemask.default: fake_quantize_channels,
    }


def definitions() -> dict[Any, Callable[..., Any]]:
    """All, by ATen's operator."""
    aten = torch.ops.aten
    return {
        **quantizers(),
        aten.logaddexp.default: logaddexp,
        aten.cumsum.default: cumsum,
        aten.prod.dim_int: prod,
        aten.erf.default: erf,
        aten.erfc.default: erfc,
        aten.hypot.default: hypot,
        aten.sinh.default: sinh,
        aten.cosh.default: cosh,
        aten.var_mean.correction: var_mean,
        aten.index_add.default: index_add,
        aten.col2im.default: col2im,
        aten.avg_pool3d.default: avg_pool3d,
        aten.fmax.default: torch.maximum,
        aten.fmin.default: torch.minimum,
    }
