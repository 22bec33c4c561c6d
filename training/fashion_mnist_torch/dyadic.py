"""The recipe's last step: real numbers become multiples of small powers of two.

Then nothing rounds in float32, so sums do not depend on their order: whatever computes the network,
the logits are equal to the last bit. Why 24 bits are enough, with the units below:

- The image's values are multiples of 2^-8, sums of signs are integers. A batch normalization
  becomes y = x scale + shift (mean 0, variance + epsilon = 1); x scale and shift are multiples of
  UNIT and together below 2^24 UNIT; a layer with larger values gets 2 UNIT, 4 UNIT, ...
- The shortcuts add such numbers, and take maxima and copies: multiples of UNIT again.
- The last layer sums weights, multiples of WEIGHT_UNIT, times signs or means of 16 signs.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from training.fashion_mnist_torch.layers import EPSILON, is_binary

UNIT: Final = 2.0**-16
"""Of what batch normalizations give."""
IMAGE_UNIT: Final = 2.0**-8
"""Of the values of an image."""
WEIGHT_UNIT: Final = 2.0**-12
"""Of the last layer's weights and biases."""
LARGEST: Final = 2.0**24
"""Units that float32 counts without a gap."""

NORMS: Final = (nn.BatchNorm1d, nn.BatchNorm2d)


@torch.no_grad()
def make_dyadic(network: nn.Module) -> None:
    """Rounds a trained binary network in place and sets it to eval mode.

    Latent weights become their signs; mean and variance go into scale and shift.
    """
    network.eval()
    reach, unit = 0.0, 1.0
    for layer in network.modules():
        if is_binary(layer):
            weight = layer.weight
            assert isinstance(weight, Tensor)
            weight.copy_(torch.where(weight >= 0, 1.0, -1.0))
            reads_image = weight.dim() == 4 and weight.shape[1] == 1
            reach, unit = float(weight[0].numel()), IMAGE_UNIT if reads_image else 1.0
        elif isinstance(layer, NORMS):
            _round_norm(layer, reach, unit)
        elif isinstance(layer, nn.Linear):
            layer.weight.copy_(_rounded(layer.weight, WEIGHT_UNIT))
            layer.bias.copy_(_rounded(layer.bias, WEIGHT_UNIT))


def _round_norm(layer: nn.BatchNorm1d | nn.BatchNorm2d, reach: float, unit: float) -> None:
    """``reach``: largest magnitude that the layer can read, all of it multiples of ``unit``."""
    assert layer.running_mean is not None and layer.running_var is not None
    scale = layer.weight.double() / (layer.running_var.double() + layer.eps).sqrt()
    shift = layer.bias.double() - layer.running_mean.double() * scale
    result_unit = UNIT
    largest = float((reach * scale.abs() + shift.abs()).max())
    rounding = reach / unit + 1  # of scale and shift, in units, at most half of it
    while largest >= (LARGEST - rounding) * result_unit:
        result_unit *= 2
    scale, shift = _rounded(scale, result_unit / unit), _rounded(shift, result_unit)
    layer.weight.copy_(scale)
    layer.bias.copy_(shift)
    layer.running_mean.zero_()
    layer.running_var.fill_(1 - EPSILON)


def _rounded(values: Tensor, unit: float) -> Tensor:
    return (values / unit).round() * unit


@torch.no_grad()
def check_exact(network: nn.Module, inputs: Tensor) -> None:
    """Compares float32 with float64, where the numbers of these networks have 29 bits to spare.

    Args:
        network: on the CPU, after ``make_dyadic``.
        inputs: float32[N][1][32][32].

    Raises:
        ValueError: results differ, so something has rounded.
    """
    single = network(inputs)
    double = network.double()(inputs.double())
    network.float()
    differing = int((single != double).any(1).sum())
    if differing:
        raise ValueError(
            f"{differing} of {len(inputs)} images: float32 logits differ from float64's; a sum "
            "needs more than 24 bits: look for large values along the shortcuts"
        )
