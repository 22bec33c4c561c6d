"""Operators on constants are computed once, with the values of ONNX's reference evaluator.

Every rule has a row in ``onnx_cases``; here their inputs are constants, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import CURVES, EXACT, STATISTICS

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.importers.onnx.nodes import Node, attributes_of
from phonebit.converter.importers.onnx.rules import STANDARD, rule_of
from phonebit.converter.importers.onnx.tensors import Tensors
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.errors import ConversionError
from support.onnx_models import floats, halves, integers, model

Array = NDArray[Any]
LAYERS = "Conv ConvTranspose Gemm MaxPool AveragePool Softmax LogSoftmax TopK LSTM GRU RNN"
NORMALISATIONS = "BatchNorm LayerNorm InstanceNorm GroupNorm"
FOR_INPUTS_ONLY = {*LAYERS.split(), *(f"{name}alization" for name in NORMALISATIONS.split())}
"""What nobody computes from constants alone; so are interpolations."""
LARGE = floats(-3e38, -80, -2.5, -1.5, -1, -0.25, -1e-38, -0.0, 0, 1e-38, 0.5, 1, 2.5, 80, 3e38)
SMALL = LARGE[1:-1]
POSITIVE = SMALL[SMALL > 0]
WHOLE = integers(-7, -5, -2, -1, 0, 1, 2, 5, 7, 2**40)
BITS = np.array([False, True])


def of(
    op: str, *constants: Any, opset: int = 20, outputs: Sequence[str] = ("y",), **attributes: Any
) -> onnx.ModelProto:
    """One node that reads constants."""
    named = {f"c{number}": np.asarray(array) for number, array in enumerate(constants)}
    node = helper.make_node(op, list(named), outputs, **attributes)
    return model([node], {}, outputs, named, opset)


def pairs(one: Array, other: Array) -> tuple[Array, Array]:
    """Operands in which each of two arrays' numbers meet."""
    return one[:, None], other[None]


ONE = "Sign Neg Abs Floor Ceil Round Relu HardSigmoid LeakyRelu Identity"
SMOOTH = "Exp Sigmoid Tanh Erf Softplus HardSwish Elu Selu Celu Mish Gelu"
TWO = "Add Sub Max Min Sum Greater GreaterOrEqual Less LessOrEqual Equal"
REDUCED = "Mean Sum Max Min Prod L1 L2 SumSquare"
CONSTANTS: dict[str, onnx.ModelProto] = {
    **{op: of(op, LARGE) for op in ONE.split()},
    **{op: of(op, SMALL) for op in SMOOTH.split()},
    **{op: of(op, POSITIVE) for op in ("Sqrt", "Reciprocal", "Log")},
    **{op: of(op, *pairs(LARGE, SMALL)) for op in TWO.split()},
    **{op: of(op, *pairs(BITS, BITS)) for op in ("And", "Or", "Xor")},
    **{
        f"Reduce{op}": of(f"Reduce{op}", halves(2, 3, 5), integers(0, -1), keepdims=0)
        for op in REDUCED.split()
    },
    **{
        f"Range from {start} to {limit} by {step}": of("Range", *map(np.int64, values))
        for values in ((0, 8, 1), (2, 17, 2), (3, 26, 3), (9, 1, -1), (-4, 4, 1), (4, 4, 1))
        for start, limit, step in [values]
    },
    **{
        f"Clip to {low}, {high}": of("Clip", LARGE, np.float32(low), np.float32(high))
        for low, high in ((-1, 2), (-np.inf, 1), (0.5, np.inf))
    },
    "PRelu": of("PRelu", np.repeat(LARGE[:, None], 3, 1), floats(-0.5, 0, 2)),
    "Mul": of("Mul", *pairs(LARGE, SMALL)),
    "Div": of("Div", *pairs(LARGE, LARGE[LARGE != 0])),
    "Div of integers": of("Div", *pairs(np.abs(WHOLE), integers(1, 2, 3))),
    "Mod of integers": of("Mod", *pairs(WHOLE, integers(-3, -2, 2, 5))),
    "Mod as in C": of("Mod", *pairs(SMALL, POSITIVE), fmod=1),
    "Pow": of("Pow", *pairs(POSITIVE, floats(-1, 0, 0.5, 1, 2, 2.5))),
    "Pow of negative numbers": of("Pow", *pairs(SMALL, floats(0, 1, 2, 3))),
    "Max of three": of("Max", LARGE, floats(0), LARGE[::-1].copy()),
    "Gelu by tanh": of("Gelu", SMALL, approximate="tanh"),
    "Elu of another slope": of("Elu", SMALL, alpha=0.5),
    "Celu of another slope": of("Celu", SMALL, alpha=2.0),
    "LeakyRelu of another slope": of("LeakyRelu", LARGE, alpha=0.3),
    "HardSigmoid of another slope": of("HardSigmoid", LARGE, alpha=0.3, beta=0.1),
    "Softsign": of("Softsign", SMALL),
    "Not": of("Not", BITS),
    "Where": of("Where", BITS[:, None, None], *pairs(LARGE, SMALL)),
    "Cast": of("Cast", SMALL, to=TensorProto.INT64),
    "Cast to bits": of("Cast", LARGE, to=TensorProto.BOOL),
    "Cast of integers": of("Cast", WHOLE, to=TensorProto.FLOAT),
    "CastLike": of("CastLike", WHOLE, floats(1)),
    "Range of floats": of("Range", *map(np.asarray, floats(0.5, 4.5, 0.75))),
    "Expand": of("Expand", halves(3, 1), integers(2, 1, 4)),
    "Split": of("Split", halves(2, 5), integers(2, 3), outputs=("y", "z"), axis=1),
    "Split in halves": of("Split", halves(5, 2), outputs=("y", "z"), num_outputs=2),
    "Tile": of("Tile", halves(2, 3), integers(2, 3)),
    "Concat": of("Concat", halves(2, 3), halves(2, 1), axis=-1),
    "Squeeze of all": of("Squeeze", halves(1, 3, 1)),
    "Unsqueeze": of("Unsqueeze", halves(2, 3), integers(0, -1)),
    "Flatten at the end": of("Flatten", halves(2, 3), axis=2),
    "Flatten from the end": of("Flatten", halves(2, 3, 4), axis=-1),
    "Transpose of all": of("Transpose", halves(2, 3, 4)),
    "Gather of a table": of("Gather", halves(3, 4), np.array([[0, -1], [2, -3]])),
    "Einsum": of("Einsum", halves(2, 3, 4), halves(2, 4), equation="bij,bj->bi"),
    "GatherND": of("GatherND", halves(3, 4, 2), np.array([[0, -1], [2, 3]])),
    "ArgMax": of("ArgMax", halves(3, 9), axis=-1, keepdims=0),
    "LpNormalization": of("LpNormalization", np.abs(halves(3, 4)), axis=0, p=1),
    "Shape": of("Shape", halves(2, 3, 4)),
    "Shape of some axes": of("Shape", halves(2, 3, 4), start=1, end=-1),
    "Size": of("Size", halves(2, 3, 4)),
    "ConstantOfShape": of("ConstantOfShape", integers(2, 3)),
    "ConstantOfShape of twos": of(
        "ConstantOfShape", integers(2, 3), value=numpy_helper.from_array(integers(2))
    ),
    "Constant": of("Constant", value=numpy_helper.from_array(WHOLE)),
    "Constant of floats": of("Constant", value_floats=[0.5, -1.0]),
    "Constant of an integer": of("Constant", value_int=7),
    "DequantizeLinear": of("DequantizeLinear", WHOLE[:-1].astype(np.int8), np.float32(0.25)),
    "DequantizeLinear of channels": of(
        "DequantizeLinear",
        np.arange(-6, 6, dtype=np.int8).reshape(2, 3, 2),
        floats(0.5, 2, 3),
        np.array([1, 0, -3], np.int8),
    ),
}
CASES = EXACT | CURVES | STATISTICS | CONSTANTS


def folded(made: onnx.ModelProto, inputs: dict[str, Array]) -> list[tuple[Call, Array]]:
    """What the rules make of a model whose inputs are constants, and its values."""
    builder = Builder()
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    calls: dict[str, Any] = {"": None}
    calls |= {name: builder.parameter(array, name) for name, array in (stored | inputs).items()}
    for proto in made.graph.node:
        operands, results = [calls[name] for name in proto.input], list(proto.output)
        attributes = attributes_of(proto, Tensors(None), proto.op_type)
        version = made.opset_import[0].version
        node = Node(proto.op_type, "", version, operands, results, proto.op_type, attributes)
        builder.begin(node)
        rule = rule_of("", node.op)
        assert rule is not None
        results_made: Any = rule(builder, node)
        results_made = [results_made] if isinstance(results_made, Call) else results_made
        calls |= dict(zip(results, results_made, strict=False))
    outputs = [calls[value.name] for value in made.graph.output]
    return [(call, builder.value(call, "results")) for call in outputs]


def inputs_of(made: onnx.ModelProto) -> dict[str, Array]:
    """Multiples of 1/8; none below 0 where a power of it is no number."""
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in made.graph.input}
    arrays = {name: halves(*shape, seed=5) for name, shape in shapes.items()}
    powers = any(node.op_type == "Pow" for node in made.graph.node)
    return {name: np.abs(array) + 1 if powers else array for name, array in arrays.items()}


def is_for_inputs_only(made: onnx.ModelProto) -> bool:
    nodes = made.graph.node
    modes = [a.s for node in nodes if node.op_type == "Resize" for a in node.attribute]
    return any(n.op_type in FOR_INPUTS_ONLY for n in nodes) or not {b"linear", b"cubic"}.isdisjoint(
        modes
    )


@pytest.mark.parametrize("name", CASES)
def test_constants_are_computed_as_the_reference_does(name: str) -> None:
    made = CASES[name]
    inputs = inputs_of(made)
    if is_for_inputs_only(made):
        with pytest.raises(UnsupportedError, match="from constants alone; store its result"):
            folded(made, inputs)
        return
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(made).run(None, inputs)
    tolerance = 0 if name in EXACT else 1e-6
    for (call, got), want in zip(folded(made, inputs), expected, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert (call.dtype, call.shape) == (str(want.dtype), want.shape)
        np.testing.assert_allclose(got, want, tolerance, tolerance / 10)


def test_every_rule_has_a_row() -> None:
    ops = {node.op_type for made in CASES.values() for node in made.graph.node}
    assert ops | FOR_INPUTS_ONLY == set(STANDARD) - {"QuantizeLinear"}


@pytest.mark.parametrize(("dtype", "zero"), [*product((np.int8, np.uint8, np.int16), (0, 3))])
def test_quantized_constants_are_integers_as_floats(dtype: Any, zero: int) -> None:
    numbers = floats(-1e6, -4.25, -0.75, -0.25, 0, 0.25, 0.75, 100, 1e6)
    made = of("QuantizeLinear", numbers, np.float32(0.5), np.array(zero, dtype), opset=21)
    ((_, got),) = folded(made, {})
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, ReferenceEvaluator(made).run(None, {})[0])


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
