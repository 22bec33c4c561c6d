"""Made-up weights and statistics for a network: exact ones, or such as training would leave.

Both calibrate: while the network runs once on given images, every batch normalization takes its
mean from what it reads, because without that the signs of deep layers are all equal and a
comparison shows little. A module with parameters that no rule here knows has a method
``set_statistics(rng, dyadic)``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

Rng = np.random.Generator
Values = NDArray[np.float64]

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
REAL_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Linear)


def images(shape: Sequence[int], count: int, seed: int) -> Tensor:
    """Random images (count, C, H, W) or sequences (count, C, L), float32 of mean 0 and deviation
    about 1.

    Smooth at a scale of an eighth of the image, as photographs are, with some noise.
    """
    rng = np.random.default_rng(seed)
    channels, height, width = shape if len(shape) == 3 else (shape[0], 1, shape[1])
    coarse = torch.from_numpy(rng.normal(0, 1.2, (count, channels, 9, 9)))
    smooth = F.interpolate(coarse, (height, width), mode="bilinear", align_corners=True)
    noisy = smooth + torch.from_numpy(rng.normal(0, 0.5, tuple(smooth.shape)))
    return noisy.float().reshape(count, *shape)


def integer_images(shape: Sequence[int], count: int, seed: int) -> Tensor:
    """The same as integers -8..8: their 4 bits leave room for exact sums."""
    return (images(shape, count, seed) * 4).round().clamp(-8, 8)


def unit_images(shape: Sequence[int], count: int, seed: int) -> Tensor:
    """The same as multiples of 1/256 from 0 to 255/256."""
    return (images(shape, count, seed) * 64 + 128).round().clamp(0, 255) / 256


@torch.no_grad()
def dyadic_(module: nn.Module, calibration: Tensor, seed: int) -> nn.Module:
    """Makes float32 arithmetic exact: all numbers are small exactly representable fractions.

    Latent weights have one magnitude 2^-k a filter, half of them negative for every tap: so mean
    magnitudes, centred weights and standard deviations are exact, too. Variances are such that
    variance + epsilon is 1. A final (logarithmic) softmax, which no fraction makes exact, becomes
    the identity.

    Args:
        module: The network; changed in place and set to eval mode.
        calibration: (N, C, H, W), exact numbers themselves.
        seed: Of all random draws.

    Returns:
        The network.
    """
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.LogSoftmax | nn.Softmax):
                setattr(parent, name, nn.Identity())
    return _initialise(module, calibration, np.random.default_rng(seed), dyadic=True)


@torch.no_grad()
def random_(module: nn.Module, calibration: Tensor, seed: int) -> nn.Module:
    """Random weights and statistics as training would leave them; arguments as ``dyadic_``."""
    return _initialise(module, calibration, np.random.default_rng(seed), dyadic=False)


@torch.no_grad()
def exact_results(module: nn.Module, x: Tensor) -> Tensor:
    """What a ``dyadic_`` network computes in float64, where nothing rounds.

    variance + epsilon is 1 in float32 but not in float64, so the sum is made 1.
    """
    twin = copy.deepcopy(module).double()
    for layer in twin.modules():
        if isinstance(layer, NORMS):
            assert layer.running_var is not None
            layer.eps = 0.0
            layer.running_var.fill_(1.0)
    torch.set_default_dtype(torch.float64)  # of numbers in the modules' own code
    try:
        return twin(x.double())
    finally:
        torch.set_default_dtype(torch.float32)


def _initialise(module: nn.Module, calibration: Tensor, rng: Rng, dyadic: bool) -> nn.Module:
    module.eval()
    hooks = []
    set_norm = _dyadic_norm if dyadic else _random_norm
    for layer in module.modules():
        if isinstance(layer, NORMS):
            hooks.append(layer.register_forward_pre_hook(_calibrating(set_norm, rng)))
        elif isinstance(layer, nn.PReLU):
            layer.weight.copy_(_tensor(_slopes(layer.weight.numel(), rng, dyadic)))
        elif getattr(layer, "weight", None) is not None and layer.weight.dim() >= 2:
            _set_weights(layer, rng, dyadic)
    for layer in module.modules():
        own = getattr(layer, "set_statistics", None)
        if own is not None:
            own(rng, dyadic)
    module(calibration)
    for hook in hooks:
        hook.remove()
    return module


def _tensor(values: Values) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


# --- weights --------------------------------------------------------------------------------------


def _set_weights(layer: nn.Module, rng: Rng, dyadic: bool) -> None:
    """Real-valued weights for PyTorch's own layers, latent ones for layers derived from them."""
    real = type(layer) in REAL_LAYERS
    weight = layer.weight
    assert isinstance(weight, nn.Parameter)
    shape = tuple(getattr(layer, "kernel_shape", weight.shape))
    if dyadic:
        values = _sparse_weights(shape, rng) if real else _balanced_weights(shape, rng)
    else:
        scale = math.sqrt(2 / math.prod(shape[1:])) if real else 0.3
        values = rng.normal(0, scale, shape)
    weight.copy_(_tensor(values).view(weight.shape))
    bias = getattr(layer, "bias", None)
    if isinstance(bias, nn.Parameter):
        count = bias.numel()
        drawn = rng.integers(-4, 5, count) / 2 if dyadic else rng.normal(0, 0.1, count)
        bias.copy_(_tensor(drawn).view(bias.shape))


def _balanced_weights(shape: tuple[int, ...], rng: Rng) -> Values:
    """+-2^-k; with an even number of input channels half of a tap's weights are negative."""
    order = rng.random(shape).argsort(axis=1)
    signs = np.where(order % 2 == 0, 1.0, -1.0)
    if shape[1] % 2:
        signs = rng.choice([-1.0, 1.0], shape)
    scale = 2.0 ** rng.integers(-2, 1, (shape[0], *[1] * (len(shape) - 1)))
    values: Values = signs * scale
    return values


def _sparse_weights(shape: tuple[int, ...], rng: Rng) -> Values:
    """Few taps: full kernels would fill 24 bits after three layers.

    What reads the image has 8 taps of +-1 or +-1/2, dense layers 8 and other convolutions two
    taps of +-1.
    """
    taps = math.prod(shape[1:])
    first = len(shape) == 4 and shape[1] <= 3
    count = 8 if first or len(shape) == 2 else 2
    weights = np.zeros((shape[0], taps))
    for filter_ in weights:
        chosen = rng.choice(taps, min(taps, count), replace=False)
        filter_[chosen] = rng.choice([-1.0, -0.5, 0.5, 1.0] if first else [-1.0, 1.0], len(chosen))
    return weights.reshape(shape)


def _slopes(count: int, rng: Rng, dyadic: bool) -> Values:
    """Mostly integers: a chain of slopes of 1/2 would need a bit more for each of them."""
    if dyadic:
        return rng.choice([0.0, 1.0, -1.0, 0.5], count, p=[0.48, 0.25, 0.25, 0.02])
    return rng.uniform(0.05, 0.4, count)


# --- batch normalization --------------------------------------------------------------------------

SetNorm = Callable[[nn.Module, Tensor, Tensor, Rng], None]


def _calibrating(set_norm: SetNorm, rng: Rng) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    """A hook that sets a batch normalization from its input's means and deviations (C,)."""

    def hook(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        columns = inputs[0].double().transpose(0, 1).flatten(1)
        set_norm(layer, columns.mean(1), columns.std(1, correction=0), rng)

    return hook


def _dyadic_norm(layer: nn.Module, mean: Tensor, _: Tensor, rng: Rng) -> None:
    """Mean and beta in halves, gamma +-1 or 2, in every sixteenth channel or so 0."""
    assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
    assert layer.running_mean is not None and layer.running_var is not None
    count = layer.num_features
    layer.running_mean.copy_((mean * 2).round() / 2 + _tensor(rng.integers(-2, 3, count) / 2))
    layer.running_var.fill_(_variance_for(layer.eps))
    if layer.affine:
        gamma = rng.choice([-1.0, -1.0, 1.0, 1.0, 1.0, 2.0], count)
        gamma[rng.random(count) < 1 / 16] = 0
        layer.weight.copy_(_tensor(gamma))
        layer.bias.copy_(_tensor(rng.integers(-4, 5, count) / 2))


def _random_norm(layer: nn.Module, mean: Tensor, deviation: Tensor, rng: Rng) -> None:
    assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)
    assert layer.running_mean is not None and layer.running_var is not None
    count = layer.num_features
    spread = deviation.clamp(min=max(1e-3, float(deviation.mean()) / 4))
    layer.running_mean.copy_(mean + _tensor(rng.normal(0, 0.1, count)) * spread)
    layer.running_var.copy_(spread.square() * _tensor(rng.uniform(0.5, 2.0, count)))
    if layer.affine:
        layer.weight.copy_(_tensor(rng.normal(1, 0.3, count) * rng.choice([-1, 1, 1, 1], count)))
        layer.bias.copy_(_tensor(rng.normal(0, 0.3, count)))


def _variance_for(epsilon: float) -> float:
    """The float32 variance for which variance + epsilon is exactly 1 in float32."""
    one, eps = np.float32(1), np.float32(epsilon)
    variance = one - eps
    near = (variance, np.nextafter(variance, np.float32(0)), np.nextafter(variance, one))
    return float(next(candidate for candidate in near if candidate + eps == one))
