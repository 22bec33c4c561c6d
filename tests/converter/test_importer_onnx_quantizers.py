"""QONNX's and FINN's quantizers, and signs written in ONNX, become the graph's quantizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

import phonebit
from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.onnx.importer import import_onnx, open_onnx
from phonebit.converter.interpreter import run
from phonebit.converter.ops import BinaryConv2D, Quantize, Sign
from phonebit.errors import UnsupportedLayerError
from phonebit.verification import verify
from support.onnx_models import assert_equal_to_onnx, floats, halves, integers, kinds, model, single

BREVITAS = "onnx.brevitas"
FINN = "finn.custom_op.general"
MAP = (1, 4, 5, 5)


def quant(bits: float, scale: Any = 0.5, zero: float = 0.0, **attributes: Any) -> onnx.ModelProto:
    """A Quant node; the scale is a number, or an array."""
    constants = [np.asarray(scale, np.float32), floats(zero)[0], floats(bits)[0]]
    given: dict[str, Any] = {"signed": 0, "narrow": 0, "rounding_mode": "ROUND", **attributes}
    return single("Quant", MAP, *map(np.asarray, constants), domain=BREVITAS, **given)


QUANTS: dict[str, onnx.ModelProto] = {
    "1 bit": quant(1),
    "1 bit, signed": quant(1, signed=1),
    "2 bits": quant(2),
    "2 bits, signed": quant(2, signed=1),
    "2 bits, narrow": quant(2, signed=1, narrow=1),
    "3 bits": quant(3),
    "4 bits": quant(4, 0.25),
    "4 bits, narrow": quant(4, 0.25, narrow=1),
    "with a zero point": quant(3, 0.5, 2.0),
    **{
        mode: quant(2, signed=1, rounding_mode=mode)
        for mode in ("CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN", "HALF_EVEN")
    },
}
OTHERS: dict[str, onnx.ModelProto] = {
    "8 bits": quant(8, 1 / 32, signed=1),
    "a scale for each channel": quant(2, [[[0.5]], [[0.25]], [[1.0]], [[2.0]]]),
    "bipolar": single("BipolarQuant", MAP, np.array(0.5, np.float32), domain=BREVITAS),
    "bipolar with scales": single("BipolarQuant", MAP, halves(4, 1, 1) + 2, domain=BREVITAS),
    "trunc": single(
        "Trunc",
        MAP,
        *(np.array(n, np.float32) for n in (0.125, 0, 6, 3)),
        domain="qonnx.custom_op.general",
        rounding_mode="FLOOR",
    ),
    "trunc, second version": single(
        "Trunc",
        MAP,
        *(np.array(n, np.float32) for n in (0.125, 0, 6, 1, 3)),
        domain="qonnx.custom_op.general",
        rounding_mode="FLOOR",
        signed=1,
    ),
    "thresholds": single(
        "MultiThreshold",
        MAP,
        np.array([[-1.0, 0.5, 0.5, 2.0]], np.float32),
        domain=FINN,
        out_dtype="UINT4",
    ),
    "thresholds of each channel": single(
        "MultiThreshold",
        MAP,
        np.sort(halves(4, 3), axis=1) * 3,
        domain=FINN,
        out_dtype="INT2",
        out_scale=0.5,
        out_bias=-0.5,
    ),
    "many thresholds of each channel": single(
        "MultiThreshold", MAP, np.sort(halves(4, 40), axis=1), domain=FINN, out_dtype="UINT6"
    ),
    "many uneven thresholds": single(
        "MultiThreshold",
        MAP,
        np.arange(40, dtype=np.float32)[None] ** 2 / 64 - 4,
        domain=FINN,
        out_dtype="UINT6",
    ),
    "thresholds, channels last": single(
        "MultiThreshold",
        (1, 5, 5, 4),
        np.sort(halves(4, 3), axis=1) * 3,
        domain=FINN,
        out_dtype="UINT2",
        data_layout="NHWC",
    ),
    "many even thresholds": single(
        "MultiThreshold",
        MAP,
        (np.arange(63, dtype=np.float32)[None] - 31) / 8,
        domain=FINN,
        out_dtype="UINT6",
    ),
}


@pytest.mark.parametrize("name", QUANTS)
def test_quant_of_few_bits_is_one_quantizer(name: str) -> None:
    graph = assert_equal_to_onnx(QUANTS[name])
    assert kinds(graph) in (["Quantize"], ["Sign"], ["Sign", "Elementwise"])


@pytest.mark.parametrize("name", OTHERS)
def test_other_quantizers_equal_their_execution(name: str) -> None:
    assert_equal_to_onnx(OTHERS[name])


@pytest.mark.parametrize("name", QUANTS)
def test_levels_change_at_the_same_float(name: str) -> None:
    """At each threshold, and at the numbers next to it."""
    source = open_onnx(QUANTS[name])
    ops = [node.op for node in source.graph.nodes if isinstance(node.op, Quantize | Sign)]
    thresholds = floats(ops[0].threshold) if isinstance(ops[0], Sign) else ops[0].thresholds
    near = [np.nextafter(thresholds, np.float32(side)) for side in (-np.inf, np.inf)]
    numbers = np.resize(np.concatenate([thresholds, *near]), (1, 5, 5, 4))
    numbers = np.where(np.abs(numbers) < np.finfo(np.float32).tiny, 0, numbers).astype(np.float32)
    assert_equal_to_onnx(source, {"x": numbers})


SIGNS: dict[str, list[onnx.NodeProto]] = {
    "where of a comparison": [
        helper.make_node("GreaterOrEqual", ["x", "zero"], ["m"]),
        helper.make_node("Where", ["m", "one", "minus"], ["y"]),
    ],
    "a mask as a number": [
        helper.make_node("GreaterOrEqual", ["x", "zero"], ["m"]),
        helper.make_node("Cast", ["m"], ["f"], to=1),
        helper.make_node("Mul", ["f", "two"], ["t"]),
        helper.make_node("Sub", ["t", "one"], ["y"]),
    ],
    "the sign of a sign and one half": [
        helper.make_node("Sign", ["x"], ["s"]),
        helper.make_node("Add", ["s", "half"], ["h"]),
        helper.make_node("Sign", ["h"], ["y"]),
    ],
    "not less": [
        helper.make_node("Less", ["x", "zero"], ["l"]),
        helper.make_node("Not", ["l"], ["m"]),
        helper.make_node("Where", ["m", "one", "minus"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", SIGNS)
def test_signs_of_many_styles_are_signs(name: str) -> None:
    numbers = {"zero": 0, "one": 1, "minus": -1, "two": 2, "half": 0.5}
    constants = {key: np.array(number, np.float32) for key, number in numbers.items()}
    assert kinds(assert_equal_to_onnx(model(SIGNS[name], {"x": MAP}, constants=constants))) == [
        "Sign"
    ]


def test_quantize_and_dequantize_are_one_quantizer() -> None:
    """Int8 numbers that a clip leaves four of."""
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    constants: dict[str, NDArray[Any]] = {
        "low": np.array(0, np.float32),
        "high": np.array(1.5, np.float32),
        "scale": np.array(0.5, np.float32),
        "zero": np.array(3, np.int8),
    }
    source = open_onnx(model(nodes, {"x": MAP}, constants=constants))
    assert kinds(source.graph) == ["Quantize"]
    images = halves(2, 5, 5, 4) * 2
    expected = np.rint(np.clip(images, 0, 1.5) / 0.5) * 0.5
    np.testing.assert_array_equal(run(source.graph, {"x": images})["y"], expected)


def test_weights_may_be_stored_as_integers() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["v"], axis=0),
        helper.make_node("Conv", ["x", "v"], ["y"]),
    ]
    weights = np.random.default_rng(1).integers(-128, 128, (4, 4, 3, 3)).astype(np.int8)
    constants = {"w": weights, "scale": halves(4) + 2, "zero": np.arange(4).astype(np.int8)}
    assert_equal_to_onnx(model(nodes, {"x": MAP}, constants=constants, opset=19))


def brevitas_network(bits: float, weight_bits: float) -> onnx.ModelProto:
    """Two convolutions of quantized maps and kernels, each after a normalisation, and scores."""
    number = {
        name: np.array(value, np.float32)
        for name, value in {"zero": 0, "one": 1, "bits": bits, "wbits": weight_bits}.items()
    }
    constants: dict[str, NDArray[Any]] = {
        **number,
        "scale": np.array(0.5, np.float32),
        "wscale": (halves(8, 1, 1, 1) + 2) / 4,
        "w1": halves(8, 4, 3, 3, seed=11),
        "w2": halves(8, 8, 3, 3, seed=12),
        "w3": halves(8, 5),
        "sizes": integers(0, -1),
    }
    nodes = [
        helper.make_node(
            "Quant",
            ["x", "scale", "zero", "bits"],
            ["h0"],
            name="in",
            domain=BREVITAS,
            signed=1,
            narrow=1,
        )
    ]
    for layer in (1, 2):
        for kind, scale in (("gamma", 2.0**-3), ("beta", 0.5), ("mean", 1.0)):
            constants[f"{kind}{layer}"] = halves(8, seed=layer + len(kind)) * np.float32(scale)
        constants[f"var{layer}"] = np.full(8, 1 - 2.0**-10, np.float32)
        if weight_bits == 1:
            weight = helper.make_node(
                "BipolarQuant", [f"w{layer}", "wscale"], [f"v{layer}"], domain=BREVITAS
            )
        else:
            weight = helper.make_node(
                "Quant",
                [f"w{layer}", "wscale", "zero", "wbits"],
                [f"v{layer}"],
                domain=BREVITAS,
                signed=1,
                narrow=1,
            )
        statistics = [f"{kind}{layer}" for kind in ("gamma", "beta", "mean", "var")]
        nodes += [
            weight,
            helper.make_node(
                "Conv",
                [f"h{layer - 1}", f"v{layer}"],
                [f"c{layer}"],
                name=f"conv{layer}",
                pads=[1, 1, 1, 1],
            ),
            helper.make_node(
                "BatchNormalization",
                [f"c{layer}", *statistics],
                [f"b{layer}"],
                name=f"bn{layer}",
                epsilon=2.0**-10,
            ),
            helper.make_node(
                "Quant",
                [f"b{layer}", "scale", "zero", "bits"],
                [f"h{layer}"],
                name=f"act{layer}",
                domain=BREVITAS,
                signed=int(bits == 1),
                narrow=0,
            ),
        ]
    nodes += [
        helper.make_node("GlobalAveragePool", ["h2"], ["p"], name="pool"),
        helper.make_node("Reshape", ["p", "sizes"], ["f"]),
        helper.make_node("Gemm", ["f", "w3"], ["y"], name="fc"),
    ]
    return model(nodes, {"x": (1, 4, 4, 4)}, constants=constants)


@pytest.mark.parametrize(("bits", "weight_bits"), [(1, 1), (2, 1), (2, 2), (4, 1)])
def test_brevitas_networks_are_binary_and_equal_to_the_last_bit(
    bits: float, weight_bits: float, tmp_path: Any
) -> None:
    source = open_onnx(brevitas_network(bits, weight_bits))
    conversion = convert_graph(source.graph, strict=True)
    binary = [node.name for node in conversion.engine.nodes if isinstance(node.op, BinaryConv2D)]
    assert {name.split("/")[0] for name in binary} == {"conv1", "conv2"}
    path = tmp_path / "network.pbit"
    path.write_bytes(conversion.content)
    images = halves(16, 4, 4, 4, maximum=16)
    expected = source.runner().activations({"x": images})["fc"]
    result = phonebit.Network.load(path, device="cpu").forward(images)
    np.testing.assert_array_equal(np.asarray(result).reshape(16, 5), expected.reshape(16, 5))


def finn_network(count: int) -> onnx.ModelProto:
    """Two binary convolutions between quantizers with thresholds of each channel."""
    rng = np.random.default_rng(count)
    constants = {
        "w1": np.where(halves(8, 4, 3, 3) >= 0, 1, -1).astype(np.float32),
        "w2": np.where(halves(8, 8, 3, 3, seed=9) >= 0, 1, -1).astype(np.float32),
        "t0": floats(-1, -0.5, 0.5)[None],
        "t1": np.sort(rng.integers(-20, 20, (8, count)), axis=1).astype(np.float32),
        "t2": np.sort(rng.integers(-40, 40, (8, count)), axis=1).astype(np.float32) + 0.5,
        "w3": halves(8, 5),
    }

    def thresholds(index: int, before: str, after: str) -> onnx.NodeProto:
        inputs, name = [before, f"t{index}"], f"mt{index}"
        return helper.make_node(
            "MultiThreshold", inputs, [after], name=name, domain=FINN, out_dtype="UINT2"
        )

    nodes = [
        thresholds(0, "x", "a"),
        helper.make_node("Conv", ["a", "w1"], ["b"], name="conv1", pads=[1, 1, 1, 1]),
        thresholds(1, "b", "c"),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["d", "w2"], ["e"], name="conv2"),
        thresholds(2, "e", "f"),
        helper.make_node("AveragePool", ["f"], ["g"], kernel_shape=[2, 2]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("MatMul", ["h", "w3"], ["y"], name="fc"),
    ]
    return model(nodes, {"x": (1, 4, 8, 8)}, constants=constants)


@pytest.mark.parametrize("count", [1, 3, 7])
def test_finn_networks_are_binary_and_verified_layer_by_layer(count: int, tmp_path: Any) -> None:
    made = finn_network(count)
    report = phonebit.convert(made, tmp_path / "network.pbit")
    assert report.binary_mac_share > 0.99
    result = verify(made, tmp_path / "network.pbit", device="cpu")
    assert (result.passed, result.ties, result.end_to_end.verdict) == (True, 0, "equal")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (quant(40), "has 40 bits; expected 1 to 32"),
        (quant(2, rounding_mode="STOCHASTIC"), "has rounding_mode 'STOCHASTIC'"),
        (
            single("MultiThreshold", MAP, halves(3, 2), domain=FINN, out_dtype="UINT2"),
            "has 3 rows of thresholds for 4 channels",
        ),
        (
            single("MultiThreshold", MAP, np.cumsum(np.abs(halves(4, 300)), 1), domain=FINN),
            "has 300 thresholds for each channel; expected at most 255",
        ),
    ],
)
def test_quantizers_that_cannot_be_expressed_are_named(made: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=reason):
        import_onnx(made)
