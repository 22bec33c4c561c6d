"""What layers cost, counted by hand."""

from __future__ import annotations

from phonebit.converter.cost import bytes_moved
from support.builders import binary_conv_threshold, residual_block, u8_first_layer


def test_bits_move_as_words_of_32_and_every_op_reads_and_writes_once() -> None:
    pixels = 9 * 11
    sign = pixels * (33 * 4 + 2 * 4)  # 33 floats in, 2 words out; its threshold is 0, not stored
    first = pixels * (2 * 4 + 4) + 7 * 9 * 2 * 4 + 7 * 4  # thresholds of 7 channels
    second = pixels * (4 + 5 * 4) + 5 * 9 * 4
    assert bytes_moved(binary_conv_threshold(33, 7, 0)) == sign + first + second


def test_image_levels_move_as_bytes() -> None:
    graph = u8_first_layer(3, 8)
    by_floats = u8_first_layer(3, 8)
    by_floats.types["image"] = by_floats.types[by_floats.outputs[0]]
    height, width, channels = by_floats.types["image"].shape
    readers = len(graph.consumers("image"))
    more = readers * (height * width * channels * 4 - 10 * 9 * 3)
    assert bytes_moved(by_floats) - bytes_moved(graph) == more


def test_a_shortcut_is_read_besides_the_main_operand() -> None:
    graph = residual_block(32)
    block = next(node for node in graph.nodes if node.name == "block")
    with_shortcut = bytes_moved(graph)
    block.inputs = block.inputs[:1]
    assert with_shortcut - bytes_moved(graph) == 6 * 5 * 32 * 4
