"""What inputs read: levels or values, and the rule about them that goes into the file."""

from __future__ import annotations

import numpy as np
import pytest
from random_networks import build
from test_convert import FIXTURES, network

from phonebit.converter.convert import convert_graph, prepare_source
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.input_types import rational_levels
from phonebit.converter.interpreter import run
from phonebit.converter.ops import Conv2D, Dequantize
from phonebit.converter.reader import graph_from_bytes
from phonebit.errors import ConversionError
from phonebit.format.records import DataType
from phonebit.images.preprocessing import ColorOrder, Preprocessing, Resize


def test_bytes_are_read_through_integers_and_agree_with_the_float_network() -> None:
    graph = network()
    conversion = convert_graph(graph, input_dtype="u8", input_range=(-128.0, 127.0))
    engine = conversion.engine
    assert engine.types["x"].dtype == DataType.U8
    levels = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 3)).astype(np.uint8)
    floats = levels.astype(np.float32) - 128
    before, after = run(graph, {"x": floats}), run(engine, {"x": levels})
    np.testing.assert_array_equal(before["logits"], after["logits"])
    stem = engine.nodes[1]
    assert isinstance(stem.op, Conv2D) and stem.op.epilogue.threshold is not None
    assert stem.op.epilogue.threshold.dtype == np.int32
    rule = Preprocessing((-128.0, 127.0), color=ColorOrder.RGB)
    assert graph_from_bytes(conversion.content).preprocessing == {"x": rule}


@pytest.mark.parametrize(
    "rule, expected",
    [
        (Preprocessing((-1.0, 1.0)), (2, -255, 255)),
        (Preprocessing((0.0, 1.0)), (1, 0, 255)),
        (Preprocessing((0.0, 255.0)), (1, 0, 1)),
        (Preprocessing((-0.5, 0.5)), (2, -255, 510)),
        (Preprocessing((-128.0, 127.0)), (1, -128, 1)),
        (Preprocessing((0.1234567891, 1.0)), None),
        (Preprocessing((0.0, 1.0), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)), (2, -255, 255)),
        (Preprocessing((1.0, 0.0)), (-1, 255, 255)),
        (Preprocessing((0.0, 1.0), (0.5, 0.5, 0.25)), None),
        (Preprocessing((0.0, 255.0), 0.0, 1.0 / 1024), (1024, 0, 1)),
        (Preprocessing((0.0, 255.0), 0.0, 1.0 / 8192), None),  # beyond 2^20
    ],
)
def test_values_become_fractions_where_they_are_ones_for_all_channels(
    rule: Preprocessing, expected: tuple[int, int, int] | None
) -> None:
    assert rational_levels(rule) == expected


def test_four_decimals_are_a_fraction() -> None:
    found = rational_levels(Preprocessing((0.0, 1.0), 0.1307, 0.3081))  # MNIST in PyTorch
    assert found is not None
    mul, add, divisor = found
    for level in (0, 100, 255):
        expected = (level / 255 - 0.1307) / 0.3081
        assert (mul * level + add) / divisor == pytest.approx(expected, rel=1e-12)


def test_means_and_deviations_of_channels_are_computed_by_the_network() -> None:
    graph = network()
    rule = Preprocessing((0.0, 255.0), (128.0, 64.0, 32.0), (1.0, 2.0, 0.5), ColorOrder.BGR)
    conversion = convert_graph(graph, input_dtype="u8", preprocessing=rule)
    levels = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 3)).astype(np.uint8)
    values = (levels.astype(np.float32) - rule.mean) / rule.std
    before = run(graph, {"x": values.astype(np.float32)})
    after = run(conversion.engine, {"x": levels})
    np.testing.assert_array_equal(before["logits"], after["logits"])
    assert graph_from_bytes(conversion.content).preprocessing == {"x": rule}


def test_one_mean_and_deviation_keep_the_first_layer_in_integers() -> None:
    rule = Preprocessing((0.0, 1.0), 0.5, 0.25)
    stem = convert_graph(network(), input_dtype="u8", preprocessing=rule).engine.nodes[1].op
    assert isinstance(stem, Conv2D)
    assert (stem.input_mul, stem.input_add) == (4, -510)  # of 255: (level / 255 - 1 / 2) * 4


def test_real_valued_inputs_get_a_rule_too_and_compute_nothing_else() -> None:
    rule = Preprocessing((0.0, 1.0), (0.5, 0.25, 0.125), color=ColorOrder.RGB)
    plain, told = convert_graph(network()), convert_graph(network(), preprocessing=rule)
    assert graph_from_bytes(told.content).preprocessing == {"x": rule}
    assert graph_from_bytes(plain.content).preprocessing == {}
    assert [node.name for node in told.engine.nodes] == [node.name for node in plain.engine.nodes]
    assert told.engine.types == plain.engine.types


def test_networks_that_read_bytes_already_keep_their_levels() -> None:
    graph = import_larq(FIXTURES / "integer_image.h5")
    (name,) = graph.inputs
    rule = Preprocessing((0.0, 255.0), resize=Resize.LETTERBOX)
    engine = convert_graph(graph, preprocessing=rule).engine
    assert engine.preprocessing[name].resize is Resize.LETTERBOX
    with pytest.raises(ConversionError, match="reads the levels of an image already"):
        convert_graph(graph, input_range=(-1.0, 1.0))


def test_input_range_is_short_for_a_rule_and_may_not_contradict_it() -> None:
    rule = Preprocessing((-1.0, 1.0), 0.5)
    short = convert_graph(network(), input_range=(-1, 1))
    both = convert_graph(network(), input_range=(-1, 1), preprocessing=rule)
    assert short.engine.preprocessing["x"].mean == (0.0,)
    assert both.engine.preprocessing["x"].mean == (0.5,)
    with pytest.raises(ConversionError, match=r"contradict.*\(-1.0, 1.0\), got \(0.0, 1.0\)"):
        convert_graph(network(), input_range=(0, 1), preprocessing=rule)


def test_an_irrational_range_still_converts_by_floats() -> None:
    conversion = convert_graph(network(), input_dtype="u8", input_range=(0.1234567891, 1.0))
    assert type(conversion.engine.nodes[1].op).__name__ == "Elementwise"


def test_random_networks_convert_for_bytes_too() -> None:
    for seed in range(5):
        graph = build(seed, ["float_conv", "residual", "max_pool"], False, 3, (6, 6))
        conversion = convert_graph(graph, input_dtype="u8", input_range=(-2.0, 253.0))
        levels = np.random.default_rng(seed).integers(0, 5, (1, 6, 6, 3)).astype(np.uint8)
        before = run(graph, {"x": levels.astype(np.float32) - 2})
        after = run(graph_from_bytes(conversion.content), {"x": levels})
        for name, array in before.items():
            np.testing.assert_array_equal(array, after[name])


def test_prepared_sources_keep_the_names_that_verification_compares() -> None:
    prepared = prepare_source(network(), "u8", Preprocessing((-1.0, 1.0)))
    assert isinstance(prepared.producer("x/real").op, Dequantize)
    assert prepared.inputs == ["x"] and prepared.types["x"].dtype == DataType.U8
