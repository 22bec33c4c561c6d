"""Each family of ONNX's operators, in the forms of several opsets, computes what the model does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from phonebit.converter.importers.onnx.importer import import_onnx, open_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.ops import Elementwise
from phonebit.converter.ops.epilogue.functions import Gelu
from phonebit.errors import ConversionError, UnsupportedLayerError
from support.onnx_models import (
    assert_equal_to_onnx,
    floats,
    halves,
    integers,
    kinds,
    model,
    negated,
    single,
)

MAP = (1, 4, 6, 8)
VECTOR = (1, 6)

LAYERS: dict[str, onnx.ModelProto] = {
    "conv": single("Conv", MAP, halves(5, 4, 3, 3), halves(5)),
    "conv with pads of each side": single(
        "Conv", MAP, halves(5, 4, 3, 2), pads=[2, 0, 1, 1], strides=[2, 1]
    ),
    "conv, SAME_UPPER": single(
        "Conv", MAP, halves(5, 4, 3, 3), auto_pad="SAME_UPPER", strides=[2, 3]
    ),
    "conv, SAME_LOWER": single("Conv", MAP, halves(5, 4, 2, 2), auto_pad="SAME_LOWER"),
    "grouped conv": single("Conv", MAP, halves(6, 2, 3, 3), group=2, dilations=[2, 2]),
    "depthwise conv": single("Conv", MAP, halves(4, 1, 3, 3), group=4, pads=[1, 1, 1, 1]),
    "conv of one axis": single("Conv", (1, 4, 9), halves(5, 4, 3), halves(5), pads=[2, 0]),
    "gemm": single("Gemm", VECTOR, halves(6, 3), halves(3)),
    "gemm, transposed": single("Gemm", VECTOR, halves(3, 6), halves(1, 3), transB=1),
    "gemm with factors": single(
        "Gemm", VECTOR, halves(3, 6), halves(3), transB=1, alpha=0.5, beta=2.0
    ),
    "conv transpose": single(
        "ConvTranspose",
        MAP,
        halves(4, 6, 3, 2),
        halves(6),
        strides=[2, 2],
        pads=[1, 0, 0, 1],
        output_padding=[1, 0],
    ),
    "conv transpose of one axis": single("ConvTranspose", (1, 4, 5), halves(4, 2, 3), strides=[3]),
    "matmul": single("MatMul", VECTOR, halves(6, 3)),
    "matmul on pixels": single("MatMul", (1, 5, 6), halves(6, 3)),
    "matmul of heads": single("MatMul", (1, 4, 6, 8), halves(4, 8, 3)),
    "matmul of maps": model(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["x", "t"], ["y"]),
        ],
        {"x": MAP},
    ),
    "einsum": model(
        [
            helper.make_node("Einsum", ["x", "x"], ["m"], equation="bchw,bdhw->bcd"),
            helper.make_node("Neg", ["m"], ["y"]),
        ],
        {"x": MAP},
    ),
    "batch norm": single(
        "BatchNormalization",
        MAP,
        halves(4),
        halves(4, seed=4),
        halves(4, seed=5),
        np.full(4, 1 - 2.0**-10, np.float32),
        epsilon=2.0**-10,
    ),
    "batch norm, opset 9": single(
        "BatchNormalization",
        (1, 4),
        halves(4),
        halves(4, seed=4),
        halves(4, seed=5),
        np.full(4, 1 - 2.0**-10, np.float32),
        epsilon=2.0**-10,
        opset=9,
    ),
}
POOLS: dict[str, onnx.ModelProto] = {
    "max": single("MaxPool", MAP, kernel_shape=[2, 3], strides=[2, 2]),
    "max with pads": single("MaxPool", MAP, kernel_shape=[3, 3], pads=[1, 1, 0, 0], strides=[2, 2]),
    "max, ceil": single("MaxPool", MAP, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "max, dilated": single("MaxPool", MAP, kernel_shape=[2, 2], dilations=[2, 3]),
    "max of one axis": single("MaxPool", (1, 4, 9), kernel_shape=[2], strides=[2]),
    "average": single("AveragePool", MAP, kernel_shape=[2, 2], strides=[2, 2]),
    "average without its pads": single(
        "AveragePool", MAP, kernel_shape=[2, 2], pads=[1, 1, 0, 0], strides=[2, 2]
    ),
    "average with its pads": single(
        "AveragePool", MAP, kernel_shape=[2, 2], pads=[0, 1, 1, 0], count_include_pad=1
    ),
    "global average": single("GlobalAveragePool", (1, 4, 4, 8)),
    "global max": single("GlobalMaxPool", MAP),
    "mean of pixels": single("ReduceMean", (1, 4, 4, 8), axes=[2, 3], keepdims=0),
    "mean of pixels, opset 18": single("ReduceMean", (1, 4, 4, 8), integers(-1, -2), opset=18),
    "sum of channels": single("ReduceSum", MAP, integers(1)),
    "max of pixels": single("ReduceMax", MAP, axes=[2, 3]),
    "argmax of channels": model(
        [
            helper.make_node("ArgMax", ["x"], ["a"], axis=1, keepdims=0),
            helper.make_node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["b", "half"], ["y"]),
        ],
        {"x": MAP},
        constants={"half": floats(0.5)},
    ),
    "min of pixels": single("ReduceMin", MAP, axes=[2, 3]),
    "max of channels": single("ReduceMax", MAP, axes=[1]),
    "max of axes apart": model(
        [
            helper.make_node("Reshape", ["x", "sizes"], ["parts"]),
            helper.make_node("ReduceMax", ["parts"], ["y"], axes=[2, 4], keepdims=0),
        ],
        {"x": MAP},
        constants={"sizes": integers(1, 4, 2, 3, 4, 2)},
    ),
    "magnitudes": single("ReduceL1", MAP, axes=[1]),
    "squares": single("ReduceSumSquare", MAP, axes=[3]),
    "pad": single("Pad", MAP, integers(0, 0, 1, 2, 0, 0, 0, 1), floats(0.5)),
    "pad, opset 2": single("Pad", MAP, pads=[0, 0, 1, 2, 0, 0, 0, 1], opset=2),
    "pad of some axes": single("Pad", MAP, integers(1, 2), None, integers(-1), opset=18),
    "pad of channels": single("Pad", MAP, integers(0, 2, 0, 0, 0, 3, 0, 0)),
    "pad, reflected": single("Pad", MAP, integers(0, 0, 1, 2, 0, 0, 0, 1), mode="reflect"),
    "pad, edge": single("Pad", MAP, integers(0, 0, 1, 2, 0, 0, 0, 1), mode="edge"),
}
MOVES: dict[str, onnx.ModelProto] = {
    "reshape": single("Reshape", MAP, integers(0, 2, -1, 8)),
    "flatten": single("Flatten", MAP),
    "transpose": single("Transpose", MAP, perm=[0, 2, 3, 1]),
    "slice": single("Slice", MAP, integers(1, 0), integers(3, 99), integers(1, 3), integers(1, 2)),
    "slice, backwards": single(
        "Slice", MAP, integers(-1), integers(-99), integers(2), integers(-1)
    ),
    "slice, opset 9": single("Slice", MAP, starts=[1], ends=[-1], axes=[2], opset=9),
    "gather": single("Gather", MAP, integers(3, 0, -2), axis=1),
    "gather of points": model(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[2, 3, 0, 1]),
            helper.make_node("GatherND", ["t", "points"], ["g"]),
            helper.make_node("Transpose", ["g"], ["y"], perm=[2, 3, 0, 1]),
        ],
        {"x": MAP},
        constants={"points": np.stack(np.meshgrid([5, 0, -2], [1, 1], indexing="ij"), -1)},
    ),
    "choice by a constant mask": model(
        [helper.make_node("Where", ["mask", "x", "other"], ["y"])],
        {"x": MAP},
        constants={"mask": halves(6, 8) > 0, "other": floats(0.5)},
    ),
    "squeeze": single("Squeeze", (1, 4, 1, 8), integers(2)),
    "squeeze, opset 11": single("Squeeze", (1, 4, 1, 8), axes=[2], opset=11),
    "unsqueeze": single("Unsqueeze", (1, 4, 8), integers(2)),
    "tile": single("Tile", MAP, integers(1, 2, 1, 1)),
    "depth to space": single("DepthToSpace", MAP, blocksize=2),
    "depth to space, CRD": single("DepthToSpace", (1, 8, 3, 2), blocksize=2, mode="CRD"),
    "space to depth": single("SpaceToDepth", MAP, blocksize=2),
    "nearest": single("Resize", MAP, None, floats(1, 1, 2, 3), mode="nearest"),
    "nearest, floor": single(
        "Resize",
        MAP,
        floats(),
        floats(1, 1, 2, 2),
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
        opset=11,
    ),
    "nearest, sizes": single(
        "Resize", MAP, None, None, integers(1, 4, 9, 4), nearest_mode="round_prefer_ceil"
    ),
    "upsample, opset 9": single("Upsample", MAP, floats(1, 1, 2, 2), opset=9),
    "linear": single("Resize", MAP, None, floats(1, 1, 2, 2), mode="linear"),
    "linear, aligned": single(
        "Resize",
        (1, 4, 5, 5),
        None,
        None,
        integers(1, 4, 9, 9),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
}
SLOPES = halves(4, 1, 1)
ACTIVATIONS: dict[str, onnx.ModelProto] = {
    "relu": single("Relu", MAP),
    "clip": single("Clip", MAP, np.float32(-1), np.float32(2)),
    "clip from below": single("Clip", MAP, np.float32(-1)),
    "clip, opset 6": single("Clip", MAP, min=0.0, max=6.0, opset=6),
    "leaky relu": single("LeakyRelu", MAP, alpha=0.125),
    "prelu": single("PRelu", MAP, SLOPES),
    "prelu of a vector": single("PRelu", VECTOR, halves(6)),
    "abs": single("Abs", MAP),
    "add": single("Add", MAP, halves(4, 1, 1)),
    "sub": single("Sub", MAP, np.float32(0.5)),
    "mul": single("Mul", MAP, halves(1, 4, 1, 1)),
    "div": single("Div", MAP, floats(2.0)),
    "max": single("Max", MAP, floats(0.5)),
    "min": single("Min", MAP, floats(-0.5)),
    "power of one": single("Pow", MAP, floats(1.0)),
    "square": single("Pow", MAP, floats(2.0)),
    "identity": single("Identity", MAP),
    "dropout": single("Dropout", MAP, opset=13),
    "softsign of the hard kind": single("HardSigmoid", MAP, alpha=0.25, beta=0.5),
}
CURVES: dict[str, onnx.ModelProto] = {
    "sigmoid": single("Sigmoid", MAP),
    "tanh": single("Tanh", MAP),
    "hard swish": single("HardSwish", MAP),
    "softmax": single("Softmax", VECTOR),
    "softmax, opset 11": single("Softmax", VECTOR, opset=11),
    "softmax of channels": single("Softmax", MAP, axis=1),
    "log softmax": single("LogSoftmax", VECTOR, axis=-1),
    "softmax of columns": single("Softmax", MAP, axis=2),
    "softmax of the last axis": single("Softmax", MAP, opset=13),
}
STATISTICS: dict[str, onnx.ModelProto] = {
    "cubic": single("Resize", MAP, None, floats(1, 1, 2, 2), mode="cubic"),
    "exp": single("Exp", MAP),
    "power": single("Pow", MAP, floats(2.5)),
    "inverse power": single("Pow", MAP, floats(-3.0)),
    "powers of two": model(
        [helper.make_node("Pow", ["two", "x"], ["y"])], {"x": MAP}, constants={"two": floats(2)}
    ),
    "elu": single("Elu", MAP, alpha=0.5),
    "selu": single("Selu", MAP),
    "celu": single("Celu", MAP, alpha=2.0),
    "mish": single("Mish", MAP, opset=18),
    "softplus": single("Softplus", MAP),
    "softsign": single("Softsign", MAP),
    "length": single("ReduceL2", MAP, axes=[1]),
    "unit length": single("LpNormalization", MAP, axis=1),
    "layer norm": single("LayerNormalization", MAP, halves(8), halves(8, seed=4)),
    "layer norm of maps": single("LayerNormalization", MAP, halves(4, 6, 8), axis=1),
    "instance norm": single("InstanceNormalization", MAP, halves(4), halves(4, seed=4)),
    "group norm": single(
        "GroupNormalization", MAP, halves(4), halves(4, seed=4), num_groups=2, opset=21
    ),
}
EXACT = LAYERS | POOLS | MOVES | ACTIVATIONS


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
