"""The Fashion-MNIST network, once with binary convolutions and once as its float twin.

Topology (NHWC; the activation at the input of a convolution is sign in the binary network and ReLU
in the twin; the very first convolution sees the image itself in both):

    image 28x28x1
    stem    conv 3x3, 64   - max-pool 2x2 - BN   14x14x64   plain, real input
    res2    conv 3x3, 64   - BN - add(input)     14x14x64   Bi-Real block
    res3    conv 3x3, 64   - BN - add(input)     14x14x64   Bi-Real block
    conv4   conv 3x3, 128  - max-pool 2x2 - BN    7x7x128   plain, reads the sign of a sum
    conv5   conv 3x3, 128  - BN                   7x7x128   plain
    conv6   conv 3x3, 128  - BN                   7x7x128   plain, opens the next shortcut
    res7    conv 3x3, 128  - BN - add(input)      7x7x128   Bi-Real block
    dense8  flatten - dense 256 - BN                  256   binary dense
    logits  dense 10 with bias - softmax               10   float

Between them these layers meet every epilogue that an engine fuses: max-pooling whose result only
ever acts through its sign, hence poolable on bits (conv4); one threshold per channel on an integer
accumulator (conv5); a float value that is needed besides its sign (stem, conv6); and residual sums
whose sign feeds the next convolution while the sum itself feeds the next shortcut (res2, res3).
Padding is "same" with zeros everywhere, which is Larq's default: a border position contributes
neither +1 nor -1 to an accumulator.

Source: plain blocks in the order of BinaryNet (Hubara et al. 2016), residual blocks of Bi-Real Net
(Liu et al. 2018, section 3.2); `ste_sign` and `weight_clip` as in Larq.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Larq 0.14 is written for Keras 2; TensorFlow >= 2.16 hands out Keras 3 unless this is set first.
# The other files therefore take `lq` and `tf` from here.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import larq as lq  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

__all__ = ["CLASS_COUNT", "KerasModel", "build_binary", "build_float_twin", "lq", "tf"]

INPUT_SHAPE = (28, 28, 1)
CLASS_COUNT = 10
LOWER_CHANNELS = 64
UPPER_CHANNELS = 128
DENSE_UNITS = 256

# Keras models and tensors; TensorFlow ships no type information that mypy could check.
KerasModel = Any
KerasTensor = Any
# weighted(input, units, name, first): a convolution of `units` filters, or a dense layer.
WeightedLayer = Callable[[KerasTensor, int, str, bool], KerasTensor]


def _normalise(x: KerasTensor, name: str) -> KerasTensor:
    return tf.keras.layers.BatchNormalization(momentum=0.99, epsilon=1e-3, name=name)(x)


def _pool(x: KerasTensor, name: str) -> KerasTensor:
    return tf.keras.layers.MaxPooling2D(2, name=name)(x)


def _residual(x: KerasTensor, conv: WeightedLayer, units: int, name: str) -> KerasTensor:
    """Bi-Real block: the shortcut carries the real-valued input past sign and convolution."""
    y = _normalise(conv(x, units, name, False), f"{name}_bn")
    return tf.keras.layers.Add(name=f"{name}_add")([y, x])


def _build(conv: WeightedLayer, dense: WeightedLayer, name: str) -> KerasModel:
    """Assemble the topology above from one kind of convolution and one kind of dense layer."""
    image = tf.keras.layers.Input(INPUT_SHAPE, name="picture")
    x = _normalise(_pool(conv(image, LOWER_CHANNELS, "stem", True), "stem_pool"), "stem_bn")
    x = _residual(x, conv, LOWER_CHANNELS, "res2")
    x = _residual(x, conv, LOWER_CHANNELS, "res3")
    x = _normalise(_pool(conv(x, UPPER_CHANNELS, "conv4", False), "conv4_pool"), "conv4_bn")
    x = _normalise(conv(x, UPPER_CHANNELS, "conv5", False), "conv5_bn")
    x = _normalise(conv(x, UPPER_CHANNELS, "conv6", False), "conv6_bn")
    x = _residual(x, conv, UPPER_CHANNELS, "res7")
    x = tf.keras.layers.Flatten(name="flatten")(x)
    x = _normalise(dense(x, DENSE_UNITS, "dense8", False), "dense8_bn")
    x = tf.keras.layers.Dense(CLASS_COUNT, name="logits")(x)
    x = tf.keras.layers.Activation("softmax", name="probabilities")(x)
    return tf.keras.Model(image, x, name=name)


def build_binary() -> KerasModel:
    """Build the untrained binary network.

    Returns:
        Keras-2 model: float32[N][28][28][1] in -1..1 -> float32[N][10] probabilities. Layer
        "logits" holds the values before softmax. All kernels but that of "logits" are latent
        floats in -1..1 that act through their sign, sign(0) = +1.
    """
    weights = {
        "kernel_quantizer": "ste_sign",
        "kernel_constraint": "weight_clip",
        "use_bias": False,
    }

    def conv(x: KerasTensor, units: int, name: str, first: bool) -> KerasTensor:
        quantizer = None if first else "ste_sign"
        return lq.layers.QuantConv2D(
            units, 3, padding="same", input_quantizer=quantizer, name=name, **weights
        )(x)

    def dense(x: KerasTensor, units: int, name: str, first: bool) -> KerasTensor:
        quantizer = None if first else "ste_sign"
        return lq.layers.QuantDense(units, input_quantizer=quantizer, name=name, **weights)(x)

    return _build(conv, dense, "fashion_mnist_bnn")


def build_float_twin() -> KerasModel:
    """Build the untrained float twin: same shapes, float weights, ReLU where the BNN has sign.

    Returns:
        Keras-2 model with the signature of `build_binary`.
    """

    def activate(x: KerasTensor, name: str, first: bool) -> KerasTensor:
        return x if first else tf.keras.layers.ReLU(name=f"{name}_relu")(x)

    def conv(x: KerasTensor, units: int, name: str, first: bool) -> KerasTensor:
        layer = tf.keras.layers.Conv2D(units, 3, padding="same", use_bias=False, name=name)
        return layer(activate(x, name, first))

    def dense(x: KerasTensor, units: int, name: str, first: bool) -> KerasTensor:
        layer = tf.keras.layers.Dense(units, use_bias=False, name=name)
        return layer(activate(x, name, first))

    return _build(conv, dense, "fashion_mnist_float_twin")
