"""All networks of larq-zoo, from files and live, compared with TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zoo_networks
from test_importer_live import assert_equal_graphs, assert_equal_to_the_last_bit, lq, tf

from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.keras.activations import keras_activations, load_keras
from phonebit.converter.importers.keras.graph import Tensor
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.importers.keras.plugin import CustomLayer
from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Conv2D, Input, Quantize, Sign
from phonebit.errors import UnsupportedLayerError
from phonebit.format.records import DataType
from phonebit.network import Network
from support import larq_networks
from support.larq_exactness import FLOAT32_BITS, exactness

__all__ = ["lq", "tf"]

pytestmark = pytest.mark.framework

NETWORKS = list(zoo_networks.SIZES)
Subject = tuple[Any, np.ndarray, Graph]


@pytest.fixture(scope="module", params=NETWORKS)
def exact_numbers(request: pytest.FixtureRequest, tf: Any, lq: Any) -> zoo_networks.MadeUp:
    pytest.importorskip("larq_zoo", reason="larq-zoo is not installed")
    return zoo_networks.exact(request.param)


@pytest.fixture
def exact(exact_numbers: zoo_networks.MadeUp) -> Subject:
    """A network in exact arithmetic, images, and the imported graph."""
    return *exact_numbers.ready(), exact_numbers.graph


@pytest.fixture(scope="module", params=NETWORKS)
def random_numbers(request: pytest.FixtureRequest, tf: Any, lq: Any) -> zoo_networks.MadeUp:
    pytest.importorskip("larq_zoo", reason="larq-zoo is not installed")
    return zoo_networks.random(request.param)


@pytest.fixture
def random(random_numbers: zoo_networks.MadeUp) -> Subject:
    """A network with random weights, images, and the imported graph."""
    return *random_numbers.ready(), random_numbers.graph


# --- exact arithmetic -----------------------------------------------------------------------------


def test_every_layer_agrees_to_the_last_bit(exact: Subject) -> None:
    model, images, graph = exact
    softmax = model.layers[-1].name
    needs = {entry.layer: entry.bits for entry in exactness(model, images)}
    needs.pop(softmax)
    assert max(needs.values()) <= FLOAT32_BITS, "this seed is not exact; choose another"
    assert_equal_to_the_last_bit(model, graph, images, {softmax})


def test_a_file_gives_the_same_graph_as_the_live_model(exact: Subject, tmp_path: Path) -> None:
    model, _, live = exact
    model.save(tmp_path / "model.h5", include_optimizer=False)
    has_lambdas = any(type(layer).__name__ == "Lambda" for layer in model.layers)
    if has_lambdas:
        with pytest.raises(UnsupportedLayerError, match="--trust-lambdas"):
            import_larq(tmp_path / "model.h5")
    graph = import_larq(tmp_path / "model.h5", trust_lambdas=has_lambdas)
    assert_equal_graphs(graph, live)


def test_the_engine_agrees_to_the_last_bit(tf: Any, exact: Subject, tmp_path: Path) -> None:
    model, images, _ = exact
    logits = zoo_networks.without_softmax(tf, model)
    conversion = convert_graph(import_larq(logits), strict=True)
    (tmp_path / "model.pbit").write_bytes(conversion.content)
    ours = Network.load(tmp_path / "model.pbit", device="cpu").forward(images)
    np.testing.assert_array_equal(np.asarray(ours).reshape(len(images), -1), logits(images))


# --- random weights -------------------------------------------------------------------------------


def assert_layer_agrees(node: Node, graph: Graph, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Bits, levels and sums of unscaled signs are equal; real sums agree to 1e-5 of their size."""
    bits = graph.types[node.inputs[0]].dtype == DataType.BIT
    plain = isinstance(node.op, Conv2D) and bits and set(np.unique(node.op.weights)) <= {-1, 1}
    if isinstance(node.op, Sign | Quantize) or plain:
        np.testing.assert_array_equal(ours, theirs, err_msg=node.name)
    else:
        size = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * size, err_msg=node.name)


def assert_every_layer_alone_agrees(model: Any, graph: Graph, images: np.ndarray) -> None:
    """Each layer is given what Keras computed in front of it."""
    theirs = keras_activations(model, images)
    values: dict[str, np.ndarray] = {}
    compared = 0
    for node in graph.nodes:
        (name,) = node.outputs
        if isinstance(node.op, Input):
            values[name] = images
            continue
        ours = evaluate_node(node, [values[value] for value in node.inputs])[name]
        values[name] = ours
        if name in theirs:
            assert_layer_agrees(node, graph, ours, theirs[name])
            values[name] = theirs[name].astype(ours.dtype)
            compared += 1
    assert compared > 0.9 * len(graph.nodes)


def test_every_layer_alone_agrees_with_random_weights(random: Subject) -> None:
    model, images, graph = random
    assert_every_layer_alone_agrees(model, graph, images)


def rescale(layer: CustomLayer) -> Tensor:
    """larq-zoo's LearnedRescaleLayer: a scale each for rows, columns and channels."""
    (x,) = layer.inputs
    height, width, channels = x.shape
    rows, columns = layer.weight("scale_h", (height, 1, 1)), layer.weight("scale_w", (1, width, 1))
    return layer.multiply(x, rows * columns * layer.weight("scale_c", (1, 1, channels)))


@pytest.mark.parametrize(
    "factory",
    ["ResNet18FP", "StrongBaselineNetBAN", "StrongBaselineNetBNN", "RealToBinNetBAN"],
)
def test_ancestors_of_real_to_binary_nets_agree_layer_by_layer(
    tf: Any, lq: Any, factory: str
) -> None:
    networks = pytest.importorskip("larq_zoo.literature.real_to_bin_nets")
    build = getattr(networks, f"{factory}Factory")
    model = build(input_shape=(64, 64, 3), num_classes=zoo_networks.CLASSES).build()
    larq_networks.make_random(model, larq_networks.float_images(4, 64))
    graph = import_larq(model, custom_layers={"LearnedRescaleLayer": rescale})
    assert_every_layer_alone_agrees(model, graph, larq_networks.float_images(2, 64, seed=7))


def test_the_engine_chooses_the_same_class_with_random_weights(
    random: Subject, tmp_path: Path
) -> None:
    model, images, graph = random
    conversion = convert_graph(graph, strict=True, check=False)
    (tmp_path / "model.pbit").write_bytes(conversion.content)
    ours = Network.load(tmp_path / "model.pbit", device="cpu").forward(images)
    theirs = np.asarray(model(images, training=False))
    np.testing.assert_array_equal(
        np.asarray(ours).reshape(theirs.shape).argmax(axis=1), theirs.argmax(axis=1)
    )


@pytest.mark.parametrize("network", zoo_networks.LAMBDAS)
def test_a_trusted_file_shows_what_keras_computes(
    tf: Any, lq: Any, network: str, tmp_path: Path
) -> None:
    model, images = zoo_networks.random(network).ready()
    model.save(tmp_path / "model.h5", include_optimizer=False)
    loaded = load_keras(tmp_path / "model.h5", trust_lambdas=True)
    theirs, ours = keras_activations(model, images), keras_activations(loaded, images)
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
