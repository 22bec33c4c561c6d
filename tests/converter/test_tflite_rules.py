"""Each rule of TensorFlow Lite against NumPy: of an input, and computed once of constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.tflite.files import Tensor
from phonebit.converter.importers.tflite.rules import RULES
from phonebit.converter.importers.tflite.rules.larq import LARQ
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.interpreter import run
from support.onnx_models import floats, halves
from support.tflite_models import constant, imported, operator, tensor

Array = NDArray[Any]
MAP = halves(1, 5, 6, 8)
SMALL = halves(8, seed=4)
POSITIVE = np.abs(MAP) + np.float32(0.125)
NAN = np.float32(np.nan)


@dataclass
class Row:
    """An operator, its operands (the first one is an input, too), results by NumPy, and options."""

    op: str
    operands: list[Array]
    results: list[Array]
    options: dict[str, Any] = field(default_factory=dict)
    reads_inputs: bool = True
    folds: bool = True


def row(op: str, operands: list[Array], formula: Callable[..., Any], **options: Any) -> Row:
    """A row whose result is a function of its operands, in float32."""
    with np.errstate(all="ignore"):
        result = np.asarray(formula(*operands))
    kept = result if result.dtype.kind in "ib" else result.astype(np.float32)
    return Row(op, operands, [kept], options)


def of_constants(made: Row) -> Row:
    made.reads_inputs = False
    return made


def of_inputs(made: Row) -> Row:
    made.folds = False
    return made


def limited(low: float, high: float) -> Callable[[Array], Array]:
    return lambda x: np.clip(x, np.float32(low), np.float32(high))


def windows(
    x: Array, size: tuple[int, int], step: tuple[int, int], same: bool, apart: tuple[int, int]
) -> Array:
    """Elements under each window, (N, Ho, Wo, C, KH, KW); NaN in padding."""
    spans = [(k - 1) * d + 1 for k, d in zip(size, apart, strict=True)]
    if same:
        lacking = [
            max(0, (-(-n // s) - 1) * s + k - n)
            for n, s, k in zip(x.shape[1:3], step, spans, strict=True)
        ]
        around = [(n // 2, n - n // 2) for n in lacking]
        x = np.pad(x, [(0, 0), *around, (0, 0)], constant_values=NAN)
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, (1, 2))
    return seen[:, :: step[0], :: step[1], :, :: apart[0], :: apart[1]]


def window_row(op: str, size: tuple[int, int], same: bool, *weights: Array, **options: Any) -> Row:
    step = options.get("StrideH", 1), options.get("StrideW", 1)
    apart = options.get("DilationHFactor", 1), options.get("DilationWFactor", 1)
    seen = windows(MAP, size, step, same, apart)
    zeros = np.nan_to_num(seen, nan=0.0)
    results: dict[str, Callable[[], Any]] = {
        "MAX_POOL_2D": lambda: np.nanmax(seen, (-2, -1)),
        "AVERAGE_POOL_2D": lambda: np.nanmean(seen.astype(np.float64), (-2, -1)),
        "CONV_2D": lambda: np.einsum("nyxcij,oijc->nyxo", zeros, weights[0]) + weights[1],
        "DEPTHWISE_CONV_2D": lambda: (
            np.einsum("nyxcij,ijcm->nyxcm", zeros, weights[0].reshape(*size, 8, -1)).reshape(
                *seen.shape[:3], -1
            )
            + weights[1]
        ),
    }
    if not weights:
        options |= {"FilterHeight": size[0], "FilterWidth": size[1]}
    made = row(op, [MAP, *weights], lambda *_: results[op](), Padding=0 if same else 1, **options)
    return of_inputs(made)


def grouped(x: Array, filters: Array, bias: Array) -> Array:
    """A convolution of 1 x 1 pixels in two groups."""
    halves_of = zip(np.split(x, 2, -1), np.split(filters[:, 0, 0], 2), strict=True)
    return np.concatenate([part @ some.T for part, some in halves_of], -1) + bias


AXES = np.array([1, 2], np.int32)
BLOCKS = MAP[:, :4].reshape(1, 2, 2, 3, 2, 8).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 32)
DENSE = halves(3, 8)
PADS = np.array([[0, 0], [1, 0], [2, 1], [0, 0]], np.int32)
POINTS = [np.array(n, np.int32) for n in ((0, 1, 0, 2), (1, 4, 6, 7), (1, 2, 3, 1))]
UNARY: dict[str, Callable[[Array], Any]] = {
    "ABS": np.abs,
    "NEG": np.negative,
    "SIGN": np.sign,
    "ROUND": np.rint,
    "EXP": np.exp,
    "TANH": np.tanh,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "RELU": limited(0, np.inf),
    "RELU6": limited(0, 6),
    "RELU_N1_TO_1": limited(-1, 1),
}
BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
}
LIMITING: dict[str, Callable[[Array, Array], Any]] = {"MAXIMUM": np.maximum, "MINIMUM": np.minimum}
ROUNDING: dict[str, Callable[[Array], Any]] = {"FLOOR": np.floor, "CEIL": np.ceil}
COMPARING: dict[str, Callable[[Array, Array], Any]] = {
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
}
FUSED = {0: (-np.inf, np.inf), 1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}
ROWS: dict[str, Row] = {
    **{op: row(op, [MAP * 8], formula) for op, formula in UNARY.items()},
    **{op: of_constants(row(op, [MAP * 3], f)) for op, f in ROUNDING.items()},
    **{op: row(op, [POSITIVE], f) for op, f in {"LOG": np.log, "SQRT": np.sqrt}.items()},
    **{op: row(op, [MAP, SMALL], formula) for op, formula in BINARY.items()},
    **{op: of_constants(row(op, [MAP, SMALL], f)) for op, f in (COMPARING | LIMITING).items()},
    **{f"{op} of a number": row(op, [MAP, floats(0.25)], f) for op, f in LIMITING.items()},
    **{
        f"ADD, activation {number}": row(
            "ADD", [MAP * 8, SMALL], lambda x, y, low=low, high=high: np.clip(x + y, low, high),
            FusedActivationFunction=number,
        )
        for number, (low, high) in FUSED.items()
    },
    "DIV": row("DIV", [MAP, np.abs(SMALL) + 1], np.divide),
    "POW": row("POW", [POSITIVE, floats(2.5)], np.power),
    "PRELU": row("PRELU", [MAP, SMALL], lambda x, y: np.where(x < 0, x * y, x)),
    "LEAKY_RELU": row("LEAKY_RELU", [MAP], lambda x: np.where(x < 0, x * 0.25, x), Alpha=0.25),
    "SELECT_V2": of_constants(row("SELECT_V2", [MAP > 0, MAP, SMALL], np.where)),
    "SOFTMAX": of_inputs(
        row("SOFTMAX", [MAP], lambda x: (e := np.exp(0.5 * x)) / e.sum(-1, keepdims=True), Beta=0.5)
    ),
    "MEAN": row("MEAN", [MAP[:, :4, :4], AXES], lambda x, _: x.mean((1, 2))),
    "MEAN, kept": row(
        "MEAN", [MAP[:, :4, :4], AXES], lambda x, _: x.mean((1, 2), keepdims=True), KeepDims=True
    ),
    "SUM": row("SUM", [MAP, AXES], lambda x, _: x.sum((1, 2))),
    "REDUCE_MAX": row("REDUCE_MAX", [MAP, AXES], lambda x, _: x.max((1, 2))),
    "ARG_MAX": of_constants(row("ARG_MAX", [MAP[0, 0]], lambda x: x.argmax(0)[None])),
    "FULLY_CONNECTED": of_inputs(
        row("FULLY_CONNECTED", [MAP[:, 0, 0], DENSE, SMALL[:3]], lambda x, w, b: x @ w.T + b)
    ),
    "FULLY_CONNECTED of a map": of_inputs(
        row(
            "FULLY_CONNECTED", [MAP, DENSE, SMALL[:3]], lambda x, w, b: np.maximum(x @ w.T + b, 0),
            KeepNumDims=True, FusedActivationFunction=1,
        )
    ),
    "CONV_2D": window_row(
        "CONV_2D", (3, 2), True, halves(4, 3, 2, 8), SMALL[:4], StrideH=2, DilationWFactor=2
    ),
    "CONV_2D, valid": window_row(
        "CONV_2D", (2, 3), False, halves(4, 2, 3, 8), SMALL[:4], StrideW=2, DilationHFactor=2
    ),
    "CONV_2D of groups": of_inputs(
        row("CONV_2D", [MAP, halves(4, 1, 1, 4), SMALL[:4]], grouped, Padding=1)
    ),
    "DEPTHWISE_CONV_2D": window_row(
        "DEPTHWISE_CONV_2D", (2, 3), True, halves(1, 2, 3, 16), halves(16), StrideW=2
    ),
    "MAX_POOL_2D": window_row("MAX_POOL_2D", (3, 2), True, StrideH=2, StrideW=1),
    "AVERAGE_POOL_2D": window_row("AVERAGE_POOL_2D", (2, 2), False, StrideH=2, StrideW=3),
    "AVERAGE_POOL_2D, padded": window_row("AVERAGE_POOL_2D", (2, 2), True, StrideH=1, StrideW=2),
    "PAD": row("PAD", [MAP, PADS], np.pad),
    "PADV2": row(
        "PADV2", [MAP, PADS, np.float32(0.5)], lambda x, p, v: np.pad(x, p, constant_values=v)
    ),
    "MIRROR_PAD": row("MIRROR_PAD", [MAP, PADS], lambda x, p: np.pad(x, p, "reflect"), Mode=0),
    "RESHAPE": row("RESHAPE", [MAP, np.array([1, 3, 10, -1])], lambda x, s: x.reshape(s)),
    "RESHAPE by an option": row("RESHAPE", [MAP], lambda x: x.reshape(1, -1), NewShape=[1, 240]),
    "SQUEEZE": row("SQUEEZE", [MAP[:, :1]], lambda x: x[:, 0], SqueezeDims=[1]),
    "SQUEEZE of all": of_constants(row("SQUEEZE", [MAP[:, :1]], np.squeeze)),
    "EXPAND_DIMS": row("EXPAND_DIMS", [MAP[:, 0], np.int32(1)], lambda x, _: x[:, None]),
    "TRANSPOSE": row("TRANSPOSE", [MAP, np.array([0, 2, 1, 3])], np.transpose),
    "CONCATENATION": row(
        "CONCATENATION", [MAP, MAP[..., :2]], lambda *x: np.maximum(np.concatenate(x, 3), 0),
        Axis=-1, FusedActivationFunction=1,
    ),
    "CONCATENATION of rows": of_constants(
        row("CONCATENATION", [MAP[0], MAP[0]], lambda *x: np.concatenate(x, 0))
    ),
    "PACK": row("PACK", [MAP[:, 0], MAP[:, 1]], lambda *x: np.stack(x, 1), Axis=1),
    "SPLIT": Row("SPLIT", [np.int32(3), MAP], np.split(MAP, 2, 3), {}, False),
    "SPLIT_V": Row(
        "SPLIT_V", [MAP, np.array([2, 3], np.int32), np.int32(1)], np.split(MAP, [2], 1)
    ),
    "SLICE": row(
        "SLICE", [MAP, np.array([0, 1, 0, 2]), np.array([1, 3, -1, 4])],
        lambda x, *_: x[:, 1:4, :, 2:6],
    ),
    "STRIDED_SLICE": row("STRIDED_SLICE", [MAP, *POINTS], lambda x, *_: x[:, 1:4:2, 0:6:3, 2:7]),
    "STRIDED_SLICE, open": row(
        "STRIDED_SLICE", [MAP, *POINTS], lambda x, *_: x[:, :4:2, 0::3, 2:7],
        BeginMask=0b0010, EndMask=0b0100,
    ),
    "STRIDED_SLICE, one row": row(
        "STRIDED_SLICE", [MAP, *POINTS], lambda x, *_: x[:, 1, 0:6:3, 2:7], ShrinkAxisMask=0b0010
    ),
    "GATHER": row("GATHER", [MAP, np.array([3, 0])], lambda x, i: x[..., i], Axis=3),
    "SHAPE": of_constants(row("SHAPE", [MAP], lambda x: np.array(x.shape, np.int32))),
    "CAST": of_constants(row("CAST", [MAP], lambda x: x.astype(np.int32))),
    "DEQUANTIZE": of_constants(row("DEQUANTIZE", [MAP.astype(np.float16)], lambda x: x)),
    "SPACE_TO_DEPTH": row("SPACE_TO_DEPTH", [MAP[:, :4]], lambda _: BLOCKS, BlockSize=2),
    "DEPTH_TO_SPACE": row("DEPTH_TO_SPACE", [BLOCKS], lambda _: MAP[:, :4], BlockSize=2),
}  # fmt: skip


def check(got: Array, expected: Array) -> None:
    """Equal: but powers, exponentials and quotients round."""
    np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [name for name, each in ROWS.items() if each.reads_inputs])
def test_rules_compute_what_numpy_computes(name: str) -> None:
    made = ROWS[name]
    x, *others = made.operands
    tensors = [tensor("x", x.shape), *(constant(f"c{i}", a) for i, a in enumerate(others))]
    tensors += [tensor(f"y{i}", each.shape) for i, each in enumerate(made.results)]
    count = len(made.operands)
    outputs = list(range(count, len(tensors)))
    graph = imported(
        tensors, [operator(made.op, [*range(count)], outputs, **made.options)], outputs
    )
    images = x.reshape(1, *graph.types["x"].shape)
    values = run(graph, {"x": images}, graph.outputs)
    for name, expected in zip(graph.outputs, made.results, strict=True):
        check(values[name], expected)


@pytest.mark.parametrize("name", ROWS)
def test_constants_are_computed_as_numpy_does(name: str) -> None:
    made, builder = ROWS[name], Builder()
    calls = [builder.parameter(np.asarray(a), f"c{i}") for i, a in enumerate(made.operands)]
    result = made.results[0]
    facts = {"operand": constant("c", made.operands[0]), "result": constant("y", result)}
    outputs = [f"y{i}" for i in range(len(made.results))]
    node = Node(made.op, "", 1, calls, outputs, made.op, {**made.options, **facts})
    builder.begin(node)
    results: Any = RULES[made.op](builder, node)
    results = [results] if isinstance(results, Call) else results
    for call, expected in zip(results, made.results, strict=True):
        assert call.shape == expected.shape
        if made.folds:
            value = builder.value(call, "results")
            assert value.dtype == expected.dtype
            check(value, expected)
        else:
            with pytest.raises(UnsupportedError, match="from constants alone"):
                builder.value(call, "results")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_numbers_become_integers_of_their_own_type(dtype: str) -> None:
    """The nearest level of the result's scale, within its type."""
    result = Tensor("y", dtype, MAP.shape, None, floats(0.25), np.array([3]), 0)
    limits = np.iinfo(dtype)
    levels = np.clip(np.rint(MAP * 100 / np.float32(0.25)) + 3, limits.min, limits.max)
    graph = imported([tensor("x", MAP.shape), result], [operator("QUANTIZE", [0], [1])], [1])
    values = run(graph, {"x": MAP * 100}, graph.outputs)
    check(values[graph.outputs[0]], ((levels - 3) * np.float32(0.25)).astype(np.float32))


def test_every_rule_has_a_row() -> None:
    """Larq's operators have files that Larq Compute Engine wrote: test_importer_tflite.py."""
    assert {each.op for each in ROWS.values()} == set(RULES) - set(LARQ) - {"QUANTIZE"}
