"""Larq-zoo networks with made-up weights, for tests and benchmarks with other engines.

The zoo's trained weights need a download; these need none. Two kinds of weights and statistics:

* ``dyadic``: every number is a small dyadic fraction, chosen so that float32 arithmetic is exact up
  to the logits: then the order of sums does not matter and two engines must agree to the last bit.
  ``larq_exactness`` proves it for a given image.
* ``random``: seeded random weights and statistics as training would leave them.

In both, batch normalizations are calibrated on an image (their means follow their inputs), because
without it the signs of deep layers are all equal and a comparison shows little.

What cannot be exact: a mean over 49 pixels (224x224 inputs; 64 pixels at 256x256 are exact) and
the softmax. Nor is variance + epsilon = 1 enough everywhere: ``tf.math.rsqrt(1)`` is 0.9999999 on
CPUs with AVX, and batch normalization uses it for inputs of rank 2, and always without oneDNN. For
rank 2 the sum is therefore ``RSQRT_EXACT``, whose rsqrt is 1.25 in Eigen's approximation too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Rng = np.random.Generator

NETWORKS: Final = ("quicknet", "birealnet", "binary_alexnet", "binary_resnet_e18")
RSQRT_EXACT: Final = float(np.float32(0.64))


def build(
    network: str, *, dyadic: bool, size: int = 224, classes: int = 1000, seed: int = 0
) -> Any:
    """A network of the zoo with made-up weights.

    Args:
        network: One of NETWORKS.
        dyadic: Exact numbers, calibrated on ``integer_images``; else random ones, calibrated on
            ``float_images``.
        size: Height and width of its input.
        classes: Number of its classes.
        seed: Of the weights and of the images.
    """
    model = untrained(network, size, classes)
    if dyadic:
        make_dyadic(model, integer_images(1, size, seed), seed)
    else:
        make_random(model, float_images(1, size, seed), seed)
    return model


def untrained(network: str, size: int = 224, classes: int = 1000) -> Any:
    """A network of the zoo as Keras initializes it."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    import larq_zoo as zoo

    builders: dict[str, Callable[..., Any]] = {
        "quicknet": zoo.sota.QuickNet,
        "birealnet": zoo.literature.BiRealNet,
        "binary_alexnet": zoo.literature.BinaryAlexNet,
        "binary_resnet_e18": zoo.literature.BinaryResNetE18,
    }
    return builders[network](input_shape=(size, size, 3), weights=None, num_classes=classes)


def float_images(count: int, size: int, seed: int = 0) -> Array:
    """Random images (count, size, size, 3) of mean 0 and deviation about 1.

    Smooth at a scale of a sixteenth of the image, so that neighbouring windows are alike, as in
    photographs, with some noise.
    """
    rng = np.random.default_rng(seed)
    coarse = rng.normal(0, 1.2, (count, 17, 17, 3))
    at = np.linspace(0, 15.999, size)
    whole, part = at.astype(int), (at % 1)[:, None, None]
    rows = coarse[:, whole] * (1 - part) + coarse[:, whole + 1] * part
    part = (at % 1)[:, None]
    smooth = rows[:, :, whole] * (1 - part) + rows[:, :, whole + 1] * part
    return (smooth + rng.normal(0, 0.5, smooth.shape)).astype(np.float32)


def integer_images(count: int, size: int, seed: int = 0) -> Array:
    """The same as integers -8..8, in float32: with 4 bits they leave room for exact sums."""
    return np.clip(np.rint(float_images(count, size, seed) * 4), -8, 8).astype(np.float32)


def variance_for(epsilon: float, total: float = 1.0) -> np.float32:
    """A float32 variance for which variance + epsilon is exactly ``total`` in float32."""
    wanted, eps = np.float32(total), np.float32(epsilon)
    variance = np.float32(wanted - eps)
    for candidate in (
        variance,
        np.nextafter(variance, np.float32(0)),
        np.nextafter(variance, np.float32(np.inf)),
    ):
        if np.float32(candidate + eps) == wanted:
            return np.float32(candidate)
    raise ValueError(f"no variance makes variance + {epsilon} equal to {total}")


# --- weights --------------------------------------------------------------------------------------


def make_dyadic(model: Any, image: Array, seed: int = 0) -> None:
    """Replaces weights and statistics by exactly representable ones, calibrated on ``image``."""
    rng = np.random.default_rng(seed)
    for layer in model.layers:
        _set_kernels(layer, rng, _dyadic_kernel)
    _calibrate(model, image, rng, _dyadic_statistics)


def make_random(model: Any, image: Array, seed: int = 0) -> None:
    """Replaces weights and statistics by random ones, calibrated on ``image``."""
    rng = np.random.default_rng(seed)
    for layer in model.layers:
        _set_kernels(layer, rng, _random_kernel)
    _calibrate(model, image, rng, _random_statistics)


def is_batch_norm(layer: Any) -> bool:
    """Whether a layer is one, of whatever class."""
    return "BatchNormalization" in type(layer).__name__


def _set_kernels(layer: Any, rng: Rng, draw: Callable[[Any, str, Array, Rng], Array]) -> None:
    if is_batch_norm(layer) or not layer.get_weights():
        return
    names = [weight.name.rsplit("/", 1)[-1].split(":")[0] for weight in layer.weights]
    arrays = zip(names, layer.get_weights(), strict=True)
    layer.set_weights([draw(layer, name, array, rng) for name, array in arrays])


def kernel_quantizer(layer: Any, name: str) -> str:
    """The class that quantizes a weight; "" if none does."""
    key = "depthwise_quantizer" if name.startswith("depthwise") else "kernel_quantizer"
    quantizer = getattr(layer, key, None)
    return "" if quantizer is None else type(quantizer).__name__


def _dyadic_kernel(layer: Any, name: str, array: Array, rng: Rng) -> Array:
    if name == "bias":
        return (rng.integers(-8, 9, array.shape) / 8).astype(np.float32)
    quantizer = kernel_quantizer(layer, name)
    if quantizer == "MagnitudeAwareSign":
        # Pairs of (a, a) and (0, 2a): the mean magnitude stays the dyadic a, some weights are 0.
        scale = 2.0 ** rng.integers(-3, 0, array.shape[-1])
        magnitudes = np.ones(array.shape).reshape(-1, array.shape[-1])
        spread = rng.random((magnitudes.shape[0] // 2, array.shape[-1])) < 0.25
        magnitudes[0 : 2 * len(spread) : 2][spread] = 0
        magnitudes[1 : 2 * len(spread) : 2][spread] = 2
        signs = rng.choice([-1.0, 1.0], array.shape)
        return np.asarray(magnitudes.reshape(array.shape) * scale * signs, np.float32)
    if quantizer:
        return (rng.integers(-8, 9, array.shape) / 8).astype(np.float32)  # zeros included
    return _sparse_kernel(array.shape, name.startswith("depthwise"), rng)


def _sparse_kernel(shape: tuple[int, ...], depthwise: bool, rng: Rng) -> Array:
    """Float kernels of few taps: full ones would fill 24 bits after three layers.

    A kernel that reads the image (3 channels) has 8 taps of +-1/2 or +-1/4, others two of +-1.
    """
    outputs = shape[2] * shape[3] if depthwise else shape[-1]
    taps = math.prod(shape) // outputs
    first = not depthwise and len(shape) == 4 and shape[2] == 3
    values = [-0.5, -0.25, 0.25, 0.5] if first else [-1.0, 1.0]
    kernel = np.zeros((taps, outputs))
    for output in range(outputs):
        chosen = rng.choice(taps, min(taps, 8 if first else 2), replace=False)
        kernel[chosen, output] = rng.choice(values, len(chosen))
    return kernel.reshape(shape).astype(np.float32)


def _random_kernel(layer: Any, name: str, array: Array, rng: Rng) -> Array:
    if name == "bias":
        return rng.normal(0, 0.1, array.shape).astype(np.float32)
    if kernel_quantizer(layer, name):
        return rng.uniform(-1, 1, array.shape).astype(np.float32)
    fan_in = math.prod(array.shape[:2] if name.startswith("depthwise") else array.shape[:-1])
    return rng.normal(0, math.sqrt(2 / fan_in), array.shape).astype(np.float32)


# --- batch normalization --------------------------------------------------------------------------

Statistics = Callable[[Any, Array, Array, Rng], dict[str, Array]]
"""(layer, mean, deviation of its input, rng) -> its weights by name."""


@contextmanager
def replaced_calls(
    layers: list[Any], wrap: Callable[[Any, Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Within this context, ``wrap(layer, layer.call)`` stands in for every layer's call."""
    originals = [layer.call for layer in layers]
    for layer, original in zip(layers, originals, strict=True):
        layer.call = wrap(layer, original)
    try:
        yield
    finally:
        for layer, original in zip(layers, originals, strict=True):
            layer.call = original


def _calibrate(model: Any, image: Array, rng: Rng, statistics: Statistics) -> None:
    """Runs the model once; every batch normalization sets itself from its input before it runs."""

    def wrap(layer: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
            x = np.asarray(inputs, np.float64).reshape(-1, inputs.shape[-1])
            chosen = statistics(layer, x.mean(axis=0), x.std(axis=0), rng)
            names = [weight.name.rsplit("/", 1)[-1].split(":")[0] for weight in layer.weights]
            layer.set_weights([chosen[name].astype(np.float32) for name in names])
            return run(inputs, *args, **kwargs)

        return call

    with replaced_calls([layer for layer in model.layers if is_batch_norm(layer)], wrap):
        model(image, training=False)


def _dyadic_statistics(layer: Any, mean: Array, _: Array, rng: Rng) -> dict[str, Array]:
    """Mean and beta in quarters, gamma +-1 or +-1/2, in every sixteenth channel or so 0."""
    gamma = rng.choice([-1.0, -0.5, 0.5, 1.0, 1.0, 1.0], mean.shape)
    gamma[rng.random(mean.shape) < 1 / 16] = 0
    return {
        "gamma": gamma,
        "beta": rng.integers(-8, 9, mean.shape) / 4,
        "moving_mean": np.rint(mean * 4) / 4 + rng.integers(-2, 3, mean.shape),
        "moving_variance": np.full(
            mean.shape, variance_for(layer.epsilon, 1.0 if layer.fused else RSQRT_EXACT)
        ),
    }


def _random_statistics(_: Any, mean: Array, deviation: Array, rng: Rng) -> dict[str, Array]:
    spread = np.maximum(deviation, 1e-3)
    return {
        "gamma": rng.normal(1, 0.3, mean.shape) * rng.choice([-1, 1, 1, 1], mean.shape),
        "beta": rng.normal(0, 0.3, mean.shape),
        "moving_mean": mean + rng.normal(0, 0.1, mean.shape) * spread,
        "moving_variance": np.square(spread) * rng.uniform(0.5, 2.0, mean.shape),
    }
