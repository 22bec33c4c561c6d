"""Fixture models with quantizers of several levels, recorded functions and custom layers."""

from __future__ import annotations

from typing import Any


def quantizers(lq: Any, tf: Any) -> Any:
    """Quantizers of several levels and of {0, 1}, on inputs, on kernels and as activations."""
    layers, q = tf.keras.layers, lq.quantizers
    image = tf.keras.Input((6, 5, 3), name="image")
    kinds = {
        "dorefa1": (q.DoReFa(1), "ste_sign"),
        "dorefa2": ("dorefa_quantizer", q.DoReFa(2, mode="weights")),
        "dorefa3": (q.DoReFa(3), q.DoReFa(1, mode="weights")),
        "heaviside": ("ste_heaviside", q.SteHeaviside()),
        "ternary": (q.SteTern(0.25), q.SteTern(0.3)),
        "network": ("ste_tern", q.SteTern(ternary_weight_networks=True)),
    }
    outputs = []
    for name, (inputs, kernels) in kinds.items():
        x = lq.layers.QuantConv2D(
            4, 3, padding="same", input_quantizer=inputs, kernel_quantizer=kernels, name=name
        )(image)
        outputs.append(layers.BatchNormalization()(x))
    x = layers.Activation(q.SteHeaviside())(layers.Activation(q.DoReFa(2))(outputs[0]))
    x = lq.layers.QuantConv2D(3, 2, activation=q.SteTern())(q.SteTern(0.1)(x))
    return tf.keras.Model(image, [*outputs, x], name="quantizers")


def slices(lq: Any, tf: Any) -> Any:
    """Slices, splits, pads and other functions that TensorFlow records as layers."""
    image = tf.keras.Input((5, 6, 8), name="image")
    low, high = tf.split(image, [3, 5], axis=-1)
    x = image[:, :, :, 2:5] + low * high[:, :, :, ::2]
    strided = tf.abs(image[:, ::2, ::3, ::-1]) - 1.0
    corner = image[:, 0, 0, 1:] / 3.0
    padded = tf.pad(x, [[0, 0], [1, 0], [0, 2], [3, 1]])
    padded = padded - tf.square(padded)
    picked = tf.gather(tf.maximum(padded, 0.25), [6, 3, 3, 0], axis=-1)
    pooled = tf.reduce_mean(-picked, axis=[1, 2], keepdims=True)
    flat = tf.squeeze(tf.minimum(tf.sign(pooled), 0.5), [1, 2])
    peak = tf.reduce_max(tf.expand_dims(flat, 1)[:, :, None, :] * pooled, axis=[1, 2])
    return tf.keras.Model(image, [strided, corner, padded, picked, flat, peak], name="slices")


def sequences(lq: Any, tf: Any) -> Any:
    """Layers along one axis: convolutions, pools, recurrent layers, norms."""
    layers = tf.keras.layers
    signs = {"input_quantizer": "ste_sign", "kernel_quantizer": "ste_sign"}
    steps = tf.keras.Input((7, 5), name="steps")
    x = lq.layers.QuantConv1D(6, 3, padding="causal", dilation_rate=2, name="causal", **signs)(
        steps
    )
    x = layers.MaxPooling1D(2)(layers.BatchNormalization()(x))
    x = lq.layers.QuantConv1D(4, 3, padding="same", pad_values=1.0, **signs)(x)
    x = layers.LayerNormalization()(layers.ZeroPadding1D(1)(x))
    x = layers.Bidirectional(layers.GRU(2, return_sequences=True), merge_mode="sum")(x)
    last = layers.LSTM(3, name="lstm")(layers.Permute((2, 1))(x))
    pooled = layers.GlobalAveragePooling1D()(layers.Conv1DTranspose(3, 2, strides=2)(x))
    return tf.keras.Model(steps, [x, last, pooled], name="sequences")


def shared_rules(lq: Any, tf: Any) -> Any:
    """Layers and functions that the rules of all importers translate."""
    layers = tf.keras.layers
    image = tf.keras.Input((4, 5, 6), name="image")
    x = layers.GroupNormalization(3)(layers.UpSampling2D((2, 1))(image))
    x = layers.Maximum()([x, layers.Conv2D(6, 1, activation="selu", name="one")(x)])
    parts = tf.reshape(x[:, 1:-1], (-1, 6, 5, 2, 3))
    x = tf.reshape(tf.transpose(parts, (0, 1, 2, 4, 3)), (-1, 6, 5, 6))
    x = lq.layers.QuantConv2DTranspose(
        4, 3, strides=2, padding="same", input_quantizer="ste_sign", kernel_quantizer="ste_sign"
    )(x)
    y = layers.Average()([tf.nn.depth_to_space(x, 2)[:, ::2, ::2], x[:, :, :, :1]])
    z = tf.reduce_max(tf.pad(x, [[0, 0], [1, 2], [0, 0], [0, 0]], "REFLECT"), axis=-1)
    return tf.keras.Model(image, [x, y, z], name="shared_rules")


def custom_layers(lq: Any, tf: Any) -> Any:
    """Registered layers of one's own, with and without weights, inside a nested model too."""
    scale = own_layers(tf)["Fixtures>ScaleAndShift"]
    swap = own_layers(tf)["Fixtures>SwapHalves"]
    image = tf.keras.Input((4, 4, 6), name="image")
    first = tf.keras.Input((4, 4, 6), name="first")
    x = tf.keras.layers.Conv2D(6, 1, name="inner_conv")(first)
    inner = tf.keras.Model(first, scale(name="inner_own")(x), name="inner")
    x = swap(name="swap")(scale(name="own")(image))
    return tf.keras.Model(image, inner(x), name="custom_layers")


def own_layers(tf: Any) -> dict[str, Any]:
    """Layer classes that PhoneBit does not know, by registered name."""

    @tf.keras.utils.register_keras_serializable("Fixtures")
    class ScaleAndShift(tf.keras.layers.Layer):  # type: ignore[misc, name-defined]
        """Every element has a factor of its own, every channel an offset."""

        def build(self, shape: Any) -> None:
            self.offset = self.add_weight(name="offset", shape=shape[-1:], trainable=False)
            self.factor = self.add_weight(name="factor", shape=shape[1:])
            super().build(shape)

        def call(self, x: Any) -> Any:
            return x * self.factor + self.offset

    @tf.keras.utils.register_keras_serializable("Fixtures")
    class SwapHalves(tf.keras.layers.Layer):  # type: ignore[misc, name-defined]
        """The second half of the channels, then the first."""

        def call(self, x: Any) -> Any:
            first, second = tf.split(x, 2, axis=-1)
            return tf.concat([second, first], axis=-1)

    return {"Fixtures>ScaleAndShift": ScaleAndShift, "Fixtures>SwapHalves": SwapHalves}
