"""What layers cost, counted by hand."""

from __future__ import annotations

from phonebit.converter.cost import bytes_moved
from support.golden import golden_graph


def test_bits_move_as_words_of_32_and_every_op_reads_and_writes_once() -> None:
    pixels = 9 * 11
    sign = pixels * (65 * 4 + 3 * 4)  # 65 floats in, 3 words out; its threshold is 0, not stored
    first = pixels * (3 * 4 + 4) + 7 * 9 * 3 * 4 + 7 * 4  # thresholds of 7 channels
    second = pixels * (4 + 5 * 4) + 5 * 9 * 4
    assert bytes_moved(golden_graph("binary_conv_threshold_65_7_pad1")) == sign + first + second


def test_image_levels_move_as_bytes() -> None:
    graph = golden_graph("u8_first_layer_3_64")
    by_floats = golden_graph("u8_first_layer_3_64")
    by_floats.types["image"] = by_floats.types[by_floats.outputs[0]]
    height, width, channels = by_floats.types["image"].shape
    readers = len(graph.consumers("image"))
    more = readers * (height * width * channels * 4 - 10 * 9 * 3)
    assert bytes_moved(by_floats) - bytes_moved(graph) == more


def test_a_shortcut_is_read_besides_the_main_operand() -> None:
    graph = golden_graph("residual_block_32")
    block = next(node for node in graph.nodes if node.name == "block")
    with_shortcut = bytes_moved(graph)
    block.inputs = block.inputs[:1]
    assert with_shortcut - bytes_moved(graph) == 6 * 5 * 32 * 4
