"""``phonebit.verification``: agreement passes, and damage is found at the layer that has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phonebit import InputError, ModelFormatError, Network, VerificationError
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import BinaryConv2D
from phonebit.converter.ops.epilogue import ScaleBias
from phonebit.converter.reader import read_graph
from phonebit.converter.writer import to_bytes
from phonebit.format.reader import read_contents
from phonebit.network.random_inputs import random_inputs
from phonebit.verification import LayerCheck, VerificationReport, steps, verify
from phonebit.verification.comparison import TIE_COUNT, compare_bits, compare_reals
from phonebit.verification.end_to_end import same_argmax
from phonebit.verification.report import EndToEndCheck


def save(graph: Graph, original: Path, path: Path) -> Path:
    """Write a changed graph with the original's metadata."""
    path.write_bytes(to_bytes(graph, read_contents(original).metadata))
    return path


def integer_layers(graph: Graph) -> list[Node]:
    """Binary convolutions that end in an integer threshold."""
    return [
        node
        for node in graph.nodes
        if isinstance(node.op, BinaryConv2D)
        and node.op.epilogue.threshold is not None
        and node.op.epilogue.threshold.dtype == np.int32
    ]


def most_balanced_channel(file: Path, node: Node) -> int:
    """The channel of a layer's bits that is +1 about half of the time: there thresholds matter."""
    network = Network.load(file)
    bits = network.activations(random_inputs(network.inputs, 8, seed=7))[str(node.bits)]
    return int(np.argmin(np.abs(bits.astype(np.float64).mean(axis=(0, 1, 2)))))


def check(checkpoint: Path, file: Path) -> VerificationReport:
    return verify(checkpoint, file, seed=7, framework=False)


def test_the_converted_network_agrees_layer_by_layer_and_end_to_end(
    checkpoint: Path, u8_file: Path
) -> None:
    report = check(checkpoint, u8_file)
    assert report.passed, report.to_dict()
    assert report.first_mismatch is None
    assert report.reference == "interpreter"
    assert report.end_to_end.unexplained == []
    assert report.end_to_end.samples == report.samples == 8
    names = [layer.name for layer in report.layers]
    assert names == [layer.name for layer in Network.load(u8_file).layers]


def test_no_layer_of_the_shipped_network_lacks_a_counterpart_in_its_source(
    checkpoint: Path, u8_file: Path
) -> None:
    oracles = {layer.name: layer.oracle for layer in check(checkpoint, u8_file).layers}
    assert "engine graph" not in oracles.values(), oracles


@pytest.mark.framework
@pytest.mark.parametrize("kind", ["u8_file", "f32_file"])
def test_the_converted_network_agrees_with_keras_itself(
    checkpoint: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    pytest.importorskip("larq", reason="Larq is not installed")
    report = verify(checkpoint, request.getfixturevalue(kind))
    assert report.reference == "framework", report.reason
    assert report.passed, report.to_dict()


def test_a_real_valued_file_agrees_too(checkpoint: Path, f32_file: Path) -> None:
    assert check(checkpoint, f32_file).passed


def test_every_single_changed_threshold_is_found_at_its_layer(
    checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    count = len(integer_layers(read_graph(u8_file)))
    assert count > 0
    for number in range(count):
        graph = read_graph(u8_file)
        node = integer_layers(graph)[number]
        assert isinstance(node.op, BinaryConv2D)
        threshold = node.op.epilogue.threshold
        assert threshold is not None
        channel = most_balanced_channel(u8_file, node)
        moved = threshold.copy()
        moved[channel] += 2  # the next value that an accumulator can have
        node.op = replace(node.op, epilogue=replace(node.op.epilogue, threshold=moved))
        report = check(checkpoint, save(graph, u8_file, tmp_path / "damaged.pbit"))
        assert not report.passed
        assert report.first_mismatch is not None
        assert report.first_mismatch.name == node.name
        assert [layer.name for layer in report.layers if layer.mismatch] == [node.name]
        assert report.first_mismatch.worst_bit.endswith(f", {channel}]")


def test_a_changed_scale_is_found_at_its_layer(
    checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    graph = read_graph(u8_file)
    node, step = next(
        (node, step)
        for node in graph.nodes
        if isinstance(node.op, BinaryConv2D)
        for step in node.op.epilogue.steps
        if isinstance(step, ScaleBias)
    )
    step.bias = step.bias + np.float32(0.01) * np.abs(step.bias).max()
    report = check(checkpoint, save(graph, u8_file, tmp_path / "damaged.pbit"))
    assert report.first_mismatch is not None
    assert report.first_mismatch.name == node.name
    assert report.first_mismatch.max_abs_difference > report.first_mismatch.tolerance
    assert report.to_dict()["first_mismatch"] == node.name


def test_inverted_weights_are_found_at_their_layer(
    checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    graph = read_graph(u8_file)
    node = [node for node in graph.nodes if isinstance(node.op, BinaryConv2D)][-1]
    assert isinstance(node.op, BinaryConv2D)
    weights = node.op.weights.copy()
    weights[5] *= -1
    node.op = replace(node.op, weights=weights)
    report = check(checkpoint, save(graph, u8_file, tmp_path / "damaged.pbit"))
    assert report.first_mismatch is not None
    assert report.first_mismatch.name == node.name


def test_networks_that_do_not_belong_together_are_refused(
    checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    graph = read_graph(u8_file)
    last = graph.outputs[0]
    graph.types["other"] = graph.types.pop(last)
    graph.outputs = ["other"]
    graph.producer(last).value = "other"
    with pytest.raises(VerificationError, match="outputs are not those of"):
        check(checkpoint, save(graph, u8_file, tmp_path / "other.pbit"))


def test_levels_without_a_meaning_are_refused(
    checkpoint: Path, u8_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bare.pbit"
    path.write_bytes(to_bytes(replace(read_graph(u8_file), preprocessing={}), {}))
    with pytest.raises(VerificationError, match="convert the checkpoint again"):
        check(checkpoint, path)


def test_limits_are_the_callers(checkpoint: Path, u8_file: Path) -> None:
    for limits in ({"max_memory_bytes": 100}, {"max_work": 1.0}):
        with pytest.raises(ModelFormatError, match="limit"):
            verify(checkpoint, u8_file, framework=False, **limits)


def test_inputs_are_checked_like_forwards(checkpoint: Path, u8_file: Path) -> None:
    with pytest.raises(InputError, match="wrong shape"):
        verify(checkpoint, u8_file, np.zeros((1, 8, 8, 1), np.uint8), framework=False)


def test_progress_is_told_of_each_step(checkpoint: Path, u8_file: Path) -> None:
    said: list[str] = []
    inputs = np.zeros((9, 28, 28, 1), np.uint8)
    report = verify(checkpoint, u8_file, inputs, framework=False, progress=said.append)
    assert len(said) == steps(9)
    assert said[1:] == ["inputs 0 to 7 of 9", "inputs 8 to 8 of 9"]
    assert report.end_to_end.samples == 9


# --- what counts as a tie ---


def bits_check(margins: list[float], flipped: list[int]) -> LayerCheck:
    margin = np.array(margins, np.float32).reshape(1, 1, 1, -1)
    expected = np.where(margin >= 0, 1, -1).astype(np.int8)
    result = expected.copy()
    result[..., flipped] *= -1
    found = LayerCheck(0, "layer", "binary_conv2d")
    compare_bits(found, result, expected, margin, ("x", 0))
    return found


def test_a_bit_at_a_value_of_rounding_size_is_a_tie() -> None:
    found = bits_check([100.0, 5e-4, -5e-4, 0.0], [1, 2, 3])
    assert (found.differing_bits, found.ties, found.verdict) == (3, 3, "float ties")
    assert found.worst_tie == pytest.approx(5e-4)


def test_a_bit_at_a_larger_value_parts_and_is_located() -> None:
    found = bits_check([100.0, 5e-4, 0.01], [1, 2])
    assert (found.differing_bits, found.ties, found.verdict) == (2, 1, "mismatch")
    assert found.worst_bit == "x[0, 0, 0, 2]"


def test_integer_arithmetic_has_no_ties() -> None:
    expected = np.ones((1, 1, 1, 2), np.int8)
    found = LayerCheck(0, "layer", "binary_conv2d")
    compare_bits(found, -expected, expected, None, ("x", 0))
    assert (found.ties, found.verdict) == (0, "mismatch")


def test_too_many_ties_are_no_accident() -> None:
    margins = [100.0] + [0.0] * (TIE_COUNT + 1)
    assert bits_check(margins, list(range(1, TIE_COUNT + 1))).verdict == "float ties"
    assert bits_check(margins, list(range(1, TIE_COUNT + 2))).verdict == "mismatch"


def test_real_values_part_beyond_the_tolerance_and_at_nan() -> None:
    expected = np.array([10.0, -1.0], np.float32).reshape(2, 1, 1, 1)
    for difference, verdict in ((0.0, "equal"), (5e-5, "within tolerance"), (2e-4, "mismatch")):
        found = LayerCheck(0, "layer", "conv2d")
        result = expected + np.array([0, difference], np.float32).reshape(2, 1, 1, 1)
        compare_reals(found, result, expected, 1e-5, ("x", 4))
        assert found.verdict == verdict
    assert found.worst == "x[5, 0, 0, 0]"
    found = LayerCheck(0, "layer", "conv2d")
    compare_reals(found, expected * np.float32(np.nan), expected, 1e-5, ("x", 0))
    assert found.verdict == "mismatch"


def test_end_to_end_results() -> None:
    base = EndToEndCheck(samples=2, same_argmax=2, tolerance=1e-5)
    assert base.verdict == "equal"
    assert replace(base, max_abs_difference=1e-6).verdict == "within tolerance"
    assert replace(base, max_abs_difference=0.5).verdict == "float ties"
    assert replace(base, same_argmax=1, unexplained=[1]).verdict == "mismatch"


def test_one_of_several_largest_elements_is_the_argmax_of_either_side() -> None:
    one = np.array([[1, 2, 3], [3, 3, 1], [1, 2, 3], [3, 2, 1]], np.float64)
    other = np.array([[1, 2, 3], [2.9, 3, 1], [3, 3, 2], [2, 3, 1]], np.float64)
    assert same_argmax(one, other).tolist() == [True, True, False, False]
    assert same_argmax(other, one).tolist() == [True, True, False, False]
