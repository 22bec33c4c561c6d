"""Each family of ONNX's operators, in the forms of several opsets, computes what the model does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import CURVES, EXACT, MAP, STATISTICS, VECTOR

from phonebit.converter.importers.onnx.importer import import_onnx, open_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue.functions import Gelu
from phonebit.errors import ConversionError, UnsupportedLayerError
from support.onnx_models import (
    assert_equal_to_onnx,
    halves,
    integers,
    kinds,
    model,
    negated,
    single,
)


@pytest.mark.parametrize("name", EXACT)
def test_operators_equal_the_model_to_the_last_bit(name: str) -> None:
    assert_equal_to_onnx(negated(EXACT[name]))


@pytest.mark.parametrize("name", CURVES)
def test_curves_equal_the_model_up_to_rounding(name: str) -> None:
    assert_equal_to_onnx(CURVES[name], tolerance=1e-6)


@pytest.mark.parametrize("name", STATISTICS)
def test_normalisations_equal_the_model_up_to_rounding(name: str) -> None:
    # Values reach exp(4) = 55, whose last place is 4e-6.
    assert_equal_to_onnx(STATISTICS[name], tolerance=1e-5)


def test_negative_pads_crop() -> None:
    graph = import_onnx(single("Pad", MAP, integers(0, 0, -1, 0, 0, 0, 0, -2)))
    images = halves(2, 6, 8, 4)
    (result,) = run(graph, {"x": images}).values()
    np.testing.assert_array_equal(result, images[:, 1:, :-2])


def test_dropout_in_training_mode_is_refused() -> None:
    training = single("Dropout", MAP, np.array(0.5, np.float32), np.array(True), opset=13)
    with pytest.raises(UnsupportedLayerError, match="is in training mode"):
        import_onnx(training)


def test_gelu_is_the_engine_s_own() -> None:
    graph = import_onnx(single("Gelu", MAP, opset=20, approximate="tanh"))
    ops = [node.op for node in graph.nodes if isinstance(node.op, Elementwise)]
    assert ops[0].epilogue.steps == [Gelu(True)]


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_splits_and_joins(opset: int) -> None:
    attributes: dict[str, Any] = {"num_outputs": 2} if opset == 18 else {}
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, **attributes),
        helper.make_node("Concat", ["b", "a"], ["c"], axis=1),
        helper.make_node("Add", ["c", "x"], ["y"]),
    ]
    graph = assert_equal_to_onnx(model(nodes, {"x": MAP}, opset=opset))
    assert kinds(graph) == ["SelectChannels", "Elementwise"]


def test_shapes_are_computed_once() -> None:
    """What exporters write for x.flatten(1) of an open batch."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["batches"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Concat", ["batches", "rest"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"]),
    ]
    constants = {"zero": np.int64(0), "axes": integers(0), "w": halves(4 * 6 * 8, 3)}
    constants["zero"] = np.array(0, np.int64)
    graph = assert_equal_to_onnx(model(nodes, {"x": ("batch", 4, 6, 8)}, constants=constants))
    assert kinds(graph) == ["Reshape", "Conv2D"]


def test_constants_are_computed_from_weights() -> None:
    """Signs of weights, scaled by their mean magnitude."""
    nodes = [
        helper.make_node("Abs", ["w"], ["m"]),
        helper.make_node("ReduceMean", ["m"], ["scale"], axes=[1, 2, 3]),
        helper.make_node("Sign", ["w"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["v"]),
        helper.make_node("Sign", ["x"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["y"], name="conv"),
    ]
    weights = np.where(halves(8, 4, 2, 2) >= 0, 0.5, -0.25).astype(np.float32)
    weights[:, :2] = 0.25
    graph = assert_equal_to_onnx(model(nodes, {"x": MAP}, constants={"w": weights}))
    assert kinds(graph) == ["Quantize", "Conv2D"]
    assert graph.expected_binary == ["conv"]


def test_gathers_of_many_elements_are_told_apart() -> None:
    """They differ in the middle only, which the text of an array leaves out."""
    order = np.arange(2000)[::-1]
    other = np.concatenate([order[:500], order[500:1500][::-1], order[1500:]])
    nodes = [
        helper.make_node("Gather", ["x", "order"], ["a"], axis=1),
        helper.make_node("Gather", ["x", "other"], ["b"], axis=1),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    constants = {"order": order.copy(), "other": other}
    graph = import_onnx(negated(model(nodes, {"x": (1, 2000)}, constants=constants)))
    images = np.arange(2000, dtype=np.float32).reshape(1, 1, 1, -1)
    (result,) = run(graph, {"x": images}).values()
    np.testing.assert_array_equal(-result.reshape(-1), [*order, *other])


def test_bytes_are_read_as_numbers() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Conv", ["f", "w"], ["y"]),
    ]
    made = model(
        nodes, {"x": (1, 3, 4, 4)}, constants={"w": halves(2, 3, 3, 3)}, kind=TensorProto.UINT8
    )
    source = open_onnx(made)
    levels = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3)).astype(np.uint8)
    assert_equal_to_onnx(source, {"x": levels})


@pytest.mark.parametrize("op", ["ArgMax", "TopK"])
def test_scores_stand_for_the_class_that_they_choose(op: str) -> None:
    extra = ["k"] if op == "TopK" else []
    outputs = ["top", "y"] if op == "TopK" else ["y"]
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["scores"], name="fc"),
        helper.make_node(op, ["scores", *extra], outputs, name="choice"),
    ]
    constants = {"w": halves(6, 3), "k": integers(1)}
    graph = import_onnx(model(nodes, {"x": VECTOR}, constants=constants))
    assert graph.outputs == ["fc"]
    assert graph.notes == [f"output 'y': the file gives the scores that {op} chooses from"]


def test_everything_unsupported_is_listed_by_operator() -> None:
    nodes = [
        helper.make_node("Shrink", ["x"], ["a"], name="first"),
        helper.make_node("Shrink", ["a"], ["b"], name="second"),
        helper.make_node("Mystery", ["b"], ["c"], name="third", domain="my.domain"),
        helper.make_node("MatMul", ["x", "x"], ["y"], name="fourth"),
    ]
    with pytest.raises(UnsupportedLayerError) as caught:
        import_onnx(model(nodes, {"x": MAP}, outputs=["y", "c"]))
    assert caught.value.problems == [
        "first, second: Shrink is not supported (domain ai.onnx)",
        "third: my.domain.Mystery is not supported (domain my.domain)",
        "fourth: MatMul has factors of shapes (1, 4, 6, 8) and (1, 4, 6, 8)",
    ]


def test_open_shapes_need_an_input_shape() -> None:
    made = single("Relu", ("n", 4, "h", "w"))
    with pytest.raises(ConversionError, match=r"open or impossible shape .*--input-shape"):
        import_onnx(made)
    with pytest.raises(ConversionError, match="input_shape does not fit"):
        import_onnx(made, input_shape=(1, 3, 5, 5))
    graph = import_onnx(made, input_shape=(1, 4, 5, 6))
    assert graph.types["x"].shape == (5, 6, 4)


def test_a_batch_of_the_model_s_own_is_run_in_groups() -> None:
    made = single("Conv", (2, 4, 6, 8), halves(5, 4, 3, 3))
    source = open_onnx(made)
    images = halves(5, 6, 8, 4)
    result = source.runner().activations({"x": images})
    assert result["conv"].shape == (5, 4, 6, 5)
    np.testing.assert_array_equal(result["conv"], run(source.graph, {"x": images})["conv"])
