"""Inputs and outputs: maps are (N, H, W, C), all others as in the source, whatever their sizes.

One value under two names is two outputs.

Networks are built by hand in ONNX's terms; tests/converter/test_torch_axes.py has PyTorch's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

import phonebit
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.keras.checks import Knowledge
from phonebit.converter.importers.keras.config import parse_model
from phonebit.converter.importers.keras.files import KerasModel
from phonebit.converter.importers.keras.quantizers import QuantizerResolver
from phonebit.converter.importers.keras.translation import translate
from phonebit.converter.importers.keras.weights import NoWeights
from phonebit.converter.ir import Graph
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.errors import InputError
from phonebit.layer_info import TensorInfo, arrays_of
from support.cli_process import Cli
from support.onnx_models import halves, model
from support.tflite_models import constant, imported, operator, tensor

Array = NDArray[Any]
Node = tuple[str, Sequence[str], dict[str, Any]]


def chain(shape: Sequence[int], *nodes: Node, **constants: Array) -> onnx.ModelProto:
    """Nodes one after the other, from x to y."""
    names = ["x", *(f"t{number}" for number in range(len(nodes) - 1)), "y"]
    made = [
        helper.make_node(op, [names[number], *others], [names[number + 1]], **attributes)
        for number, (op, others, attributes) in enumerate(nodes)
    ]
    return model(made, {"x": shape}, constants=constants)


def recurrent(batch: int, steps: int, features: int) -> onnx.ModelProto:
    """RNN with its batch in front: a Transpose to its own order and back."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("RNN", ["t", "w", "r"], ["s", ""], hidden_size=4),
        helper.make_node("Squeeze", ["s", "axes"], ["q"]),
        helper.make_node("Transpose", ["q"], ["y"], perm=[1, 0, 2]),
    ]
    constants = {"w": halves(1, 4, features), "r": halves(1, 4, 4), "axes": np.array([1])}
    return model(nodes, {"x": (batch, steps, features)}, constants=constants)


CHANNELS_LAST_3 = {"perm": [0, 2, 1]}
MODELS = {
    "dense": chain((1, 7, 8), ("MatMul", ["w"], {}), w=halves(8, 5)),
    "dense, square": chain((1, 8, 8), ("MatMul", ["w"], {}), w=halves(8, 8)),
    "convolution": chain((1, 7, 8), ("Conv", ["w"], {}), w=halves(4, 7, 3)),
    "convolution, square": chain((1, 8, 8), ("Conv", ["w"], {"pads": [1, 1]}), w=halves(8, 8, 3)),
    "convolution, channels last": chain(
        (1, 9, 4),
        ("Transpose", [], CHANNELS_LAST_3),
        ("Conv", ["w"], {}),
        ("Transpose", [], CHANNELS_LAST_3),
        w=halves(5, 4, 3),
    ),
    "norm of features": chain(
        (1, 8, 8), ("LayerNormalization", ["w", "b"], {}), w=halves(8), b=halves(8, seed=4)
    ),
    "pool": chain((1, 6, 6), ("MaxPool", [], {"kernel_shape": [2]})),
    "softmax along steps": chain((1, 6, 6), ("Softmax", [], {"axis": 1})),
    "recurrent": recurrent(1, 5, 6),
    "recurrent, square": recurrent(1, 6, 6),
    "convolution of three axes": chain(
        (1, 3, 4, 5, 6), ("Conv", ["w"], {}), w=halves(2, 3, 2, 2, 2)
    ),
    "convolution of three axes, equal sizes": chain(
        (1, 4, 4, 4, 4), ("Conv", ["w"], {"pads": [1] * 6}), w=halves(4, 4, 3, 3, 3)
    ),
    "mean over one of three axes": chain(
        (1, 3, 3, 3, 3), ("ReduceMean", [], {"axes": [2], "keepdims": 0})
    ),
    "largest over two of three axes": chain(
        (1, 2, 3, 4, 5), ("ReduceMax", [], {"axes": [1, 3], "keepdims": 1})
    ),
    "map to five axes": chain(
        (1, 4, 4, 4), ("Relu", [], {}), ("Reshape", ["s"], {}), s=np.array([1, 2, 2, 4, 4])
    ),
    "five axes to three": chain(
        (1, 2, 2, 4, 4), ("Relu", [], {}), ("Reshape", ["s"], {}), s=np.array([1, 8, 8])
    ),
    "map to three axes": chain(
        (1, 4, 4, 4), ("Relu", [], {}), ("Reshape", ["s"], {}), s=np.array([1, 16, 4])
    ),
}  # fmt: skip


def as_map(array: Array) -> Array:
    """What PhoneBit makes of four axes."""
    return np.moveaxis(array, 1, -1) if array.ndim == 4 else array


@pytest.mark.parametrize("name", MODELS)
def test_arrays_have_the_source_s_axes_unless_they_are_maps(name: str, tmp_path: Path) -> None:
    made, path = MODELS[name], tmp_path / "net.pbit"
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).integers(-8, 9, shape).astype(np.float32) / 4
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    report = phonebit.convert(made, path)
    network = phonebit.Network.load(path, device="cpu")
    (given,), (result,) = network.inputs, network.outputs
    assert given.array_shape == as_map(x).shape[1:]
    assert result.array_shape == as_map(expected).shape[1:]
    assert (report.inputs, report.outputs) == ([given], [result])
    got = network(np.ascontiguousarray(as_map(x)))
    assert got.shape == as_map(expected).shape
    np.testing.assert_allclose(got, as_map(expected), rtol=0, atol=2e-6)
    flat = network(np.ascontiguousarray(as_map(x)).reshape(1, *given.shape))
    np.testing.assert_array_equal(flat, got)  # the same elements in the same order
    assert phonebit.verify(made, path).passed


def test_the_axes_survive_writing_a_file_again(tmp_path: Path) -> None:
    path = tmp_path / "net.pbit"
    phonebit.convert(MODELS["dense"], path)
    graph = read_graph(path)
    assert graph.arrays == {"x": (7, 8), graph.outputs[0]: (7, 5)}
    path.write_bytes(to_bytes(graph))
    assert phonebit.Network.load(path, device="cpu").inputs[0].array_shape == (7, 8)


def test_a_target_has_the_axes_of_the_result(tmp_path: Path) -> None:
    phonebit.convert(MODELS["dense"], tmp_path / "net.pbit")
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    x = np.ones((2, 7, 8), np.float32)
    out = np.zeros((2, 7, 5), np.float32)
    assert network(x, out) is out
    np.testing.assert_array_equal(out, network(x))
    with pytest.raises(InputError, match=r"expected float32 \(2, 7, 5\), got float32 \(2, 5, 7\)"):
        network(x, np.zeros((2, 5, 7), np.float32))
    with pytest.raises(InputError, match=r"expected \(N, 7, 8\), got \(2, 8, 7\)\); the axes are"):
        network(np.ones((2, 8, 7), np.float32))


@pytest.mark.parametrize("sizes", [[7, 9], [8, 7], [7.0, 8], [True, 56], "78", [-7, -8], [], None])
def test_a_shape_that_does_not_fit_counts_as_absent(sizes: Any, tmp_path: Path) -> None:
    """The same elements, with the file's channels as the last axis; metadata are not trusted."""
    path = tmp_path / "net.pbit"
    phonebit.convert(MODELS["dense"], path)
    graph = dataclasses.replace(read_graph(path), arrays={})
    path.write_bytes(to_bytes(graph, {"arrays": {"x": sizes}}))
    network = phonebit.Network.load(path, device="cpu")
    assert network.inputs[0] == TensorInfo("x", "f32", (1, 7, 8))
    assert network.inputs[0].array_shape == (1, 7, 8)
    assert read_graph(path).arrays == {}


def test_metadata_without_shapes_tell_none() -> None:
    for metadata in ({}, {"arrays": None}, {"arrays": [1]}, {"arrays": {"x": {}}}):
        assert arrays_of(metadata) == {}


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (TensorInfo("x", "f32", (28, 28, 1)), "(N, 28, 28, 1): batch, rows, columns, channels"),
        (TensorInfo("x", "f32", (1, 1, 10)), "(N, 10): batch, features"),
        (TensorInfo("x", "f32", (1, 7, 8), (7, 8)), "(N, 7, 8): as in the source"),
        (TensorInfo("x", "f32", (1, 1, 8), (1, 8)), "(N, 1, 8): as in the source"),
    ],
)
def test_axes_are_said_in_words(info: TensorInfo, text: str) -> None:
    assert info.axes_text == text


SHAPES = [(1, 6, 4), (1, 5, 5), (1, 2, 3, 4, 5), (1, 4, 4, 4, 4)]


@pytest.mark.parametrize("shape", [*SHAPES, (1, 4, 4, 4)])
def test_tensorflow_lite_keeps_its_own_axes(shape: tuple[int, ...], tmp_path: Path) -> None:
    """A dense layer of the last axis, and what adds another number for each of its features."""
    kept = {"KeepNumDims": True, "FusedActivationFunction": 1}
    graph = imported(
        [
            tensor("x", shape),
            constant("w", w := halves(3, shape[-1])),
            constant("b", b := halves(shape[-2], 3)),
            tensor("d", (*shape[:-1], 3)),
            tensor("y", (*shape[:-1], 3)),
        ],
        [operator("FULLY_CONNECTED", [0, 1], [3], **kept), operator("ADD", [3, 2], [4])],
        [4],
    )
    network = loaded(graph, tmp_path)
    x = np.random.default_rng(1).integers(-8, 9, shape).astype(np.float32) / 4
    assert network.inputs[0].array_shape == shape[1:]
    np.testing.assert_array_equal(network(x), np.maximum(x @ w.T, 0) + b)


def keras_graph(outputs: Any, *layers: dict[str, Any]) -> Graph:
    """A Functional model of Keras 2 as a graph."""
    config = {"name": "net", "layers": list(layers), "input_layers": [["x", 0, 0]]}
    spec = parse_model({"class_name": "Model", "config": {**config, "output_layers": outputs}})
    return translate(KerasModel(spec, NoWeights(), 2), Knowledge(QuantizerResolver(), None, {}))


def keras_layer(name: str, kind: str, *reads: str, **config: Any) -> dict[str, Any]:
    """An entry of a model's layers."""
    nodes = [[[read, 0, 0, {}] for read in reads]] if reads else []
    return {"class_name": kind, "name": name, "config": config, "inbound_nodes": nodes}


def loaded(graph: Graph, folder: Path) -> phonebit.Network:
    """A source graph, converted."""
    (folder / "net.pbit").write_bytes(convert_graph(graph).content)
    return phonebit.Network.load(folder / "net.pbit", device="cpu")


@pytest.mark.parametrize("shape", [(6, 4), (5, 5)])
def test_keras_keeps_its_own_axes(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = keras_layer("x", "InputLayer", batch_input_shape=[None, *shape])
    graph = keras_graph([["y", 0, 0]], x, keras_layer("y", "ReLU", "x"))
    assert graph.arrays == {"x": shape, "y": shape}
    array = np.random.default_rng(1).standard_normal((2, *shape)).astype(np.float32)
    np.testing.assert_array_equal(loaded(graph, tmp_path)(array), np.maximum(array, 0))


Y = ["y", 0, 0]


@pytest.mark.parametrize(
    ("outputs", "names"),
    [([Y, Y], ["y", "y/output"]), ({"scores": Y, "features": Y}, ["scores", "features"])],
)
def test_a_layer_of_keras_that_is_returned_twice_is_two_outputs(
    outputs: Any, names: list[str], tmp_path: Path
) -> None:
    x = keras_layer("x", "InputLayer", batch_input_shape=[None, 6])
    network = loaded(keras_graph(outputs, x, keras_layer("y", "ReLU", "x")), tmp_path)
    array = np.random.default_rng(1).standard_normal((2, 6)).astype(np.float32)
    results = network(array)
    assert list(results) == names
    for result in results.values():
        np.testing.assert_array_equal(result, np.maximum(array, 0))


def test_a_value_of_onnx_under_two_names_is_two_outputs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="/head/MatMul"),
        helper.make_node("Identity", ["y"], ["z"]),
        helper.make_node("Relu", ["y"], ["r"], name="/relu/Relu"),
    ]
    made = model(nodes, {"x": (1, 8)}, ("y", "r", "z"), {"w": halves(8, 5)})
    phonebit.convert(made, tmp_path / "net.pbit")
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    x = halves(1, 8, seed=9)
    results = network(x)
    assert list(results) == ["y", "relu", "z"]
    for name, expected in zip(results, ReferenceEvaluator(made).run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(results[name], expected)
    assert phonebit.verify(made, network).passed


def test_convert_and_inspect_print_the_axes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli, source, path = Cli(capsys), tmp_path / "net.onnx", tmp_path / "net.pbit"
    onnx.save(MODELS["convolution"], source)
    lines = cli("convert", source, "-o", path).out.splitlines()
    (output,) = phonebit.Network.load(path, device="cpu").outputs
    texts = [line.strip() for line in lines]
    assert "input x: (N, 7, 8): as in the source" in texts
    assert f"output {output.name}: (N, 4, 6): as in the source" in texts
    shown = cli("inspect", path).out.splitlines()
    assert " ".join(shown[1].split()) == "input x f32 (N, 7, 8): as in the source"
    (document,) = cli("inspect", path, "--json").document["inputs"]
    assert (document["shape"], document["array_shape"]) == ([1, 7, 8], [7, 8])
    phonebit.convert(MODELS["map to three axes"], path)
    shown = cli("inspect", path).out.splitlines()
    assert shown[1].endswith("(N, 4, 4, 4): batch, rows, columns, channels")
