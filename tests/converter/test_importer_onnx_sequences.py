"""Recurrent layers, embeddings and convolutions of three axes of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from phonebit.converter.importers.onnx.importer import import_onnx, open_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.passes.pipeline import run_pipeline
from phonebit.errors import UnsupportedLayerError
from support.onnx_models import (
    assert_equal_to_onnx,
    halves,
    images,
    model,
    negated,
    single,
)

SEQUENCE = (2, 5, 6)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(op: str, directions: int = 1, **attributes: Any) -> onnx.ModelProto:
    """A layer of 4 channels whose sequence and last state are read."""
    rows = GATES[op] * 4
    weights = {
        "w": halves(directions, rows, 6),
        "r": halves(directions, rows, 4, seed=4),
        "b": halves(directions, 2 * rows, seed=5),
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["q"], perm=[1, 0, 2]),
        helper.make_node(op, ["q", "w", "r", "b"], ["s", "h"], hidden_size=4, **attributes),
        helper.make_node("Transpose", ["s"], ["t"], perm=[2, 0, 1, 3]),
        helper.make_node("Neg", ["t"], ["y"]),
        helper.make_node("Transpose", ["h"], ["g"], perm=[1, 0, 2]),
        helper.make_node("Neg", ["g"], ["z"]),
    ]
    return model(nodes, {"x": SEQUENCE}, ("y", "z"), weights)


@pytest.mark.parametrize(
    "made",
    [
        recurrent("LSTM"),
        recurrent("LSTM", 2, direction="bidirectional"),
        recurrent("GRU", 2, direction="bidirectional", linear_before_reset=1),
        recurrent("GRU", direction="reverse", linear_before_reset=1),
        recurrent("RNN"),
    ],
    ids=["lstm", "lstm both", "gru both", "gru reverse", "rnn"],
)
def test_recurrent_layers_are_within_rounding(made: onnx.ModelProto) -> None:
    graph = assert_equal_to_onnx(made, tolerance=1e-5)
    run_pipeline(graph)


def test_a_layer_of_relus_is_its_recurrence() -> None:
    """ONNX's reference has no relus in recurrent layers. All sums are exact."""
    graph = import_onnx(recurrent("RNN", activations=["Relu"]))
    inputs = images(graph)
    w, r, (wb, rb) = halves(4, 6), halves(4, 4, seed=4), halves(2, 4, seed=5)
    state = np.zeros((2, 4), np.float32)
    for step, x in enumerate(inputs["x"].reshape(2, 5, 6).transpose(1, 0, 2)):
        state = np.maximum(x @ w.T + wb + state @ r.T + rb, 0)
        values = run(graph, inputs)[graph.outputs[0]].reshape(2, 4, 5)
        np.testing.assert_array_equal(values[..., step], -state)
    assert state.any()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (recurrent("GRU"), "linear_before_reset"),
        (recurrent("LSTM", clip=1.0), "clip"),
        (recurrent("LSTM", 2), "weights of shapes"),
        (recurrent("RNN", activations=["Elu"]), "functions"),
    ],
)
def test_other_recurrent_layers_are_refused(made: onnx.ModelProto, message: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=message):
        import_onnx(made)


def test_steps_on_the_first_axis_of_the_input_are_refused() -> None:
    made = recurrent("RNN")
    del made.graph.node[0]
    made.graph.node[0].input[0] = "x"
    with pytest.raises(UnsupportedLayerError, match="steps on the first axis of the net"):
        import_onnx(made)


def test_an_embedding_is_a_row_of_its_table() -> None:
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["rows"]),
        helper.make_node("Neg", ["rows"], ["y"]),
    ]
    made = model(nodes, {"x": (1, 5)}, constants={"table": halves(10, 6)}, kind=TensorProto.INT64)
    source = open_onnx(made)
    numbers = np.array([[0, 9, 3, 3, 1], [2, 3, 4, 5, 6]], np.float32).reshape(2, 1, 1, 5)
    assert_equal_to_onnx(source, {"x": numbers})
    run_pipeline(source.graph)


@pytest.mark.parametrize(
    "attributes",
    [{}, {"strides": [2, 1, 2], "pads": [1, 0, 1, 1, 0, 1], "group": 2}, {"dilations": [1, 2, 1]}],
)
def test_convolutions_of_three_axes_are_exact(attributes: dict[str, Any]) -> None:
    weights = halves(6, 4 // attributes.get("group", 1), 3, 2, 3)
    made = single("Conv", (1, 4, 5, 6, 7), weights, halves(6), **attributes)
    assert_equal_to_onnx(negated(made))


def test_pads_of_one_side_of_three_axes_are_refused() -> None:
    made = single("Conv", (1, 4, 5, 6, 7), halves(6, 4, 3, 3, 3), pads=[1, 0, 0, 0, 0, 0])
    with pytest.raises(UnsupportedLayerError, match="the same on both sides"):
        import_onnx(made)
