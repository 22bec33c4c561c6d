"""Writes tests/converter/fixtures/lce: small networks as Larq Compute Engine's converter has them.

Run once where TensorFlow, Larq and Larq Compute Engine are installed, and commit what changes:

    PYTHONPATH=tests TF_USE_LEGACY_KERAS=1 python tests/converter/make_tflite_fixtures.py [name ...]

``<name>.npz`` next to ``<name>.tflite`` holds the input ``x`` and what the interpreter's reference
kernels make of it (``y0``, ``y1``, ...). Weights and inputs are exactly
representable, so that sums are exact.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from support import larq_networks

FIXTURES = Path(__file__).parent / "fixtures" / "lce"
BATCH = 2
KERNEL = {
    "kernel_quantizer": "ste_sign",
    "kernel_constraint": "weight_clip",
    "input_quantizer": "ste_sign",
    "use_bias": False,
}


def results_of_bits(lq: Any, tf: Any) -> Any:
    """Thresholds, pools of bits, groups; odd channels, strides, dilation, rectangular kernels."""
    keras, conv = tf.keras, lq.layers.QuantConv2D
    image = keras.Input((11, 9, 5), name="image")
    x = conv(64, 3, padding="same", pad_values=1, **KERNEL)(image)
    x = keras.layers.BatchNormalization()(x)
    x = conv(37, (2, 3), strides=(2, 1), **KERNEL)(x)
    x = keras.layers.BatchNormalization()(x)
    x = lq.quantizers.SteSign()(x)
    x = keras.layers.MaxPool2D(2, strides=1, padding="same")(x)
    x = conv(64, 2, dilation_rate=2, padding="same", pad_values=1, **KERNEL)(x)
    x = keras.layers.BatchNormalization(scale=False)(x)
    y = conv(6, 3, groups=2, **KERNEL)(x)
    return keras.Model(image, [conv(7, 1, **KERNEL)(x), y])


def real_results(lq: Any, tf: Any) -> Any:
    """Padding with 0 and 1, activations, factors and offsets; a map smaller than its kernel."""
    keras, conv = tf.keras, lq.layers.QuantConv2D
    image = keras.Input((8, 8, 4), name="image")
    outputs = [
        conv(4, 3, padding="same", activation="relu", pad_values=1, **KERNEL)(image),
        conv(4, 3, activation="relu6", strides=2, **KERNEL)(image),
        keras.layers.BatchNormalization()(conv(6, 4, padding="same", strides=3, **KERNEL)(image)),
    ]
    x = keras.layers.BatchNormalization()(keras.layers.AveragePooling2D(4)(image))
    x = conv(8, 3, padding="same", **KERNEL)(x)
    return keras.Model(image, [*outputs, keras.layers.add([x, conv(8, 1, **KERNEL)(x)])])


def integers(lq: Any, tf: Any) -> Any:
    """int8 results with an activation; a pool of integers; real numbers to integers."""
    keras, conv = tf.keras, lq.layers.QuantConv2D
    quantized = tf.quantization.fake_quant_with_min_max_args
    image = keras.Input((8, 8, 6), name="image")
    x = conv(8, 3, padding="same", pad_values=1, **KERNEL)(image)
    x = quantized(keras.layers.BatchNormalization()(x), -20.0, 30.0)
    x = keras.layers.MaxPool2D(2)(x)
    y = conv(5, 3, padding="same", pad_values=1, activation="relu", **KERNEL)(x)
    return keras.Model(image, [x, quantized(y, -1.0, 13.0), quantized(image, -2.0, 3.5)])


def ordinary_layers(lq: Any, tf: Any) -> Any:
    """TensorFlow Lite's own operators, as larq-zoo's networks have them."""
    keras = tf.keras
    layers = keras.layers
    image = keras.Input((9, 10, 8), name="image")
    x = layers.ZeroPadding2D(((1, 0), (2, 1)))(image)
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu6")(x)
    x = layers.PReLU(shared_axes=[1, 2])(layers.BatchNormalization()(x))
    x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)
    first, second = tf.split(x, 2, axis=-1)
    x = layers.concatenate([first * second, layers.LeakyReLU(0.25)(second), x[..., 2:6]])
    x = layers.MaxPool2D(3, strides=2, padding="same")(x)
    x = tf.nn.depth_to_space(layers.AveragePooling2D(2, padding="same")(x), 2)
    y = layers.Dense(6)(layers.Flatten()(tf.transpose(x, [0, 2, 1, 3])))
    z = layers.Reshape((1, 1, 5))(layers.GlobalAveragePooling2D()(x))
    return keras.Model(
        image, [y, tf.maximum(tf.minimum(-z, 3.5) * 0.5, -1.0), tf.reduce_max(x, [1, 2])]
    )


def all_in_int8(lq: Any, tf: Any) -> Any:
    """A network that is quantized after its training."""
    keras = tf.keras
    image = keras.Input((6, 6, 2), name="image")
    x = lq.layers.QuantConv2D(4, 3, **KERNEL)(keras.layers.Conv2D(4, 2)(image))
    return keras.Model(image, keras.layers.Dense(3, name="dense")(keras.layers.Flatten()(x)))


NETWORKS: dict[str, Callable[[Any, Any], Any]] = {
    each.__name__: each
    for each in (results_of_bits, real_results, integers, ordinary_layers, all_in_int8)
}


def made(name: str) -> tuple[bytes, np.ndarray]:
    """A converted network, and inputs for it."""
    import larq as lq
    import larq_compute_engine as lce
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    model = NETWORKS[name](lq, tf)
    shape = (BATCH, *model.inputs[0].shape[1:])
    x = (np.random.default_rng(1).integers(-8, 9, shape) / 2).astype(np.float32)
    larq_networks.make_dyadic(model, x[:1])
    ranges = (-3, 3) if name == "all_in_int8" else None
    return lce.convert_keras_model(model, experimental_default_int8_range=ranges), x


def main() -> None:
    from larq_compute_engine.tflite.python.interpreter import Interpreter

    FIXTURES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NETWORKS:
        content, x = made(name)
        results: Any = Interpreter(content, use_reference_bconv=True).predict(x)
        results = results if isinstance(results, list) else [results]
        (FIXTURES / f"{name}.tflite").write_bytes(content)
        arrays = {f"y{index}": array for index, array in enumerate(results)}
        np.savez_compressed(FIXTURES / f"{name}.npz", x=x, **arrays)


if __name__ == "__main__":
    main()
