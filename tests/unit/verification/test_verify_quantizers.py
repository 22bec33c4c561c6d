"""Bits that the source does not hold: planes of quantizers, exact zeros, signs that moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit.converter.convert import convert_graph
from phonebit.converter.infer import infer
from phonebit.converter.ir import SMALLEST, Graph, Node, Operator, TensorType, Window
from phonebit.converter.ops import (
    BatchNorm,
    Concat,
    Conv2D,
    Elementwise,
    Input,
    MaxPool2D,
    Quantize,
)
from phonebit.converter.ops.epilogue import AddTensor, Count, Epilogue, ScaleBias
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.format.records import DataType
from phonebit.network import Network
from phonebit.verification import LayerCheck, VerificationReport, verify
from phonebit.verification.comparison import TIE_COUNT, compare_bits
from phonebit.verification.source_trace import Source

FloatArray = NDArray[np.float32]

CHANNELS = 32
SAME = Window((3, 3), pads=(1, 1, 1, 1))
POOL = Window((2, 2), strides=(2, 2))
ONES = np.ones(CHANNELS, np.float32)
TORCH_SIGN = Quantize(np.array([0, SMALLEST], np.float32), np.array([-1, 0, 1], np.float32))
TWO_BITS = Quantize(
    np.array([0.25, 0.5, 0.75], np.float32), np.array([0, 0.25, 0.5, 0.75], np.float32)
)


class Net:
    """A source graph under construction; values are called like their nodes."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)
        self.graph = Graph("net", [Node("x", Input(), [], value="x")], {}, ["x"], [])
        self.graph.types["x"] = TensorType((8, 8, CHANNELS), DataType.F32)

    def add(self, name: str, op: Operator, *inputs: str) -> str:
        self.graph.nodes.append(Node(name, op, list(inputs), value=name, sources=[name]))
        self.graph.types = infer(self.graph)
        return name

    def conv(self, name: str, value: str) -> str:
        channels = self.graph.types[value].shape[2]
        shape = (CHANNELS, 3, 3, channels)
        weights = self.rng.choice(np.array([-1, 1], np.float32), shape)
        return self.add(name, Conv2D(weights, SAME), value)

    def norm(self, name: str, value: str) -> str:
        channels = self.graph.types[value].shape[2]
        gamma = np.resize(np.array([1, -0.5, 0.25], np.float32), channels)
        beta = np.full(channels, 1 / 64, np.float32)  # no sum of the nets below is 0 with it
        ones = np.ones(channels, np.float32)
        return self.add(name, BatchNorm(gamma, beta, 0 * ones, 0.75 * ones, 0.25), value)

    def rescale(self, name: str, value: str) -> str:
        step = ScaleBias(0.5 * ONES, 0.25 * ONES)
        return self.add(name, Elementwise(Epilogue([step])), value)

    def save(self, output: str, path: Path, zeros: Zeros = "exact") -> tuple[Source, Path]:
        self.graph.outputs = [output]
        path.write_bytes(convert_graph(self.graph, zeros=zeros).content)
        return Source("net", self.graph, None, "as asked"), path


def inputs(zeros: int = 0) -> FloatArray:
    """Values k / 64, so that all sums are exact, with so many exact zeros in the last sample."""
    rng = np.random.default_rng(5)
    x = (rng.integers(1, 128, (3, 8, 8, CHANNELS)) * rng.choice([-1, 1], (3, 8, 8, CHANNELS))) / 64
    x = x.astype(np.float32)
    x[2].reshape(-1)[:zeros] = 0
    return x


def layer_of(report: VerificationReport, output: str, file: Path) -> LayerCheck:
    """The check of the op that writes a value."""
    graph = read_graph(file)
    nodes = [node for node in graph.nodes if node.inputs]
    return report.layers[next(i for i, node in enumerate(nodes) if output in node.outputs)]


def one_sign(path: Path, rescaled: bool = False, zeros: Zeros = "plus") -> tuple[Source, Path]:
    """sign(x), convolution, batch norm, sign, convolution."""
    net = Net()
    value = net.add("sign", TORCH_SIGN, "x")
    if rescaled:
        value = net.rescale("alpha", value)
    value = net.norm("norm", net.conv("conv", value))
    return net.save(net.conv("last", net.add("sign2", TORCH_SIGN, value)), path, zeros)


@pytest.mark.parametrize("rescaled", [False, True])
def test_exact_zeros_are_counted_at_their_sign_and_nothing_after_is_blamed(
    tmp_path: Path, rescaled: bool
) -> None:
    source, file = one_sign(tmp_path / "net.pbit", rescaled)
    report = verify(source, file, inputs(zeros=3))
    assert report.passed, report.to_dict()
    sign = layer_of(report, "sign/bits", file)
    assert (sign.zeros, sign.ties, sign.verdict) == (3, 0, "exact zeros")
    assert {layer.verdict for layer in report.layers if layer is not sign} == {"equal"}
    assert (report.zeros, report.end_to_end.zeros) == (3, 3)
    assert report.exceptions.startswith(" but for 3 exact zeros in ")
    assert report.end_to_end.verdict == "exact zeros"
    assert report.end_to_end.samples_with_ties == 1
    places = [place for place in sign.differences.places if place.kind == "exact zero"]
    assert [place.index for place in places] == [(2, 0, 0, 0), (2, 0, 0, 1), (2, 0, 0, 2)]
    assert {(place.expected, place.got) for place in places} == {(0, 1)}


def test_a_zero_is_followed_only_as_far_as_the_layers_are_fed_with_it(tmp_path: Path) -> None:
    """Float values come from the source, zeros and all; bits after them must not be replayed."""
    net = Net()
    total = "x"
    for block in range(3):  # residual blocks; only the first reads zeros
        bits = net.add(f"sign{block}", TORCH_SIGN, total)
        value = net.norm(f"norm{block}", net.conv(f"conv{block}", bits))
        total = net.add(f"sum{block}", Elementwise(Epilogue([AddTensor(1)])), value, total)
        shift = Elementwise(Epilogue([ScaleBias(ONES, ONES / 256)]))
        total = net.add(f"shift{block}", shift, total)
    last = net.conv("last", net.add("sign3", TORCH_SIGN, total))
    source, file = net.save(last, tmp_path / "net.pbit", "plus")
    report = verify(source, file, inputs(zeros=3))
    assert [layer.name for layer in report.layers if layer.mismatch] == [], report.to_dict()
    assert report.zeros == 3


def test_without_zeros_in_the_inputs_the_same_file_is_equal(tmp_path: Path) -> None:
    source, file = one_sign(tmp_path / "net.pbit")
    report = verify(source, file, inputs())
    assert (report.zeros, report.exceptions, report.end_to_end.verdict) == (0, "", "equal")
    assert {layer.verdict for layer in report.layers} == {"equal"}


def test_more_exact_zeros_than_an_accident_part(tmp_path: Path) -> None:
    source, file = one_sign(tmp_path / "net.pbit")
    report = verify(source, file, inputs(zeros=TIE_COUNT + 1))
    assert not report.passed
    assert report.first_mismatch is layer_of(report, "sign/bits", file)


def test_a_wrong_layer_after_exact_zeros_is_still_found(tmp_path: Path) -> None:
    source, file = one_sign(tmp_path / "net.pbit")
    graph = read_graph(file)
    node = graph.producer("last")
    weights: Any = node.op.weights.copy()  # type: ignore[union-attr]
    weights[7, 1, 1] *= -1
    node.op = replace(node.op, weights=weights)  # type: ignore[call-arg,type-var]
    file.write_bytes(to_bytes(graph, {}))
    report = verify(source, file, inputs(zeros=3))
    assert [layer.name for layer in report.layers if layer.mismatch] == [node.name]


def test_zeros_that_are_kept_exact_are_equal_plane_by_plane(tmp_path: Path) -> None:
    source, file = one_sign(tmp_path / "net.pbit", zeros="exact")
    report = verify(source, file, inputs(zeros=40))
    assert report.passed, report.to_dict()
    assert (report.zeros, report.ties, report.end_to_end.verdict) == (0, 0, "equal")
    assert layer_of(report, "sign/bit1", file).oracle == "source"


def two_bit_net(path: Path) -> tuple[Source, Path]:
    """Two quantizers of four levels: one pooled, one after poolings and a concatenation."""
    net = Net()
    early = net.add("pool", MaxPool2D(POOL), net.add("q", TWO_BITS, "x"))
    left = net.norm("left_norm", net.add("left_pool", MaxPool2D(POOL), net.conv("left", early)))
    right = net.add("right_pool", MaxPool2D(POOL), net.conv("right", early))
    joined = net.norm("norm", net.add("both", Concat(), left, right))
    return net.save(net.conv("last", net.add("q2", TWO_BITS, joined)), path)


def test_planes_of_quantizers_are_judged_by_the_sources_levels(tmp_path: Path) -> None:
    source, file = two_bit_net(tmp_path / "net.pbit")
    report = verify(source, file, inputs())
    assert report.passed, report.to_dict()
    assert report.end_to_end.verdict == "equal"
    bits = {name for name, kind in read_graph(file).types.items() if kind.dtype == DataType.BIT}
    assert {"pool/bit0", "pool/bit1", "q2/bit1"} <= bits, bits
    oracles = {name: layer_of(report, name, file).oracle for name in bits}
    assert set(oracles.values()) == {"source"}, oracles


def pooled_sign_net(path: Path) -> tuple[Source, Path]:
    """A sign after batch norm and pooling, so that it moves in front of them."""
    net = Net()
    conv = net.conv("conv", net.add("sign", TORCH_SIGN, "x"))
    value = net.norm("norm", net.add("pool", MaxPool2D(POOL), conv))
    return net.save(net.conv("last", net.add("sign2", TORCH_SIGN, value)), path, "plus")


def test_a_sign_with_zeros_that_moved_is_judged_where_it_went(tmp_path: Path) -> None:
    source, file = pooled_sign_net(tmp_path / "net.pbit")
    report = verify(source, file, inputs())
    assert report.passed, report.to_dict()
    assert layer_of(report, "sign2/bits/hoisted", file).oracle == "source, rearranged"


@pytest.mark.parametrize("make", [two_bit_net, pooled_sign_net])
def test_every_changed_threshold_is_found_at_its_layer(tmp_path: Path, make: Any) -> None:
    source, file = make(tmp_path / "net.pbit")
    content = file.read_bytes()
    count = sum(threshold_of(node) is not None for node in read_graph(file).nodes)
    assert count >= 2
    for number in range(count):
        file.write_bytes(content)
        graph = read_graph(file)
        node = [node for node in graph.nodes if threshold_of(node) is not None][number]
        name = str(node.outputs[0])
        bits = Network.load(file, "cpu").activations(inputs())[name].astype(np.float64)
        middle = (bits.min() + bits.max()) / 2
        channel = int(np.argmin(np.abs(bits.mean(axis=(0, 1, 2)) - middle)))
        epilogue = node.op.epilogue  # type: ignore[union-attr]
        threshold = threshold_of(node)
        assert threshold is not None
        moved = threshold.copy()
        moved[channel] += 64 if moved.dtype == np.int32 else 8
        if node.bits is None:
            changed = replace(epilogue, steps=[*epilogue.steps[:-1], Count(moved)])
            name, channel = bits_after(graph, name, channel)
        else:
            changed = replace(epilogue, threshold=moved)
        node.op = replace(node.op, epilogue=changed)  # type: ignore
        file.write_bytes(to_bytes(graph, {}))
        report = verify(source, file, inputs())
        assert report.first_mismatch is not None, node.name
        assert report.first_mismatch is layer_of(report, str(node.outputs[0]), file)
        assert "thresh" in report.first_mismatch.constants[0]
        changed_bits = layer_of(report, name, file)  # of the same layer, or of what reads its level
        assert changed_bits.worst_bit.endswith(f", {channel}]")


def bits_after(graph: Graph, level: str, channel: int) -> tuple[str, int]:
    """The first bits of a level, which may be part of a concatenation, and its channel there."""
    (reader,) = graph.consumers(level)
    if reader.planes:
        return reader.planes[0], channel
    before = reader.inputs[: reader.inputs.index(level)]
    channel += sum(graph.types[name].shape[2] for name in before)
    return bits_after(graph, reader.outputs[0], channel)


def threshold_of(node: Node) -> NDArray[Any] | None:
    epilogue = getattr(node.op, "epilogue", None)
    if epilogue is None:
        return None
    last = epilogue.steps[-1] if epilogue.steps else None
    return last.thresholds if isinstance(last, Count) else epilogue.threshold


def test_a_zero_is_neither_a_tie_nor_hidden_whatever_the_bit() -> None:
    expected = np.array([1, 1, -1, 1], np.int8).reshape(1, 1, 1, 4)
    result = np.array([1, -1, -1, -1], np.int8).reshape(1, 1, 1, 4)
    margin = np.array([0, 0, -9, 1e-6], np.float32).reshape(1, 1, 1, 4)
    found = LayerCheck(0, "layer", "binary_conv2d")
    compare_bits(found, result, expected, margin, ("x", 0), zeros=margin == 0)
    assert (found.differing_bits, found.zeros, found.ties) == (3, 2, 1)
    assert found.verdict == "float ties"
    assert "2 exact zeros" in found.explanation
