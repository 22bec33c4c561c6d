"""Fixture models of Keras 3."""

from __future__ import annotations

from typing import Any


def keras3_plain(keras: Any) -> Any:
    """Plain layers, keras.ops, nested and shared layers in a Functional model of Keras 3."""
    layers, ops = keras.layers, keras.ops
    image = keras.Input((5, 5, 4), name="image")
    x = layers.Conv2D(4, 3, padding="same", name="first", activation="relu", groups=2)(image)
    y = layers.SeparableConv2D(4, 3, padding="same", name="separable")(x)
    x = ops.add(x + y, 1.0) * 0.5
    x = ops.concatenate([x, y], -1)
    x = layers.PReLU(shared_axes=[1, 2])(x)
    x = layers.Conv2D(4, 2, strides=2)(x)
    x = ops.clip(ops.relu(x), 0.1, 1.5)
    shared = keras.Sequential(
        [keras.Input((2, 2, 4)), layers.Conv2D(4, 1), layers.BatchNormalization()], name="shared"
    )
    x = layers.Activation("hard_sigmoid")(shared(shared(x)))
    x = layers.Dropout(0.1)(layers.Rescaling(2.0, -1.0)(x))
    pooled = layers.GlobalAveragePooling2D()(x)
    head = layers.Dense(3, activation="softmax")(layers.Flatten()(layers.MaxPooling2D(2)(x)))
    return keras.Model(image, [head, pooled], name="keras3_plain")


def keras3_sequential(keras: Any) -> Any:
    """A Sequential model of Keras 3."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((7, 7, 2), name="image"),
            layers.Conv2D(4, 3, strides=2),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3, padding="same", activation="leaky_relu"),
            layers.LeakyReLU(negative_slope=0.25),
            layers.ReLU(max_value=2.0),
            layers.Flatten(),
            layers.Dense(3),
        ],
        name="keras3_sequential",
    )
    return model


def keras3_slices(keras: Any) -> Any:
    """Slices, splits and pads with keras.ops."""
    ops = keras.ops
    image = keras.Input((5, 6, 8), name="image")
    first, second, third = ops.split(image, [2, 5], axis=-1)
    x = ops.pad(image[:, ::2, ::3, 1:6], [[0, 0], [1, 1], [0, 0], [2, 1]])
    y = ops.take(-ops.absolute(x), [1, 0, 4], axis=-1) / 5.0
    pooled = ops.squeeze(ops.mean(ops.maximum(y, -0.25), axis=[1, 2], keepdims=True), [1, 2])
    peak = ops.max(ops.square(third), axis=[1, 2])
    return keras.Model(
        image, [first, second, ops.sign(y), pooled, ops.expand_dims(peak, 1)], name="keras3_slices"
    )


def keras3_shared_rules(keras: Any) -> Any:
    """Layers and operations that the rules of all importers translate."""
    layers, ops = keras.layers, keras.ops
    steps = keras.Input((6, 5), name="steps")
    x = layers.Conv1D(4, 3, padding="causal", activation="selu")(steps)
    x = layers.Bidirectional(layers.LSTM(3, return_sequences=True), name="both")(x)
    x = layers.LayerNormalization()(ops.transpose(x, (0, 2, 1)))
    gated = ops.maximum(layers.GRU(4, return_sequences=True)(x), -0.5)
    image = ops.reshape(x, (-1, 6, 3, 2))
    image = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(image)
    image = layers.UpSampling2D()(ops.flip(image[:, 1:-1], 2))
    return keras.Model(steps, [x, gated, image], name="keras3_shared_rules")
