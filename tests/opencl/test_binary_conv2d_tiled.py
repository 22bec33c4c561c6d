"""bconv2d_tiled against sums of products."""

from __future__ import annotations

import pytest
from binary_reference import Case, check_convolution

# Pixels of 1, 2, 3, 4, 8, 10 and 16 words: vectors of one, two and four.
FULL_ADDERS = [
    Case(1, 7, tune={"COUNT": 1}),
    Case(31, 8, tune={"COUNT": 1}, batch=3),
    Case(32, 9, kernel=(1, 1), pads=(0, 0, 0, 0), tune={"COUNT": 1}),
    Case(33, 8, tune={"COUNT": 1}, pad_value=1),
    Case(64, 32, tune={"COUNT": 1, "TILE_FILTERS": 16}, stride=(2, 2), sink="values+bits"),
    Case(65, 15, tune={"COUNT": 1, "VECTOR_WORDS": 1}, dilation=(2, 1), pads=(2, 1, 2, 1)),
    Case(96, 8, tune={"COUNT": 1}, pads=(0, 0, 0, 0), kernel=(2, 5), dilation=(1, 1), in_hw=(5, 7)),
    Case(128, 8, tune={"COUNT": 1, "TILE_PIXELS": 1}, pad_value=-1),
    Case(256, 17, tune={"COUNT": 1, "TILE_FILTERS": 16, "ACCUMULATOR": 1}, pad_value=1),
    Case(256, 8, tune={"COUNT": 1, "VECTOR_WORDS": 2, "TILE_PIXELS": 4}),
    Case(256, 8, tune={"COUNT": 1, "VECTOR_WORDS": 1}, sink="values"),
    Case(300, 31, tune={"COUNT": 1, "TILE_FILTERS": 32, "TILE_PIXELS": 1}, sink="bits"),
    Case(512, 40, kernel=(1, 1), pads=(0, 0, 0, 0), tune={"COUNT": 1}, sink="values+bits"),
]

PLAIN = [
    Case(1, 1, pad_value=-1),
    Case(32, 20),
    Case(96, 8, sink="values"),
    Case(31, 7, tune={"TILE_FILTERS": 8}),
    Case(32, 4, tune={"TILE_FILTERS": 8}, sink="values"),
    Case(33, 12, tune={"TILE_FILTERS": 8, "TILE_PIXELS": 4}, sink="values+bits", batch=3),
    Case(64, 15, tune={"TILE_FILTERS": 16, "ACCUMULATOR": 1}),
    Case(64, 8, tune={"VECTOR_WORDS": 1, "TILE_PIXELS": 1}, pad_value=1, sink="bits"),
    Case(65, 16, tune={"TILE_FILTERS": 16}, pad_value=1),
    Case(96, 33, tune={"TILE_FILTERS": 32, "TILE_PIXELS": 1}, kernel=(1, 3), pads=(0, 2, 0, 1)),
    Case(128, 24, tune={"VECTOR_WORDS": 2}, stride=(2, 1), sink="values+bits"),
    Case(256, 9, stride=(2, 3), dilation=(2, 2), pads=(3, 1, 2, 2), pad_value=1),
    Case(300, 65, pads=(0, 2, 1, 0), sink="values+bits"),
    Case(300, 8, pads=(2, 2, 0, 0), pad_value=1, in_hw=(4, 4)),
]

POINTWISE = [
    Case(64, 8, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(9, 7), batch=2),  # 126 pixels of 128
    Case(64, 9, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(8, 8), batch=2),  # 128
    Case(128, 16, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(43, 3), tune={"GROUP_SIZE": 32}),  # 129
    Case(96, 8, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(13, 10), tune={"GROUP_SIZE": 128}),
    Case(33, 8, kernel=(1, 1), pads=(0, 0, 0, 0), stride=(2, 2), tune={"GROUP_SIZE": 256}),
    Case(64, 8, kernel=(1, 1), pads=(1, 1, 0, 0), batch=3),
]


ADRENO = {"RUN_ON": 1, "COUNT": 1, "TILE_PIXELS": 1}

# Tiles of as many work-items as a group, of fewer and of more, and tiles in turn.
RUNNING_ON = [
    Case(64, 40, in_hw=(8, 8), tune={"RUN_ON": 1, "TILE_PIXELS": 1}),
    Case(96, 33, in_hw=(5, 5), tune={"RUN_ON": 1, "TILE_FILTERS": 16, "ACCUMULATOR": 1}, batch=2),
    Case(65, 41, in_hw=(7, 11), tune={"RUN_ON": 1, "GROUP_SIZE": 32}, sink="values+bits"),
    Case(33, 28, tune={"RUN_ON": 1, "TILE_FILTERS": 8, "TILE_PIXELS": 4}, batch=3),
    Case(64, 24, kernel=(1, 1), pads=(0, 0, 0, 0), in_hw=(1, 1), tune={"RUN_ON": 1}),
    Case(256, 40, in_hw=(3, 11), tune=ADRENO | {"TILE_FILTERS": 16}, batch=2),
    Case(128, 24, in_hw=(5, 6), stride=(2, 1), tune=ADRENO, pad_value=1),
]


@pytest.mark.parametrize("case", FULL_ADDERS, ids=str)
def test_counts_by_full_adders_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_tiled", case)


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_plain_counts_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_tiled", case)


@pytest.mark.parametrize("case", POINTWISE, ids=str)
def test_pointwise_convolutions_equal_sums_of_products(case: Case) -> None:
    check_convolution("bconv2d_tiled", case)


@pytest.mark.parametrize("case", RUNNING_ON, ids=str)
def test_groups_that_run_on_to_other_filters_compute_the_same(case: Case) -> None:
    check_convolution("bconv2d_tiled", case)


@pytest.mark.slow
@pytest.mark.parametrize("vector", [1, 2, 4])
@pytest.mark.parametrize("pixels", [1, 2, 4])
@pytest.mark.parametrize("filters", [8, 16, 32])
@pytest.mark.parametrize("count", [0, 1])
def test_every_tile_is_right(count: int, filters: int, pixels: int, vector: int) -> None:
    tune = {"COUNT": count, "TILE_FILTERS": filters, "TILE_PIXELS": pixels, "VECTOR_WORDS": vector}
    shapes = ((32, 0), (64, 1), (96, 0), (256, 1))
    for in_c, pad_value in shapes[(filters // 4 + pixels) % 2 :: 2]:
        case = Case(in_c, filters + 1, in_hw=(7, 6), pad_value=pad_value, batch=2, tune=tune)
        check_convolution("bconv2d_tiled", case)
