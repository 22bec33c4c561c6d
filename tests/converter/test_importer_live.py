"""The Larq importer and TensorFlow: live models and exact arithmetic."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit.converter.importers.keras.activations import keras_activations, load_keras
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.interpreter import evaluate_node, run
from phonebit.converter.ir import Graph
from phonebit.converter.ops import BatchNorm, Conv2D, Quantize
from phonebit.errors import ConversionError, UnsupportedLayerError
from support import larq_networks
from support.larq_exactness import FLOAT32_BITS, exactness

pytestmark = pytest.mark.framework

FIXTURES = Path(__file__).parent / "fixtures"
ROUNDED = ("softmax", "Softmax", "sigmoid", "tanh")


@pytest.fixture(scope="module")
def tf() -> Any:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


@pytest.fixture(scope="module")
def lq(tf: Any) -> Any:
    return pytest.importorskip("larq", reason="Larq is not installed")


def assert_equal_graphs(one: Graph, other: Graph) -> None:
    """Same nodes with the same parameters."""
    assert (one.types, one.inputs, one.outputs) == (other.types, other.inputs, other.outputs)
    assert one.expected_binary == other.expected_binary
    for mine, yours in zip(one.nodes, other.nodes, strict=True):
        assert (mine.name, mine.inputs, mine.value) == (yours.name, yours.inputs, yours.value)
        assert type(mine.op) is type(yours.op)
        if isinstance(mine.op, Conv2D | BatchNorm):
            for key, value in vars(mine.op).items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(value, getattr(yours.op, key))
                elif key != "epilogue":
                    assert value == getattr(yours.op, key)


def assert_equal_to_the_last_bit(
    model: Any, graph: Graph, image: np.ndarray, leave_out: set[str]
) -> None:
    """Every value of the imported graph equals the framework's; some must be left out."""
    expected = keras_activations(model, image)
    values = run(graph, {graph.inputs[0]: image}, list(graph.types))
    names = [name for name in graph.types if name in expected and name not in leave_out]
    assert len(names) > len(graph.types) / 2
    for name in names:
        np.testing.assert_array_equal(values[name], expected[name], err_msg=name)


# --- exact arithmetic -----------------------------------------------------------------------------


def random_layers(tf: Any, lq: Any, x: Any, rng: np.random.Generator, depth: int) -> Any:
    """A random body: binary and float convolutions, pools, activations, shortcuts, branches."""
    layers = tf.keras.layers
    for _ in range(depth):
        channels = int(rng.choice([1, 7, 8, 31, 32, 33, 40]))
        size = [int(k) for k in rng.integers(1, 4, 2)]
        padding = str(rng.choice(["same", "valid"]))
        strides = int(rng.integers(1, 3))
        kind = rng.integers(0, 7)
        if min(x.shape[1:3]) < 4:
            padding, strides, kind = "same", 1, 0
        if kind <= 2:
            quantizer = str(rng.choice(["ste_sign", "approx_sign", "swish_sign"]))
            kernel = str(rng.choice(["ste_sign", "swish_sign", "magnitude_aware_sign"]))
            y = lq.layers.QuantConv2D(
                channels,
                size,
                strides=strides,
                padding=padding,
                pad_values=float(rng.choice([-1, 0, 1])),
                use_bias=bool(rng.integers(2)),
                input_quantizer=quantizer,
                kernel_quantizer=kernel,
                activation=rng.choice([None, "relu", "hard_tanh"]),
            )(x)
            y = layers.BatchNormalization()(y)
            x = y + x if y.shape == x.shape else y
        elif kind == 3:
            x = lq.layers.QuantDepthwiseConv2D(
                size[0], padding=padding, input_quantizer="ste_sign", depthwise_quantizer="ste_sign"
            )(x)
        elif kind == 4:
            pool = layers.MaxPooling2D if rng.integers(2) else layers.AveragePooling2D
            x = pool(2, strides=strides, padding="valid")(x)
        elif kind == 5:
            x = layers.Concatenate()([x, layers.ReLU(negative_slope=0.5)(x)])
        else:
            x = layers.PReLU(shared_axes=[1, 2])(layers.ZeroPadding2D(1)(x))
    return x


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_in_exact_arithmetic_agree_to_the_last_bit(
    tf: Any, lq: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = (*(int(n) for n in rng.integers(5, 12, 2)), int(rng.choice([1, 3, 31, 32, 33])))
    image = tf.keras.Input(shape)
    x = random_layers(tf, lq, image, rng, depth=4)
    x = tf.keras.layers.Flatten()(x)
    x = lq.layers.QuantDense(9, input_quantizer="ste_sign", kernel_quantizer="ste_sign")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    model = tf.keras.Model(image, tf.keras.layers.Activation("softmax", name="softmax")(x))
    values = rng.integers(-8, 9, (2, *shape)).astype(np.float32)
    larq_networks.make_dyadic(model, values, seed)
    needs = {entry.layer: entry.bits for entry in exactness(model, values)}
    needs.pop("softmax")
    assert max(needs.values()) <= FLOAT32_BITS, "this seed is not exact; choose another"
    assert_equal_to_the_last_bit(model, import_larq(model), values, {"softmax"})


# --- quantizers -----------------------------------------------------------------------------------


def one_layer(lq: Any, tf: Any, **quantizers: Any) -> Any:
    image = tf.keras.Input((4, 4, 2))
    return tf.keras.Model(image, lq.layers.QuantConv2D(3, 3, name="conv", **quantizers)(image))


def kernel_of(graph: Graph) -> np.ndarray:
    return next(node.op.weights for node in graph.nodes if isinstance(node.op, Conv2D))


def test_own_sign_functions_of_live_models_are_recognised(tf: Any, lq: Any) -> None:
    def my_sign(x: Any) -> Any:
        return tf.where(x >= 0, 1.0, -1.0)

    def my_scaled_sign(x: Any) -> Any:
        return my_sign(x) * tf.reduce_mean(tf.abs(x), axis=[0, 1, 2])

    graph = import_larq(one_layer(lq, tf, input_quantizer=my_sign, kernel_quantizer=my_sign))
    assert graph.expected_binary == ["conv"]
    assert set(np.unique(kernel_of(graph))) == {-1.0, 1.0}
    kernel = kernel_of(import_larq(one_layer(lq, tf, kernel_quantizer=my_scaled_sign)))
    assert all(len(np.unique(np.abs(channel))) == 1 for channel in kernel)


def test_quantizers_of_several_levels_agree_around_their_thresholds(tf: Any, lq: Any) -> None:
    quantizers = {
        "heaviside": lq.quantizers.SteHeaviside(),
        "ternary": lq.quantizers.SteTern(0.3),
        "dorefa": lq.quantizers.DoReFa(3),
        "sign of three values": tf.sign,
        "own": lambda x: tf.where(x > 0.7, 3.0, tf.where(x >= -0.1, 0.0, -1.0)),
    }
    for name, quantizer in quantizers.items():
        graph = import_larq(one_layer(lq, tf, input_quantizer=quantizer))
        node = graph.producer("conv/input_quantizer")
        assert isinstance(node.op, Quantize), name
        near = [np.nextafter(node.op.thresholds, np.float32(end)) for end in (-9, 9)]
        numbers = np.concatenate([*near, node.op.thresholds, np.linspace(-3, 3, 99)])
        numbers = numbers[np.abs(numbers) > 1e-37].astype(np.float32).reshape(1, 1, -1, 1)
        ours = evaluate_node(node, [numbers])["conv/input_quantizer"]
        np.testing.assert_array_equal(ours, quantizer(numbers), err_msg=name)


def test_live_kernel_quantizers_are_asked_themselves(tf: Any, lq: Any) -> None:
    quantizers = {
        "smooth": lambda w: tf.tanh(3 * w),
        "dorefa": lq.quantizers.DoReFa(2, mode="weights"),
        "network": lq.quantizers.SteTern(ternary_weight_networks=True),
        "strict": lambda w: tf.where(w > 0, 1.0, -1.0),
    }
    for name, quantizer in quantizers.items():
        model = one_layer(lq, tf, kernel_quantizer=quantizer)
        expected = np.asarray(quantizer(model.layers[-1].get_weights()[0]))
        ours = kernel_of(import_larq(model))
        np.testing.assert_array_equal(ours, expected.transpose(3, 0, 1, 2), err_msg=name)


def test_quantizers_that_count_flips_are_read_and_go_on_counting(tf: Any, lq: Any) -> None:
    class Own(lq.quantizers.SteSign):  # type: ignore[misc, name-defined]
        """A quantizer of one's own, which is asked what it computes."""

    kernels = {
        "sign": lq.quantizers.SteSign(),
        "network": lq.quantizers.SteTern(ternary_weight_networks=True),
        "own": Own(metrics=["flip_ratio"]),
    }
    for name, quantizer in kernels.items():
        with lq.context.metrics_scope(["flip_ratio"]):
            model = one_layer(lq, tf, input_quantizer="ste_sign", kernel_quantizer=quantizer)
            model(np.ones((1, 4, 4, 2), np.float32))
            counted = [np.asarray(value) for value in quantizer.flip_ratio.variables]
            kernel = kernel_of(import_larq(model))
            expected = type(quantizer).from_config(quantizer.get_config())
            expected._custom_metrics = None
        latent = model.layers[-1].get_weights()[0]
        wanted = np.asarray(expected(latent)).transpose(3, 0, 1, 2)
        np.testing.assert_array_equal(kernel, wanted, err_msg=name)
        for before, after in zip(counted, quantizer.flip_ratio.variables, strict=True):
            np.testing.assert_array_equal(before, np.asarray(after), err_msg=name)


def test_functions_of_activations_that_are_no_steps_are_refused(tf: Any, lq: Any) -> None:
    cases = {
        "neither a sign nor a step function": tf.tanh,
        "each batch": lq.quantizers.MagnitudeAwareSign(),
        "fails on a test array": lambda x: x.no_such_method(),
        "changes the shape": lambda x: x[..., :1],
        "other results each time": lambda x: tf.sign(x + tf.random.normal(tf.shape(x))),
    }
    for message, quantizer in cases.items():
        with pytest.raises(UnsupportedLayerError, match=message):
            model = one_layer(lq, tf)  # Larq would call it when it builds the layer
            model.layers[-1].input_quantizer = quantizer
            import_larq(model)


def test_models_saved_with_quantized_weights_import_the_same(
    tf: Any, lq: Any, tmp_path: Path
) -> None:
    for quantizer in ("ste_sign", "magnitude_aware_sign"):
        model = one_layer(lq, tf, input_quantizer="ste_sign", kernel_quantizer=quantizer)
        model.save(tmp_path / "latent.h5")
        with lq.context.quantized_scope(True):
            model.save(tmp_path / "quantized.h5")
        latent, quantized = (
            kernel_of(import_larq(tmp_path / f"{name}.h5")) for name in ("latent", "quantized")
        )
        np.testing.assert_allclose(latent, quantized, rtol=1e-6)


def test_zero_and_subnormal_latent_weights_count_as_plus_one(tf: Any, lq: Any) -> None:
    model = one_layer(lq, tf, kernel_quantizer="ste_sign", use_bias=False)
    kernel = np.resize(np.array([0.0, -0.0, 1e-40, -1e-40, -1e-37], np.float32), (3, 3, 2, 3))
    model.layers[-1].set_weights([kernel])
    expected = np.asarray(lq.quantizers.SteSign()(kernel)).transpose(3, 0, 1, 2)
    np.testing.assert_array_equal(kernel_of(import_larq(model)), expected)


# --- the framework's activations ------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["h5", "keras"])
@pytest.mark.parametrize(
    "name",
    sorted(p.stem for p in FIXTURES.glob("*.npz") if not p.stem.startswith("keras3")),
)
def test_activations_have_the_names_and_values_of_the_graph(
    lq: Any, name: str, suffix: str
) -> None:
    model = load_keras(FIXTURES / f"{name}.{suffix}")
    with np.load(FIXTURES / f"{name}.npz") as arrays:
        inputs = {key: arrays[key] for key in arrays if not key.startswith("output_")}
    activations = keras_activations(model, inputs)
    graph = import_larq(FIXTURES / f"{name}.{suffix}")
    batch = {key: activations[key] for key in graph.inputs}
    values = run(graph, batch, list(graph.types))
    layers = {node.value for node in graph.nodes if node.value == node.sources[0]}
    assert layers <= set(activations)
    for value in set(activations) & set(values):
        np.testing.assert_allclose(values[value], activations[value], atol=1e-5, err_msg=value)
    assert_equal_graphs(graph, import_larq(model))


def test_subclassed_models_are_refused(tf: Any) -> None:
    class Own(tf.keras.Model):  # type: ignore[misc, name-defined]
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(ConversionError):
        import_larq(Own())
