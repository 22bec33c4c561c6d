"""Tables of the results page."""

from __future__ import annotations

import pytest

from benchmarks.markdown_table import markdown_table


def test_words_stand_left_and_numbers_right() -> None:
    rows = [("alexnet", "binary", "1.5"), ("vgg16", "float", "20")]
    assert markdown_table(("network", "form", "ms"), rows, texts=2).splitlines() == [
        "| network | form | ms |",
        "| --- | --- | ---: |",
        "| alexnet | binary | 1.5 |",
        "| vgg16 | float | 20 |",
    ]


def test_bars_in_cells_do_not_end_them() -> None:
    assert markdown_table(("a|b",), [("c | d",)]).splitlines()[::2] == ["| a\\|b |", "| c \\| d |"]


def test_a_row_of_another_length_is_shown() -> None:
    with pytest.raises(ValueError, match=r"row 2 has 1 cells, expected 2: \('vgg16',\)"):
        markdown_table(("network", "ms"), [("alexnet", "1"), ("vgg16",)])
