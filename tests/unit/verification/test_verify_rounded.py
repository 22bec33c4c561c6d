"""Verification of files with rounded weights, and of the lower precision that was asked for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit import Network
from phonebit.converter.convert import convert_graph
from phonebit.converter.infer import infer
from phonebit.converter.ir import SMALLEST, Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import BatchNorm, Conv2D, Elementwise, Input, Quantize, Sign
from phonebit.converter.ops.epilogue import Epilogue, PRelu
from phonebit.converter.passes.pipeline import FloatWeights
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.format.reader import read_contents
from phonebit.format.records import DataType
from phonebit.verification import VerificationReport, verify
from phonebit.verification.comparison import LOWER_PRECISION_LIMIT
from phonebit.verification.default_inputs import default_inputs
from phonebit.verification.html import html_report
from phonebit.verification.source_trace import Source
from support.cli_process import Cli

SAME = Window((3, 3), pads=(1, 1, 1, 1))
ROUNDED: tuple[FloatWeights, ...] = ("f16", "i8")


TORCH_SIGN = Quantize(np.array([0, SMALLEST], np.float32), np.array([-1, 0, 1], np.float32))


def trained_network(sign: Operator | None = None) -> Graph:
    """Float stem with its sign, binary convolution, float one after PReLU, float classifier."""
    rng = np.random.default_rng(11)
    graph = Graph("g", [Node("x", Input(), [], value="x")], {}, ["x"], [])
    graph.types["x"] = TensorType((12, 12, 3), DataType.F32)

    def add(name: str, op: Operator, operand: str) -> str:
        graph.nodes.append(Node(name, op, [operand], value=name, sources=[name]))
        graph.types = infer(graph)
        return name

    def real(*shape: int) -> NDArray[np.float32]:
        return rng.standard_normal(shape).astype(np.float32)

    def norm(channels: int) -> BatchNorm:
        gamma, beta, mean = rng.standard_normal((3, channels)).astype(np.float32)
        return BatchNorm(gamma, beta, mean, np.full(channels, 9.0, np.float32), 1e-3)

    value = add("stem", Conv2D(real(32, 3, 3, 3), SAME), "x")
    value = add("sign", sign or Sign(), add("stem_norm", norm(32), value))
    signs = rng.choice(np.array([-1, 1], np.float32), (33, 3, 3, 32))
    value = add("norm", norm(33), add("conv", Conv2D(signs, SAME), value))
    slopes = Elementwise(Epilogue([PRelu(np.full(33, 0.25, np.float32))]))
    value = add("middle", Conv2D(real(20, 1, 1, 33), Window((1, 1))), add("prelu", slopes, value))
    graph.outputs = [add("dense", Conv2D(real(10, 12, 12, 20), Window((12, 12))), value)]
    return graph


def converted(graph: Graph, float_weights: FloatWeights, folder: Path) -> Path:
    path = folder / f"{float_weights}.pbit"
    path.write_bytes(convert_graph(graph, float_weights=float_weights).content)
    return path


def checked(graph: Graph, file: Any, **options: Any) -> VerificationReport:
    source = Source(graph.name, graph, None, "as asked")
    return verify(source, file, seed=3, device="cpu", **options)


def class_changes(graph: Graph, folder: Path, float_weights: FloatWeights) -> int:
    """Counted over whole files: the rounded one and the exact one."""
    exact, rounded = (
        Network.load(converted(graph, weights, folder), "cpu") for weights in ("f32", float_weights)
    )
    inputs = default_inputs(exact, seed=3)
    classes = [network.forward(inputs)["dense"].argmax(axis=-1) for network in (exact, rounded)]
    return int(np.count_nonzero(classes[0] != classes[1]))


@pytest.mark.parametrize("float_weights", ROUNDED)
def test_rounded_weights_are_compared_with_the_source_that_has_them(
    float_weights: FloatWeights, tmp_path: Path
) -> None:
    graph = trained_network()
    report = checked(graph, converted(graph, float_weights, tmp_path))
    assert report.passed, report.to_dict()
    layers = {layer.name: layer for layer in report.layers}
    for name in ("stem", "middle", "dense"):
        assert layers[name].oracle == "source, rounded weights"
        assert layers[name].stored_as == float_weights
        assert 0 < layers[name].rounding < (1e-3 if float_weights == "f16" else 2e-2)
    assert layers["conv"].stored_as == ""
    assert report.stored_as == [float_weights]
    assert report.end_to_end.weights_difference > 0
    changed = report.end_to_end.weights_class_changes
    assert f"the class of {changed} of {report.samples} inputs" in report.rounding
    whole = report.to_dict()["devices"][0]["end_to_end"]
    assert whole["weights_class_changes"] == changed
    assert changed == class_changes(graph, tmp_path, float_weights)
    text = report.rounding
    assert text.startswith(f"3 layers as {float_weights} change sums by at most ")
    assert f"but for weights rounded to {float_weights}" in report.exceptions
    assert text in html_report(report)


@pytest.mark.parametrize("float_weights", ROUNDED)
def test_layers_after_a_sign_of_rounded_sums_read_the_sources_bits(
    float_weights: FloatWeights, tmp_path: Path
) -> None:
    """PyTorch's sign is bits under another name in the file, some of which the rounding changes."""
    graph = trained_network(TORCH_SIGN)
    report = checked(graph, converted(graph, float_weights, tmp_path))
    assert report.passed, report.to_dict()


def test_a_file_of_exact_weights_says_nothing_of_rounding(tmp_path: Path) -> None:
    graph = trained_network()
    report = checked(graph, converted(graph, "f32", tmp_path))
    assert report.passed
    assert (report.stored_as, report.rounding) == ([], "")
    assert report.end_to_end.weights_class_changes == 0
    assert report.end_to_end.weights_difference == 0.0


@pytest.mark.parametrize("float_weights", ROUNDED)
def test_weights_that_are_not_the_sources_rounded_ones_part(
    float_weights: FloatWeights, tmp_path: Path
) -> None:
    graph = trained_network()
    file = converted(graph, float_weights, tmp_path)
    damaged = read_graph(file)
    index = next(i for i, node in enumerate(damaged.nodes) if node.name == "middle")
    op = damaged.nodes[index].op
    assert isinstance(op, Conv2D)
    weights = op.weights.copy()
    weights[4] *= -1
    damaged.nodes[index] = replace(damaged.nodes[index], op=replace(op, weights=weights))
    other = tmp_path / "damaged.pbit"
    other.write_bytes(to_bytes(damaged, read_contents(file).metadata))
    report = checked(graph, other)
    assert report.first_mismatch is not None
    assert report.first_mismatch.name == "middle"
    assert report.first_mismatch.oracle == "source"


@pytest.mark.parametrize("float_weights", ROUNDED)
def test_the_precision_that_was_asked_for_is_no_failure(
    float_weights: FloatWeights, tmp_path: Path
) -> None:
    graph = trained_network()
    report = checked(graph, converted(graph, float_weights, tmp_path), precision="fast")
    assert report.passed, report.to_dict()
    assert report.precision == "fast"
    layers = {layer.name: layer for layer in report.layers}
    for name in ("middle", "dense"):
        assert layers[name].verdict == "lower precision"
        assert layers[name].lower > 0
        assert layers[name].max_abs_difference <= layers[name].tolerance
    assert layers["stem"].verdict in ("lower precision", "equal")  # it makes bits only
    assert report.end_to_end.verdict == "lower precision"
    assert report.end_to_end.unexplained == []
    assert "the lower precision of" in report.exceptions


def test_binary_layers_are_judged_as_ever(tmp_path: Path) -> None:
    graph = trained_network()
    file = converted(graph, "i8", tmp_path)
    exact = checked(graph, file)
    fast = checked(graph, file, precision="fast")
    for one, other in zip(exact.layers, fast.layers, strict=True):
        if one.kind == "binary_conv2d":
            assert (one.verdict, one.lower) == (other.verdict, other.lower)


class Damaged:
    """A network in which one layer of float values is wrong beyond any precision."""

    def __init__(self, network: Network, layer: str) -> None:
        self._network = network
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def run_layer(self, index: int, operands: list[Any]) -> dict[str, NDArray[Any]]:
        results = self._network.run_layer(index, operands)
        if self._network.layers[index].name != self._layer:
            return results
        return {
            name: x + 2 * LOWER_PRECISION_LIMIT * np.abs(x).max() for name, x in results.items()
        }


def test_more_than_the_precision_explains_parts(tmp_path: Path) -> None:
    graph = trained_network()
    network = Network.load(converted(graph, "i8", tmp_path), "cpu", precision="fast")
    report = checked(graph, [Damaged(network, "middle")], precision="fast")
    assert report.first_mismatch is not None
    assert report.first_mismatch.name == "middle"


def test_devices_of_lower_precision_need_not_agree(tmp_path: Path) -> None:
    graph = trained_network()
    file = converted(graph, "i8", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        networks = [Network.load(file, "cpu"), Network.load(file, "cpu", precision="fast")]
    assert checked(graph, networks, precision="fast").passed
    assert not checked(graph, networks).passed


def test_the_command_reports_precision_and_rounding(
    cli: Cli, checkpoint: Path, tmp_path: Path
) -> None:
    file = tmp_path / "i8.pbit"
    cli("convert", checkpoint, "-o", file, "--float-weights", "i8")
    options = ("verify", checkpoint, file, "--interpreter", "--device", "cpu", "--samples", "3")
    text = cli(*options, "--precision", "fast").out
    assert "3 inputs, precision 'fast'" in text
    assert "rounded weights: 1 layer as i8 change sums" in text
    assert "lower precision" in text
    assert "end to end: same argmax for 3 of 3" in text
