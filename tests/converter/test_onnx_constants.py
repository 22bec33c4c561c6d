"""Operators on constants are computed once, with the values of ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.interpreter import run
from phonebit.errors import ConversionError
from support.onnx_models import floats, integers, model

Array = NDArray[Any]
NUMBERS = floats(-2.5, -1, -0.25, 0, 0.25, 0.5, 1, 3.5)
POSITIVE = floats(0.25, 0.5, 1, 2, 3, 4, 5, 7.5)
OTHERS = floats(2, -1, 0.5, 0, 4, 0.5, -1, 3)
WHOLE = integers(-7, -5, -1, 0, 1, 5, 7, 9)
DIVISORS = integers(2, -2, 3, 4, 2, -3, 4, 2)
BITS = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.bool_)
ONE = "Sign Neg Abs Floor Ceil Round Exp Relu Sigmoid Tanh Erf Softplus HardSigmoid HardSwish"
OF_ONE = [*ONE.split(), "Softsign", "Elu", "LeakyRelu", "Selu", "Celu", "Mish", "Identity"]
TWO = "Add Sub Mul Max Min Sum Greater GreaterOrEqual Less LessOrEqual"
OF_TWO = [*TWO.split(), "Equal", "PRelu"]
CASES: dict[str, tuple[str, list[Array], dict[str, Any]]] = {
    **{op: (op, [NUMBERS], {}) for op in OF_ONE},
    **{op: (op, [POSITIVE], {}) for op in ("Sqrt", "Reciprocal", "Log")},
    **{op: (op, [NUMBERS, OTHERS], {}) for op in OF_TWO},
    **{op: (op, [BITS, BITS[::-1].copy()], {}) for op in ("And", "Or", "Xor")},
    "Gelu": ("Gelu", [NUMBERS], {}),
    "Gelu by tanh": ("Gelu", [NUMBERS], {"approximate": "tanh"}),
    "Not": ("Not", [BITS], {}),
    "Div": ("Div", [NUMBERS, POSITIVE], {}),
    "Div of integers": ("Div", [np.abs(WHOLE), np.abs(DIVISORS)], {}),
    "Mod of integers": ("Mod", [WHOLE, DIVISORS], {}),
    "Mod as in C": ("Mod", [NUMBERS, POSITIVE], {"fmod": 1}),
    "Pow": ("Pow", [POSITIVE, OTHERS], {}),
    "Where": ("Where", [BITS, NUMBERS, OTHERS], {}),
    "Clip": ("Clip", [NUMBERS, np.array(-1, np.float32), np.array(2, np.float32)], {}),
    "Cast": ("Cast", [NUMBERS], {"to": TensorProto.INT64}),
    **{
        f"Range from {start} to {limit} by {step}": (
            "Range",
            [np.array(number, np.int64) for number in (start, limit, step)],
            {},
        )
        for start, limit, step in ((0, 8, 1), (2, 18, 2), (3, 26, 3), (9, 1, -1), (-4, 4, 1))
    },
    "Range of floats": ("Range", [*map(np.asarray, floats(0.5, 4.5, 0.5))], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_constants_are_computed_as_the_reference_does(name: str) -> None:
    op, constants, attributes = CASES[name]
    named = {f"c{number}": array for number, array in enumerate(constants)}
    nodes = [
        helper.make_node(op, list(named), ["k"], **attributes),
        helper.make_node("Cast", ["k"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    made = model(nodes, {"x": (1, 8)}, constants=named, opset=20)
    x = np.zeros((1, 8), np.float32)
    (expected,) = ReferenceEvaluator(made).run(None, {"x": x})
    graph = import_onnx(made)
    result = run(graph, {"x": x.reshape(1, 1, 1, 8)})[graph.outputs[0]].reshape(1, 8)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, "rows", 4, "columns"), r"got \[1, 'rows', 4, 'columns'\]"),
        ((1, 3, None, 4), r"got \[1, 3, '\?', 4\]"),
        ((1, 0, 2, "n"), r"got \[1, '\?', 2, 'n'\]"),
    ],
)
def test_open_sizes_are_said_by_their_names(shape: Any, message: str) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], {"x": shape})
    with pytest.raises(ConversionError, match=message):
        import_onnx(made)
