"""Fixture models of QKeras 0.9."""

from __future__ import annotations

from typing import Any


def qkeras_activations(qkeras: Any, tf: Any) -> Any:
    """Every quantizer of activations, spelled as text and as an object."""
    q = qkeras
    image = tf.keras.Input((5, 4, 3), name="image")
    quantizers = [
        q.binary(alpha=1),
        q.binary(alpha=0.5),
        "binary(use_01=True)",
        q.ternary(),
        q.ternary(alpha=2.0, threshold=0.25),
        q.quantized_bits(4, 0, 1),
        "quantized_bits(3, 1, keep_negative=False)",
        q.quantized_bits(1, 0, 1),
        q.quantized_bits(8, 2, 1),
        q.quantized_bits(16, 6),
        "quantized_relu(2)",
        q.quantized_relu(8, 3),
        q.quantized_relu(4, 1, negative_slope=0.25),
        q.quantized_relu(4, 1, use_sigmoid=1),
        q.quantized_tanh(4, symmetric=True),
        q.quantized_tanh(4, use_real_tanh=True),
        "quantized_sigmoid(4)",
        q.quantized_sigmoid(4, symmetric=True, use_real_sigmoid=True),
    ]
    outputs = [
        q.QActivation(quantizer, name=f"act{i}")(image) for i, quantizer in enumerate(quantizers)
    ]
    return tf.keras.Model(image, outputs, name="qkeras_activations")


def qkeras_layers(qkeras: Any, tf: Any) -> Any:
    """Layers with quantized kernels and biases, with fixed scales and with scales of their own."""
    q, layers = qkeras, tf.keras.layers
    image = tf.keras.Input((6, 5, 4), name="image")
    signs = q.QActivation("binary(alpha=1)", name="signs")(image)
    bias = q.quantized_bits(4, 0, 1)
    kernels = {
        "sign": q.binary(alpha=1),
        "sign_auto": q.binary(alpha="auto"),
        "sign_open": q.binary(),
        "ternary": q.ternary(alpha=1.0),
        "ternary_auto": q.ternary(alpha="auto"),
        "bits": q.quantized_bits(4, 0, 1, alpha=1.0),
        "bits_open": q.quantized_bits(4, 0, 1),
        "bits_auto": q.quantized_bits(3, 1, 1, alpha="auto"),
    }
    outputs = [
        q.QConv2D(3, 3, kernel_quantizer=kernel, bias_quantizer=bias, name=name)(signs)
        for name, kernel in kernels.items()
    ]
    folded = q.QConv2DBatchnorm(
        3,
        2,
        kernel_quantizer=kernels["bits_auto"],
        activation="quantized_relu(3, 1)",
        name="folded",
    )(image)
    depthwise = q.QDepthwiseConv2DBatchnorm(
        2, depthwise_quantizer=kernels["bits_auto"], use_bias=False, name="folded_depthwise"
    )(folded)
    separable = q.QSeparableConv2D(
        3,
        2,
        depthwise_quantizer=kernels["bits"],
        pointwise_quantizer=kernels["sign"],
        bias_quantizer=bias,
        name="separable",
    )(image)
    dense = q.QDense(3, kernel_quantizer=kernels["ternary"], name="dense")(layers.Flatten()(signs))
    return tf.keras.Model(image, [*outputs, depthwise, separable, dense], name="qkeras_layers")
