"""The arithmetic of convolutions over quantized values: which binary form they have, if any.

A quantized input is x = offset[c] + s[c] * sum_i u_i b_i with bits b_i of -1/+1 and units u_i: all
1, or 2^i (passes/planes.py). The weights, after s has been multiplied into them, are
w * s = alpha[o] * sum_j v_j[o] w_j + beta[o] with signs w_j and units v_j. With p_i as the value
that padded taps have in plane i, and z the real number that the network pads with::

    sum w x = alpha * sum_ij u_i v_j conv(b_i, w_j; p_i)   xor and popcount
            + beta * sum_i u_i window_sum(b_i)             one number per pixel, for all channels
            + sum over taps in the map of w * (offset - z)
            + sum over all taps of w * z

The last two are constants per channel except at the border, where taps are missing. If padding is
one of the input's own levels (offset + s * sum u_i p_i = z; all p_i alike, or the bits of a level)
that does the same to every pixel, and the constant is sum w * offset everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import FloatArray
from phonebit.converter.ops import Conv2D
from phonebit.converter.passes.planes import Planes
from phonebit.converter.passes.two_valued import RELATIVE_SPREAD, SignFactors, factor_weights


@dataclass(frozen=True)
class BinaryForm:
    """A convolution's value as alpha * integers + constant + border[taps] + beta * window sums.

    Attributes:
        factors: Of the weights, with the planes' scale multiplied in.
        pads: What padded taps count as in each plane: -1, 0 or 1.
        constant: (Cout,), added everywhere.
        border: (Cout, KH, KW): what each tap adds where it lies in the map; None if that is the
            same everywhere and part of ``constant``.
    """

    factors: SignFactors
    pads: list[int]
    constant: FloatArray
    border: FloatArray | None

    @property
    def needs_maps(self) -> bool:
        """Whether terms remain that vary from pixel to pixel besides the integers."""
        return self.border is not None or bool(np.any(self.factors.beta))


def binary_form(op: Conv2D, planes: Planes) -> BinaryForm | str:
    """Looks for the binary form of a convolution.

    Args:
        op: The convolution, in source form.
        planes: Its input.

    Returns:
        The form; or why there is none, as a sentence for the report.
    """
    if not op.window.padding_fits:
        return "padding is as wide as the kernel"
    scale = _common_scale(planes)
    if scale is None:
        return "the levels of its quantized input are not evenly spaced"
    groups = (op.groups, op.weights.shape[0], planes.offset.size)
    factors = factor_weights((op.weights * _per_tap(scale, *groups)).astype(np.float32))
    if factors is None:
        return "the weights of a filter have more than four values"
    offset = planes.offset.astype(np.float64)
    weights = op.weights.astype(np.float64)
    if np.any(factors.beta) and op.groups != 1:  # a window has a sum for each group
        factors = factors.without_beta()
    beta = bool(np.any(factors.beta))
    pads: list[int] | None = [0] * planes.count
    if any(op.window.pads):
        pads = None if beta else _pad_levels(op.pad_value, planes, scale)
    if pads is not None:
        taps = weights * _per_tap(offset, *groups)
        form = BinaryForm(factors, pads, _float32(taps.sum(axis=(1, 2, 3))), None)
    else:
        taps = (weights * _per_tap(offset - op.pad_value, *groups)).sum(axis=3)
        constant = weights.sum(axis=(1, 2, 3)) * op.pad_value
        border = _float32(taps) if np.any(taps) else None
        form = BinaryForm(factors, [0] * planes.count, _float32(constant), border)
    if form.needs_maps and op.groups != 1:
        return "a grouped convolution whose quantized values are not symmetric about zero"
    return form


def _common_scale(planes: Planes) -> NDArray[np.float64] | None:
    """s[c], if the scales of a channel are its multiples by the units."""
    scales = planes.scales.astype(np.float64) / planes.units[:, None]
    mean: NDArray[np.float64] = scales.mean(axis=0)
    even = np.abs(scales - mean) <= RELATIVE_SPREAD * np.abs(mean)
    return mean if even.all() else None


def _per_tap(
    values: NDArray[np.floating], groups: int, cout: int, channels: int
) -> NDArray[np.floating]:
    """Per-input-channel numbers in the shape of OHWI weights, (Cout, 1, 1, Cin / groups)."""
    by_group = values.reshape(groups, 1, 1, 1, channels // groups)
    repeated = np.broadcast_to(by_group, (groups, cout // groups, 1, 1, channels // groups))
    return repeated.reshape(cout, 1, 1, channels // groups)


def _pad_levels(pad_value: float, planes: Planes, scale: NDArray[np.float64]) -> list[int] | None:
    """The p_i with offset + s * sum u_i p_i = pad_value for every channel."""
    total = int(planes.units.sum())
    size = np.abs(planes.offset) + total * np.abs(scale)

    def fits(weighted: int) -> bool:
        distance = planes.offset + weighted * scale - pad_value
        return bool(np.all(np.abs(distance) <= 1e-6 * size))

    for candidate in (0, -1, 1):
        if fits(total * candidate):
            return [candidate] * planes.count
    if not planes.binary or not scale[0]:
        return None
    code = round(((pad_value - float(planes.offset[0])) / float(scale[0]) + total) / 2)
    if not 0 <= code <= total or not fits(2 * code - total):
        return None
    return [1 if code >> plane & 1 else -1 for plane in range(planes.count)]


def _float32(values: NDArray[np.float64]) -> FloatArray:
    return values.astype(np.float32)
