"""The Larq importer reads Keras files as the framework computed them (no framework needed here)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Conv2D, Dequantize, Sign
from phonebit.format.records import DataType

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.npz"))


def framework_values(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Inputs by name and outputs in order, as Keras saw and computed them."""
    with np.load(FIXTURES / f"{name}.npz") as arrays:
        inputs = {key: arrays[key] for key in arrays if not key.startswith("output_")}
        outputs = [arrays[f"output_{i}"] for i in range(len(arrays) - len(inputs))]
    return inputs, outputs


def as_nhwc(array: np.ndarray) -> np.ndarray:
    """A batch of any rank in the graph's (N, H, W, C)."""
    return array.reshape(array.shape[0], *(1,) * (4 - array.ndim), *array.shape[1:])


def largest_difference(graph: Graph, name: str) -> float:
    """Between the reference interpreter's outputs of ``graph`` and the framework's."""
    inputs, outputs = framework_values(name)
    values = run(graph, {key: as_nhwc(array) for key, array in inputs.items()})
    assert len(graph.outputs) == len(outputs)
    worst = 0.0
    for value, expected in zip(graph.outputs, outputs, strict=True):
        assert values[value].shape == as_nhwc(expected).shape
        worst = max(worst, float(np.max(np.abs(values[value] - as_nhwc(expected)))))
    return worst


@pytest.mark.parametrize("suffix", ["h5", "keras"])
@pytest.mark.parametrize("name", NAMES)
def test_imported_graph_computes_what_keras_computed(name: str, suffix: str) -> None:
    graph = import_larq(FIXTURES / f"{name}.{suffix}")
    # Values are about 1 to 10, sums have at most 200 terms, and every framework rounds them in
    # another order: a few units in the last place of 10.
    assert largest_difference(graph, name) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_both_file_formats_give_the_same_graph(name: str) -> None:
    h5, keras = (import_larq(FIXTURES / f"{name}.{suffix}") for suffix in ("h5", "keras"))
    assert [(node.name, node.inputs, node.outputs) for node in h5.nodes] == [
        (node.name, node.inputs, node.outputs) for node in keras.nodes
    ]
    assert (h5.types, h5.inputs, h5.outputs) == (keras.types, keras.inputs, keras.outputs)
    for one, other in zip(h5.nodes, keras.nodes, strict=True):
        if isinstance(one.op, Conv2D) and isinstance(other.op, Conv2D):
            np.testing.assert_array_equal(one.op.weights, other.op.weights)


def test_values_and_nodes_are_named_after_layers() -> None:
    graph = import_larq(FIXTURES / "more_binary_convolutions.h5")
    sign = graph.producer("conv7/input_quantizer")
    assert isinstance(sign.op, Sign)
    assert (sign.name, sign.inputs) == ("conv7/input_quantizer", ["image"])
    convolution = graph.producer("conv7/preactivation")
    assert (convolution.name, convolution.sources) == ("conv7", ["conv7"])
    assert graph.producer("conv7").name == "conv7/activation"
    assert graph.producer("conv6").name == "conv6"


def test_layers_of_nested_and_shared_models_have_unique_paths() -> None:
    graph = import_larq(FIXTURES / "nested_models.h5")
    names = {node.name for node in graph.nodes}
    assert {"inner/conv", "inner:1/conv", "middle/chain/chain_conv"} <= names
    merges = import_larq(FIXTURES / "merges.h5")
    calls = [node.name for node in merges.nodes if node.name.startswith("shared")]
    assert calls == ["shared", "shared:1", "shared:2"]


def test_layers_with_both_quantizers_are_expected_to_become_binary() -> None:
    graph = import_larq(FIXTURES / "sequential.h5")
    binary = [node.name for node in graph.nodes if isinstance(node.op, Conv2D)][1:]
    assert graph.expected_binary == binary
    mixed = import_larq(FIXTURES / "mixed_precision_layers.h5")
    assert mixed.expected_binary == []
    depthwise = import_larq(FIXTURES / "depthwise_layers.h5")
    assert [name.rsplit("/")[-1] for name in depthwise.expected_binary][-1] == "depthwise"
    assert len(depthwise.expected_binary) == 3


def test_kernels_of_quantized_layers_hold_signs_or_scaled_signs() -> None:
    graph = import_larq(FIXTURES / "binary_convolutions.h5")
    kernels = {n.name: n.op.weights for n in graph.nodes if isinstance(n.op, Conv2D)}
    for name in ("conv0", "conv1", "conv2"):
        assert set(np.unique(kernels[name])) == {-1.0, 1.0}
    for channel in kernels["conv3"]:
        assert len(np.unique(np.abs(channel))) == 1
    pads = {node.name: node.op.pad_value for node in graph.nodes if isinstance(node.op, Conv2D)}
    assert [pads[f"conv{i}"] for i in range(4)] == [0.0, 1.0, -1.0, 0.0]


def test_same_padding_at_stride_two_is_asymmetric() -> None:
    graph = import_larq(FIXTURES / "binary_convolutions.h5")
    windows = {node.name: node.op.window for node in graph.nodes if isinstance(node.op, Conv2D)}
    # Height 9 and width 8, kernel 3, stride 2: (5 - 1) * 2 + 3 - 9 = 2 and (4 - 1) * 2 + 3 - 8 = 1.
    assert windows["conv1"].pads == (1, 0, 1, 1)


def test_an_integer_image_is_dequantized_by_its_rescaling_layer() -> None:
    graph = import_larq(FIXTURES / "integer_image.h5")
    assert graph.types["image"].dtype == DataType.U8
    operators = {n.name: n.op for n in graph.nodes if isinstance(n.op, Dequantize)}
    assert operators["rescaling"].rational == (2, -255, 255)
    assert operators["tf.cast"].rational == (1, 0, 1)


def test_dropped_layers_leave_their_input_in_place() -> None:
    graph = import_larq(FIXTURES / "dense_layers.h5")
    assert "dropout" not in {name.split("_")[0] for name in graph.types}
