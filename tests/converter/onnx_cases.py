"""One model of each kind for the rules of ONNX's operators, and operators of constants alone."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.onnx_models import floats, halves, integers, model, single

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
