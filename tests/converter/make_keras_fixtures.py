"""Writes tests/converter/fixtures: tiny Keras models in every file format, with expected outputs.

Run once where TensorFlow and Larq are installed, and commit what changes:

    TF_USE_LEGACY_KERAS=1 python tests/converter/make_keras_fixtures.py [name ...]
    TF_USE_LEGACY_KERAS=1 python tests/converter/make_keras_fixtures.py --qkeras

Every model is saved as ``<name>.h5`` and ``<name>.keras``; ``<name>.npz`` holds its inputs (by
input name) and the outputs that the framework computes (``output_<i>``). The model with layers that
PhoneBit does not know goes into a folder of its own. Models named keras3_* are
written by Keras 3 in a process of its own, because TensorFlow can only load one Keras.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from keras3_fixture_models import (
    keras3_plain,
    keras3_sequential,
    keras3_shared_rules,
    keras3_slices,
)
from keras_fixture_models import custom_layers, quantizers, sequences, shared_rules, slices
from qkeras_fixture_models import qkeras_activations, qkeras_layers

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = {
    "custom_layers": "custom",
    "qkeras_activations": "qkeras",
    "qkeras_layers": "qkeras",
}
"""Of models that need more than Larq."""
BATCH = 2


def binary_convolutions(lq: Any, tf: Any) -> Any:
    """Quantizers, padding values, strides, dilation."""
    return _binary_convolutions(lq, tf, "binary_convolutions", range(4))


def more_binary_convolutions(lq: Any, tf: Any) -> Any:
    """Groups, rectangular and even kernels, strides beyond the kernel, activation arguments."""
    return _binary_convolutions(lq, tf, "more_binary_convolutions", range(4, 8))


def _binary_convolutions(lq: Any, tf: Any, name: str, chosen: range) -> Any:
    image = tf.keras.Input((9, 8, 6), name="image")
    variants: list[dict[str, Any]] = [
        {"kernel_quantizer": "ste_sign", "padding": "same"},
        {"kernel_quantizer": "approx_sign", "padding": "same", "pad_values": 1.0, "strides": 2},
        {
            "kernel_quantizer": "swish_sign",
            "padding": "same",
            "pad_values": -1.0,
            "strides": (1, 2),
        },
        {"kernel_quantizer": "magnitude_aware_sign", "padding": "same", "dilation_rate": 2},
        {"kernel_quantizer": lq.quantizers.SteSign(1.25), "groups": 2, "strides": 2},
        {"kernel_quantizer": "ste_sign", "kernel_size": (1, 3), "padding": "same", "strides": 3},
        {
            "kernel_quantizer": "ste_sign",
            "kernel_size": (4, 2),
            "padding": "same",
            "use_bias": False,
        },
        {"kernel_quantizer": lq.quantizers.MagnitudeAwareSign(), "activation": "relu"},
    ]
    inputs = ["ste_sign", "approx_sign", "swish_sign", lq.quantizers.SteSign()]
    outputs = []
    for i in chosen:
        options = {"kernel_size": 3, "input_quantizer": inputs[i % 4], **variants[i]}
        layer = lq.layers.QuantConv2D(4, **options, name=f"conv{i}")
        outputs.append(tf.keras.layers.BatchNormalization(epsilon=1e-5 * (i + 1))(layer(image)))
    return tf.keras.Model(image, outputs, name=name)


def mixed_precision_layers(lq: Any, tf: Any) -> Any:
    """Real input with binary weights, bits with float weights, Larq's activations."""
    image = tf.keras.Input((8, 8, 3), name="image")
    x = lq.layers.QuantConv2D(
        5, 3, padding="same", strides=2, kernel_quantizer="ste_sign", activation="hard_tanh"
    )(image)
    x = tf.keras.layers.BatchNormalization(scale=False)(x)
    x = lq.layers.QuantConv2D(4, 2, input_quantizer="ste_sign", activation="leaky_tanh")(x)
    x = tf.keras.layers.BatchNormalization(center=False, scale=False)(x)
    padded = lq.layers.QuantConv2D(
        4, 3, padding="same", pad_values=1.0, kernel_quantizer="ste_sign"
    )(x)
    plain = tf.keras.layers.Conv2D(3, (3, 1), padding="same", groups=1, activation="tanh")(x)
    marked = lq.layers.QuantConv2D(3, 1, kernel_quantizer=lq.quantizers.NoOp(precision=1))(x)
    return tf.keras.Model(image, [padded, plain, marked], name="mixed_precision_layers")


def dense_layers(lq: Any, tf: Any) -> Any:
    """Dense layers on one and on three axes."""
    image = tf.keras.Input((3, 4, 5), name="image")
    x = lq.layers.QuantDense(6, input_quantizer="ste_sign", kernel_quantizer="ste_sign")(image)
    x = tf.keras.layers.Flatten()(tf.keras.layers.Dropout(0.5)(x))
    x = tf.keras.layers.BatchNormalization()(x)
    x = lq.layers.QuantDense(
        8, input_quantizer="approx_sign", kernel_quantizer="magnitude_aware_sign", use_bias=False
    )(x)
    x = tf.keras.layers.BatchNormalization(momentum=0.9)(x)
    return tf.keras.Model(
        image, tf.keras.layers.Dense(4, activation="softmax")(x), name="dense_layers"
    )


def depthwise_layers(lq: Any, tf: Any) -> Any:
    """Depthwise and separable layers, float and binary."""
    image = tf.keras.Input((8, 7, 4), name="image")
    binary = {"input_quantizer": "ste_sign", "depthwise_quantizer": "ste_sign"}
    outputs = [
        lq.layers.QuantDepthwiseConv2D(3, padding="same", pad_values=1.0, **binary)(image),
        lq.layers.QuantDepthwiseConv2D(
            (2, 3),
            strides=2,
            input_quantizer="ste_sign",
            depthwise_quantizer="magnitude_aware_sign",
        )(image),
        lq.layers.QuantSeparableConv2D(
            5, 3, padding="same", pointwise_quantizer="ste_sign", depth_multiplier=2, **binary
        )(image),
        tf.keras.layers.DepthwiseConv2D(3, padding="same", depth_multiplier=3, strides=2)(image),
        tf.keras.layers.DepthwiseConv2D(2, dilation_rate=2, use_bias=False, activation="relu")(
            image
        ),
        tf.keras.layers.SeparableConv2D(3, (3, 2), padding="same", activation="sigmoid")(image),
    ]
    return tf.keras.Model(image, outputs, name="depthwise_layers")


def pooling_and_shapes(lq: Any, tf: Any) -> Any:
    """Pooling with both paddings, global pooling, padding and reshaping; pooling of bits."""
    layers = tf.keras.layers
    image = tf.keras.Input((7, 6, 4), name="image")
    outputs = [
        layers.MaxPooling2D(2)(image),
        layers.MaxPooling2D((3, 2), strides=2, padding="same")(image),
        layers.AveragePooling2D(3, strides=2, padding="same")(image),
        layers.AveragePooling2D((2, 3), strides=(1, 2))(image),
        layers.GlobalAveragePooling2D()(image),
        layers.GlobalMaxPooling2D(keepdims=True)(image),
        layers.ZeroPadding2D(((1, 2), (0, 3)))(image),
        layers.Reshape((6, -1))(layers.ZeroPadding2D(1)(image)),
        layers.Reshape((1, 1, 168))(image),
        layers.Dense(3)(layers.Reshape((14, 12))(image)),
        layers.Flatten()(layers.MaxPooling2D(3, strides=1)(image)),
    ]
    return tf.keras.Model(image, outputs, name="pooling_and_shapes")


def activation_layers(lq: Any, tf: Any) -> Any:
    """Every activation, as a layer and by name."""
    layers = tf.keras.layers
    image = tf.keras.Input((4, 5, 3), name="image")
    names = ["relu", "relu6", "tanh", "sigmoid", "hard_sigmoid", "linear", "softmax", "swish"]
    outputs = [layers.Activation(name)(image) for name in names]
    outputs += [
        layers.Activation(lq.activations.hard_tanh)(image),
        layers.Activation(lq.activations.leaky_tanh)(image),
        layers.ReLU()(image),
        layers.ReLU(max_value=0.75)(image),
        layers.ReLU(negative_slope=0.25)(image),
        layers.ReLU(max_value=1.0, negative_slope=0.125)(image),
        layers.ReLU(threshold=0.5)(image),
        layers.ReLU(max_value=1.0, negative_slope=0.25, threshold=0.5)(image),
        layers.LeakyReLU()(image),
        layers.LeakyReLU(alpha=0.125)(image),
        layers.Softmax()(image),
        layers.PReLU()(image),
        layers.PReLU(shared_axes=[1, 2])(image),
        layers.PReLU(shared_axes=[1, 3])(image),
        layers.PReLU()(layers.Flatten()(image)),
        tf.nn.leaky_relu(image),
    ]
    return tf.keras.Model(image, outputs, name="activation_layers")


def merges(lq: Any, tf: Any) -> Any:
    """Merging layers, TensorFlow functions on Keras tensors, constants, broadcasting, sharing."""
    layers = tf.keras.layers
    x = tf.keras.Input((4, 3, 4), name="image")
    shared = layers.Conv2D(4, 3, padding="same", name="shared")
    y, z = shared(x), shared(shared(x))
    gate = layers.Dense(4, activation="sigmoid")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    outputs = [
        layers.Add()([x, y, z]),
        layers.Multiply()([gate, x]),
        layers.Subtract()([x, y]),
        layers.Concatenate()([x, y, z]),
        layers.Add()([layers.GlobalMaxPooling2D()(x), y]),
        x + y,
        x - y,
        1.5 - x,
        x * 0.25 + 0.5,
        x * np.array([1.0, 2.0, -3.0, 0.5], np.float32),
        x / 4.0,
        tf.math.multiply(x, gate),
        tf.math.add(x, y, name="named"),
        tf.concat([x, y], axis=-1),
        tf.concat(axis=3, values=[y, x]),
        tf.reshape(x, [-1, 6, 8]),
        tf.clip_by_value(x, -0.5, 0.25),
        tf.nn.relu(tf.identity(x)),
    ]
    return tf.keras.Model(x, outputs, name="merges")


def nested_models(lq: Any, tf: Any) -> Any:
    """Models in models: called twice, with frozen and with unordered weights, three deep."""
    layers = tf.keras.layers
    inner_in = tf.keras.Input((4, 4, 4), name="inner_image")
    y = lq.layers.QuantConv2D(
        4, 3, padding="same", input_quantizer="ste_sign", kernel_quantizer="ste_sign", name="conv"
    )(inner_in)
    y = layers.BatchNormalization(name="bn")(y)
    frozen = layers.BatchNormalization(name="frozen")
    frozen.trainable = False
    inner = tf.keras.Model(inner_in, [y, layers.Conv2D(4, 1, name="last")(frozen(y))], name="inner")
    chain = tf.keras.Sequential(
        [
            layers.Conv2D(4, 2, padding="same", name="chain_conv"),
            layers.BatchNormalization(name="chain_bn"),
        ],
        "chain",
    )
    middle_in = tf.keras.Input((4, 4, 4), name="middle_image")
    middle = tf.keras.Model(
        middle_in, layers.Multiply()([chain(middle_in), middle_in]), name="middle"
    )
    image = tf.keras.Input((4, 4, 4), name="image")
    first, second = inner(image)
    _, third = inner(layers.Add(name="join")([first, second]))
    head = tf.keras.Sequential(
        [tf.keras.Input((4, 4, 4)), layers.Flatten(), layers.Dense(3)], "head"
    )
    return tf.keras.Model(image, [head(middle(third)), head(second)], name="nested_models")


def sequential(lq: Any, tf: Any) -> Any:
    """A small Sequential binary network with several inputs' worth of layer kinds."""
    layers = tf.keras.layers
    binary = {
        "input_quantizer": "ste_sign",
        "kernel_quantizer": "ste_sign",
        "kernel_constraint": "weight_clip",
        "use_bias": False,
    }
    return tf.keras.Sequential(
        [
            lq.layers.QuantConv2D(
                8,
                3,
                kernel_quantizer="ste_sign",
                kernel_constraint="weight_clip",
                use_bias=False,
                input_shape=(10, 10, 1),
            ),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(scale=False),
            lq.layers.QuantConv2D(8, 3, padding="same", **binary),
            layers.BatchNormalization(scale=False),
            layers.Flatten(),
            lq.layers.QuantDense(10, **binary),
            layers.BatchNormalization(scale=False),
            layers.Activation("softmax"),
        ],
        name="sequential",
    )


def integer_image(lq: Any, tf: Any) -> Any:
    """A uint8 input that a Rescaling layer turns into -1..1, and one per channel."""
    layers = tf.keras.layers
    image = tf.keras.Input((4, 4, 3), dtype="uint8", name="image")
    x = layers.Rescaling(1.0 / 127.5, offset=-1.0)(image)
    x = lq.layers.QuantConv2D(4, 3, kernel_quantizer="ste_sign")(x)
    y = layers.Rescaling([0.5, 0.25, 1.0], offset=[0.0, 1.0, -2.0])(tf.cast(image, "float32"))
    return tf.keras.Model(image, [x, y], name="integer_image")


def two_inputs(lq: Any, tf: Any) -> Any:
    """Two inputs, given as a dict, one of them of one axis."""
    layers = tf.keras.layers
    image, extra = tf.keras.Input((4, 4, 3), name="image"), tf.keras.Input((6,), name="extra")
    x = layers.Concatenate()([layers.Flatten()(image), extra])
    return tf.keras.Model({"extra": extra, "image": image}, layers.Dense(5)(x), name="two_inputs")


KERAS2_MODELS: list[Callable[[Any, Any], Any]] = [
    binary_convolutions,
    more_binary_convolutions,
    mixed_precision_layers,
    dense_layers,
    depthwise_layers,
    pooling_and_shapes,
    activation_layers,
    merges,
    nested_models,
    sequential,
    integer_image,
    two_inputs,
    quantizers,
    slices,
    custom_layers,
    sequences,
    shared_rules,
]


def randomize(model: Any, rng: np.random.Generator) -> None:
    """Random weights, and statistics that leave every batch normalization something to do."""
    arrays = []
    for variable in model.weights:
        name = getattr(variable, "path", variable.name)
        shape = tuple(variable.shape)
        if "iteration" in name:  # QKeras counts the steps of its training
            arrays.append(np.full(shape, -1))
        elif "variance" in name:
            arrays.append(rng.uniform(0.5, 2.0, shape))
        elif "gamma" in name:
            arrays.append(rng.uniform(-1.5, 1.5, shape))
        else:
            arrays.append(rng.normal(0, 0.5, shape))
    model.set_weights([array.astype(np.float32) for array in arrays])


def save(model: Any, rng: np.random.Generator) -> None:
    """Writes the model in both formats and its expected outputs."""
    randomize(model, rng)
    inputs = {}
    for tensor in model.inputs:
        # Keras 2 tensors know their layer; Keras 3 names them after it, in model.operations too.
        name = tensor.node.layer.name if hasattr(tensor, "node") else tensor.name
        shape = (BATCH, *tensor.shape[1:])
        if "uint8" in str(tensor.dtype):
            inputs[name] = rng.integers(0, 256, shape).astype(np.uint8)
        else:
            inputs[name] = rng.normal(0, 1, shape).astype(np.float32)
    feed = inputs if len(inputs) > 1 else next(iter(inputs.values()))
    outputs = model(feed, training=False)
    outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
    folder = FIXTURES / FOLDERS.get(model.name, "")
    folder.mkdir(exist_ok=True)
    for suffix in ("h5", "keras"):
        model.save(folder / f"{model.name}.{suffix}")
    deflate(folder / f"{model.name}.keras")
    arrays = {f"output_{i}": np.asarray(output) for i, output in enumerate(outputs)}
    np.savez_compressed(folder / f"{model.name}.npz", **inputs, **arrays)


def deflate(path: Path) -> None:
    """Rewrites a .keras archive with compressed members, to keep the repository small."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def main() -> None:
    """Writes all fixtures or those named; the Keras 3 ones in a second process."""
    FIXTURES.mkdir(exist_ok=True)
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if "--keras3" in sys.argv:
        import keras

        models = [keras3_plain, keras3_sequential, keras3_slices, keras3_shared_rules]
        for position, build in enumerate(models):
            if not names or build.__name__ in names:
                save(build(keras), np.random.default_rng(100 + position))
        return
    import larq as lq
    import tensorflow as tf

    if "--qkeras" in sys.argv:
        import qkeras

        for position, build3 in enumerate([qkeras_activations, qkeras_layers]):
            save(build3(qkeras, tf), np.random.default_rng(200 + position))
        return
    for position, build2 in enumerate(KERAS2_MODELS):
        if not names or build2.__name__ in names:
            save(build2(lq, tf), np.random.default_rng(position))
    environment = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
    subprocess.run([sys.executable, __file__, "--keras3", *names], check=True, env=environment)


if __name__ == "__main__":
    main()
