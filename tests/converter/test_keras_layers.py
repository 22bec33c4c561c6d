"""Keras layers by their values in TensorFlow: live, from both kinds of file, and in the engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phonebit
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.ir import Graph
from phonebit.verification import verify

pytestmark = pytest.mark.framework

MAP = (7, 5, 6)
ROW = (9, 6)
VOLUME = (4, 5, 3, 2)
SIGNS = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign"}
DEPTHWISE_SIGNS = {"input_quantizer": "ste_sign", "depthwise_quantizer": "ste_sign"}
Make = Callable[[Any, Any], Any]
"""(layers of Keras, layers of Larq) -> a layer, or a function of tensors."""


def pair(layer: Any) -> Callable[[Any], Any]:
    """A layer of two tensors, of a map and of its mirror image."""
    return lambda x: layer([x, -0.5 * x])


def channel_shuffle(tf: Any, x: Any) -> Any:
    """Two groups of channels side by side."""
    parts = tf.reshape(x, (-1, *MAP[:2], 2, MAP[2] // 2))
    return tf.reshape(tf.transpose(parts, (0, 1, 2, 4, 3)), (-1, *MAP))


LAYERS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "up": (lambda k, _: k.UpSampling2D(), MAP),
    "up by 2, 3": (lambda k, _: k.UpSampling2D((2, 3)), MAP),
    "up bilinear": (lambda k, _: k.UpSampling2D((3, 2), interpolation="bilinear"), MAP),
    "up 1D": (lambda k, _: k.UpSampling1D(3), ROW),
    "up 3D": (lambda k, _: k.UpSampling3D((1, 2, 3)), VOLUME),
    "crop": (lambda k, _: k.Cropping2D(((1, 2), (0, 1))), MAP),
    "crop 1D": (lambda k, _: k.Cropping1D((2, 1)), ROW),
    "crop 3D": (lambda k, _: k.Cropping3D((1, 2, 0)), VOLUME),
    "pad": (lambda k, _: k.ZeroPadding2D(((1, 2), (0, 3))), MAP),
    "pad 1D": (lambda k, _: k.ZeroPadding1D((2, 1)), ROW),
    "pad 3D": (lambda k, _: k.ZeroPadding3D((1, 0, 2)), VOLUME),
    "permute": (lambda k, _: k.Permute((2, 1, 3)), MAP),
    "permute channels": (lambda k, _: k.Permute((3, 1, 2)), MAP),
    "permute row": (lambda k, _: k.Permute((2, 1)), ROW),
    "repeat": (lambda k, _: k.RepeatVector(3), (6,)),
    "reshape to four axes": (lambda k, _: k.Reshape((7, 5, 2, 3)), MAP),
    "average": (lambda k, _: pair(k.Average()), MAP),
    "maximum": (lambda k, _: pair(k.Maximum()), MAP),
    "minimum": (lambda k, _: pair(k.Minimum()), ROW),
    "subtract": (lambda k, _: pair(k.Subtract()), MAP),
    "add of fewer axes": (lambda k, _: lambda x: k.Add()([x, k.GlobalMaxPooling2D()(x)]), MAP),
    "multiply by a column": (
        lambda k, _: lambda x: k.Multiply()([x, k.Cropping2D((0, 2))(x)]),
        MAP,
    ),
    "concatenate rows": (lambda k, _: pair(k.Concatenate(axis=1)), MAP),
    "concatenate columns": (lambda k, _: pair(k.Concatenate(axis=-2)), MAP),
    "softmax of columns": (lambda k, _: k.Softmax(axis=2), MAP),
    "normalization": (
        lambda k, _: k.Normalization(mean=[0.5] * 6, variance=[2, 3, 4, 5, 6, 7]),
        MAP,
    ),
    "normalization by one": (lambda k, _: k.Normalization(axis=None, mean=0.5, variance=2.0), MAP),
    "adapted normalization": (lambda k, _: k.Normalization(), MAP),
    "inverted normalization": (lambda k, _: k.Normalization(invert=True), ROW),
    "layer norm": (lambda k, _: k.LayerNormalization(), MAP),
    "layer norm of a map": (lambda k, _: k.LayerNormalization(axis=[1, 2, 3], center=False), MAP),
    "layer norm of rows": (lambda k, _: k.LayerNormalization(axis=1, scale=False), ROW),
    "group norm": (lambda k, _: k.GroupNormalization(3), MAP),
    "instance norm": (lambda k, _: k.GroupNormalization(-1, epsilon=1e-5), ROW),
    "unit norm": (lambda k, _: k.UnitNormalization(), MAP),
    "conv 1D": (lambda k, _: k.Conv1D(4, 3, padding="same", activation="relu"), ROW),
    "conv 1D causal": (lambda k, _: k.Conv1D(4, 3, padding="causal", dilation_rate=2), ROW),
    "conv 1D strided": (lambda k, _: k.Conv1D(4, 4, strides=2, padding="same", groups=2), ROW),
    "sign conv 1D": (
        lambda _, q: q.QuantConv1D(4, 3, padding="same", pad_values=1.0, **SIGNS),
        ROW,
    ),
    "sign conv 1D causal": (lambda _, q: q.QuantConv1D(40, 3, padding="causal", **SIGNS), (8, 35)),
    "sign conv 1D valid": (lambda _, q: q.QuantConv1D(4, 4, dilation_rate=2, **SIGNS), ROW),
    "depthwise 1D": (lambda k, _: k.DepthwiseConv1D(3, depth_multiplier=2, padding="same"), ROW),
    "separable 1D": (lambda k, _: k.SeparableConv1D(4, 3, padding="same", strides=2), ROW),
    "sign separable 1D": (
        lambda _, q: q.QuantSeparableConv1D(
            4, 3, pointwise_quantizer="ste_sign", **DEPTHWISE_SIGNS
        ),
        ROW,
    ),
    "max pool 1D": (lambda k, _: k.MaxPooling1D(3, 2, padding="same"), ROW),
    "average pool 1D": (lambda k, _: k.AveragePooling1D(2), ROW),
    "global pools 1D": (
        lambda k, _: (
            lambda x: k.Concatenate()([k.GlobalAveragePooling1D()(x), k.GlobalMaxPooling1D()(x)])
        ),
        ROW,
    ),
    "global pool 3D": (lambda k, _: k.GlobalAveragePooling3D(keepdims=True), VOLUME),
    "transposed": (lambda k, _: k.Conv2DTranspose(4, 3, 2, padding="same", activation="relu"), MAP),
    "transposed valid": (lambda k, _: k.Conv2DTranspose(4, (2, 4), (3, 2)), MAP),
    "transposed output padding": (
        lambda k, _: k.Conv2DTranspose(4, 3, 2, padding="same", output_padding=1),
        MAP,
    ),
    "transposed dilated": (lambda k, _: k.Conv2DTranspose(4, 3, dilation_rate=2), MAP),
    "transposed 1D": (lambda k, _: k.Conv1DTranspose(4, 4, 3, padding="same"), ROW),
    "sign transposed": (
        lambda _, q: q.QuantConv2DTranspose(5, 4, strides=2, padding="same", **SIGNS),
        MAP,
    ),
    "conv 3D": (lambda k, _: k.Conv3D(3, (3, 1, 3), padding="same", activation="relu"), VOLUME),
    "conv 3D one-sided": (lambda k, _: k.Conv3D(3, 2, padding="same", strides=(1, 2, 1)), VOLUME),
    "sign conv 3D": (lambda _, q: q.QuantConv3D(3, 3, padding="same", **SIGNS), VOLUME),
    "lstm": (lambda k, _: k.LSTM(4), ROW),
    "lstm sequence": (lambda k, _: k.LSTM(4, return_sequences=True, use_bias=False), ROW),
    "lstm backwards": (lambda k, _: k.LSTM(4, return_sequences=True, go_backwards=True), ROW),
    "lstm states": (lambda k, _: k.LSTM(4, return_sequences=True, return_state=True), ROW),
    "gru": (lambda k, _: k.GRU(4, return_sequences=True), ROW),
    "simple rnn": (lambda k, _: k.SimpleRNN(4, activation="relu"), ROW),
    "bidirectional": (lambda k, _: k.Bidirectional(k.LSTM(4, return_sequences=True)), ROW),
    "bidirectional sum": (lambda k, _: k.Bidirectional(k.GRU(3), merge_mode="sum"), ROW),
    "bidirectional mean": (lambda k, _: k.Bidirectional(k.GRU(3), merge_mode="ave"), ROW),
    "threshold": (lambda k, _: k.ThresholdedReLU(0.25), MAP),
    "random flip": (lambda k, _: k.RandomFlip(), MAP),
    **{
        f"activation {name}": (lambda k, _, name=name: k.Activation(name), MAP)
        for name in ("selu", "exponential", "softsign", "swish", "mish")
    },
    "conv with selu": (lambda k, _: k.Conv2D(3, 2, activation="selu"), MAP),
}
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "transpose": (lambda tf, x: tf.transpose(x, (0, 3, 1, 2)), MAP),
    "channel shuffle": (channel_shuffle, MAP),
    "shuffled signs": (lambda tf, x: channel_shuffle(tf, tf.sign(x)) * 0.5, MAP),
    "depth to space": (lambda tf, x: tf.nn.depth_to_space(x[:, :, :, :4], 2), MAP),
    "space to depth": (lambda tf, x: tf.nn.space_to_depth(x[:, 1:, :4], 2), MAP),
    "rows": (lambda tf, x: x[:, 1:-1], MAP),
    "rows and columns": (lambda tf, x: x[:, ::-2, 1:4, 2], MAP),
    "one row": (lambda tf, x: x[:, 2][:, None], MAP),
    "slice": (lambda tf, x: tf.slice(x, [0, 1, 2, 0], [-1, 3, 2, -1]), MAP),
    "larger": (lambda tf, x: tf.maximum(x, -0.5 * x), MAP),
    "smaller of a column": (lambda tf, x: tf.minimum(x, x[:, :, :1]), MAP),
    "sum with a row": (lambda tf, x: x + x[:, :1], MAP),
    "quotient": (lambda tf, x: x / (1.5 + tf.square(x)), MAP),
    "quotient of a number": (lambda tf, x: 2.0 / (1.5 + tf.square(x)), MAP),
    "square": (lambda tf, x: x**2.0, MAP),
    "reciprocal root": (lambda tf, x: tf.math.rsqrt(1.0 + x * x), MAP),
    "reflected": (lambda tf, x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], "REFLECT"), MAP),
    "padded with a number": (
        lambda tf, x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], constant_values=0.5),
        MAP,
    ),
    "maximum of channels": (lambda tf, x: tf.reduce_max(x, -1, keepdims=True), MAP),
    "sum of rows": (lambda tf, x: tf.reduce_sum(x, 1), MAP),
    "mean of columns": (lambda tf, x: tf.reduce_mean(x, axis=2), MAP),
    "variance": (lambda tf, x: tf.math.reduce_variance(x, [1, 2]), MAP),
    "deviation": (lambda tf, x: tf.math.reduce_std(x, -1, keepdims=True), MAP),
    "unit length": (lambda tf, x: tf.math.l2_normalize(x, -1), MAP),
    "joined rows": (lambda tf, x: tf.concat([x, -x], 1), MAP),
    "stacked": (lambda tf, x: tf.stack([x, 2.0 * x], 2), ROW),
    "unstacked": (lambda tf, x: tf.concat(tf.unstack(x, axis=1)[1:], -1), MAP),
    "split rows": (lambda tf, x: tf.concat(tf.split(x, [2, 5], axis=1)[::-1], 1), MAP),
    "gathered rows": (lambda tf, x: tf.gather(x, [4, 0, 4], axis=1), MAP),
    "tiled": (lambda tf, x: tf.tile(x, [1, 2, 1, 3]), MAP),
    "repeated": (lambda tf, x: tf.repeat(x, 2, axis=2), MAP),
    "reversed": (lambda tf, x: tf.reverse(x, [1, 3]), MAP),
    "resized": (lambda tf, x: tf.image.resize(x, (9, 12)), MAP),
    "resized nearest": (lambda tf, x: tf.image.resize(x, (9, 3), "nearest"), MAP),
    "product": (lambda tf, x: tf.matmul(x, x, transpose_b=True), ROW),
    "squared difference": (lambda tf, x: tf.math.squared_difference(x, 0.5 * x), MAP),
    "log softmax": (lambda tf, x: tf.nn.log_softmax(x), ROW),
}


@pytest.fixture(scope="module")
def tf() -> Any:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def model_of(tf: Any, make: Callable[[Any], Any], shape: tuple[int, ...], **options: Any) -> Any:
    """A model of one function of tensors, with random weights."""
    image = tf.keras.Input(shape, name="image", **options)
    model = tf.keras.Model(image, make(image), name="model")
    rng = np.random.default_rng(1)
    for layer in model.layers:
        arrays = layer.get_weights()
        layer.set_weights([new_weight(rng, array) for array in arrays])
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()
    return model


def new_weight(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Positive where it might be a variance."""
    if array.dtype.kind in "iu":
        return array
    return rng.uniform(0.2, 0.8, array.shape).astype(array.dtype) * rng.choice(
        [-1, 1], array.shape if array.ndim > 1 else ()
    ).astype(array.dtype) ** (array.ndim > 1)


def as_nhwc(array: np.ndarray) -> np.ndarray:
    """In the graph's axes: ones in front, or all axes but the last two as rows."""
    shape = (1, 1, *array.shape[1:])[-max(3, array.ndim - 1) :]
    return array.reshape(len(array), -1, *shape[-2:])


def assert_equal_everywhere(model: Any, image: np.ndarray, folder: Path) -> Graph:
    """The live model and both files in the engine, and what verify says of them."""
    outputs = model(image, training=False)
    expected = [np.asarray(x) for x in (outputs if isinstance(outputs, list) else [outputs])]
    model.save(folder / "model.h5")
    model.save(folder / "model.keras")
    for source in (model, folder / "model.h5", folder / "model.keras"):
        phonebit.convert(source, folder / "model.pbit", replace_any=True)
        network = phonebit.Network.load(folder / "model.pbit", device="cpu")
        result = network(as_nhwc(image))
        results = list(result.values()) if isinstance(result, dict) else [result]
        for ours, theirs in zip(results, expected, strict=True):
            # Sums of fewer than 1,000 terms of about 1, in another order.
            ours = np.reshape(ours, theirs.shape)
            np.testing.assert_allclose(ours, theirs, atol=2e-5, rtol=2e-5)
    assert verify(model, folder / "model.pbit", as_nhwc(image)).passed
    return import_larq(model)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_keras_does(tf: Any, tmp_path: Path, name: str) -> None:
    make, shape = LAYERS[name]
    lq = pytest.importorskip("larq", reason="Larq is not installed")
    layer = make(tf.keras.layers, lq.layers)
    image = np.random.default_rng(2).standard_normal((2, *shape)).astype(np.float32)
    graph = assert_equal_everywhere(model_of(tf, layer, shape), image, tmp_path)
    if name.startswith("sign"):
        assert graph.expected_binary


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_recorded_function_computes_what_tensorflow_does(
    tf: Any, tmp_path: Path, name: str
) -> None:
    function, shape = FUNCTIONS[name]
    image = np.random.default_rng(3).standard_normal((2, *shape)).astype(np.float32)
    model = model_of(tf, lambda x: function(tf, x), shape)
    assert_equal_everywhere(model, image, tmp_path)


def test_an_embedding_reads_whole_numbers(tf: Any, tmp_path: Path) -> None:
    layer = tf.keras.layers.Embedding(11, 5)
    for dtype in ("int32", "float32"):
        model = model_of(tf, lambda x: tf.keras.layers.LSTM(3)(layer(x)), (7,), dtype=dtype)
        numbers = np.random.default_rng(4).integers(0, 11, (2, 7)).astype(np.float32)
        phonebit.convert(model, tmp_path / "model.pbit", replace_any=True)
        ours = phonebit.Network.load(tmp_path / "model.pbit", device="cpu")(as_nhwc(numbers))
        theirs = np.asarray(model(numbers.astype(dtype)))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
