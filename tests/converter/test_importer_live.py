"""The Larq importer beside TensorFlow: live models, exact arithmetic, networks of larq-zoo."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from phonebit.converter.importers.keras_activations import keras_activations, load_keras
from phonebit.converter.importers.larq import import_larq
from phonebit.converter.interpreter import run
from phonebit.converter.ir import BatchNorm, Conv2D, Graph
from phonebit.errors import ConversionError, UnsupportedLayerError

pytestmark = pytest.mark.framework

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).parent / "fixtures"
ROUNDED = ("softmax", "Softmax", "sigmoid", "tanh")


@pytest.fixture(scope="module")
def tf() -> Any:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


@pytest.fixture(scope="module")
def lq(tf: Any) -> Any:
    return pytest.importorskip("larq", reason="Larq is not installed")


@pytest.fixture(scope="module")
def zoo(lq: Any) -> ModuleType:
    """benchmarks/peers/larq_zoo_models.py, which knows how to make networks exact."""
    pytest.importorskip("larq_zoo", reason="larq-zoo is not installed")
    path = ROOT / "benchmarks" / "peers" / "larq_zoo_models.py"
    spec = importlib.util.spec_from_file_location("larq_zoo_models", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


def assert_equal_to_the_last_bit(model: Any, image: np.ndarray, leave_out: set[str]) -> None:
    """Every value of the imported graph equals the framework's; some must be left out."""
    graph = import_larq(model)
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
    tf: Any, lq: Any, zoo: ModuleType, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = (*(int(n) for n in rng.integers(5, 12, 2)), int(rng.choice([1, 3, 31, 32, 33])))
    image = tf.keras.Input(shape)
    x = random_layers(tf, lq, image, rng, depth=4)
    x = tf.keras.layers.Flatten()(x)
    x = lq.layers.QuantDense(9, input_quantizer="ste_sign", kernel_quantizer="ste_sign")(x)
    x = tf.keras.layers.BatchNormalization()(x)
    model = tf.keras.Model(image, tf.keras.layers.Activation("softmax", name="softmax")(x))
    picture = rng.integers(-8, 9, (2, *shape)).astype(np.float32)
    zoo.make_dyadic(model, picture, seed)
    needs = {entry.layer: entry.bits for entry in zoo.exactness(model, picture)}
    needs.pop("softmax")
    assert max(needs.values()) <= zoo.FLOAT32_BITS, "this seed is not exact; choose another"
    assert_equal_to_the_last_bit(model, picture, {"softmax"})


@pytest.mark.parametrize("network", ["quicknet", "birealnet", "binary_alexnet"])
def test_zoo_networks_from_h5_and_live_agree(zoo: ModuleType, tmp_path: Path, network: str) -> None:
    model = zoo.build(network, dyadic=True, size=64, classes=10)
    model.save(tmp_path / "model.h5", include_optimizer=False)
    assert_equal_graphs(import_larq(tmp_path / "model.h5"), import_larq(model))


@pytest.mark.parametrize("network", ["quicknet", "birealnet", "binary_alexnet"])
def test_zoo_networks_in_exact_arithmetic_agree_to_the_last_bit(
    zoo: ModuleType, network: str
) -> None:
    model = zoo.build(network, dyadic=True, size=64, classes=10)
    picture = zoo.integer_pictures(2, 64, seed=5)
    softmax = model.layers[-1].name
    inexact = [e.layer for e in zoo.exactness(model, picture) if e.bits > zoo.FLOAT32_BITS]
    assert inexact == [softmax]
    assert_equal_to_the_last_bit(model, picture, {softmax})


def test_zoo_networks_with_random_statistics_choose_the_same_class(zoo: ModuleType) -> None:
    for network in zoo.NETWORKS:
        model = zoo.build(network, dyadic=False, size=64, classes=10)
        pictures = zoo.real_pictures(4, 64, seed=7)
        graph = import_larq(model)
        ours = run(graph, {graph.inputs[0]: pictures})[graph.outputs[0]]
        theirs = np.asarray(model(pictures, training=False))
        np.testing.assert_array_equal(ours.reshape(4, -1).argmax(1), theirs.argmax(1))


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


def test_functions_that_are_no_sign_are_refused_with_the_reason(tf: Any, lq: Any) -> None:
    cases = {
        "sign maps both to": tf.sign,
        "maps -0 and 0 to -1": lambda x: tf.where(x > 0, 1.0, -1.0),
        "is not a sign": lambda x: tf.where(x > 0, 1.0, 0.0),
        "0 and 1": lq.quantizers.SteHeaviside(),
        "ternary": "ste_tern",
        "several bits": lq.quantizers.DoReFa(2),
    }
    for message, quantizer in cases.items():
        with pytest.raises(UnsupportedLayerError, match=message):
            import_larq(one_layer(lq, tf, kernel_quantizer=quantizer))


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
    "name", sorted(p.stem for p in FIXTURES.glob("*.npz") if not p.stem.startswith("keras3"))
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


def test_files_with_python_code_are_not_given_to_the_framework(
    tf: Any, lq: Any, tmp_path: Path
) -> None:
    image = tf.keras.Input((4, 4, 2))
    model = tf.keras.Model(image, tf.keras.layers.Lambda(lambda x: x * 2, name="code")(image))
    model.save(tmp_path / "model.h5")
    with pytest.raises(ConversionError, match="Python code"):
        load_keras(tmp_path / "model.h5")
    with pytest.raises(UnsupportedLayerError, match="Python code"):
        import_larq(tmp_path / "model.h5")


def test_subclassed_models_are_refused(tf: Any) -> None:
    class Own(tf.keras.Model):  # type: ignore[misc, name-defined]
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(ConversionError):
        import_larq(Own())
