"""bgemv against matrix products."""

from __future__ import annotations

import pytest
from binary_reference import Case, check_convolution

NO_PADS = (0, 0, 0, 0)


def dense(
    in_c: int,
    out_c: int,
    in_hw: tuple[int, int] = (1, 1),
    batch: int = 1,
    sink: str = "threshold",
    **tune: int,
) -> Case:
    return Case(in_c, out_c, in_hw, in_hw, pads=NO_PADS, batch=batch, sink=sink, tune=tune)


CASES = [
    dense(1, 1),
    dense(31, 7, batch=3, GROUP_SIZE=32),
    dense(32, 8, sink="values+bits"),
    dense(33, 9, (3, 2), TILE_FILTERS=2),
    dense(64, 15, (2, 2), TILE_FILTERS=2, GROUP_SIZE=128, sink="bits"),
    dense(65, 16, TILE_FILTERS=2, sink="values"),
    dense(96, 31, (3, 3), TILE_FILTERS=4, VECTOR_WORDS=1),
    dense(128, 32, (4, 4), TILE_FILTERS=4, GROUP_SIZE=256),
    dense(256, 33, (1, 7), TILE_FILTERS=4, batch=3, sink="values+bits"),
    dense(300, 10, (7, 1), VECTOR_WORDS=2, sink="values"),
    dense(4096, 24, GROUP_SIZE=256),
    dense(1024, 65),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_dense_layers_equal_matrix_products(case: Case) -> None:
    check_convolution("bgemv", case)


@pytest.mark.parametrize("case", CASES[3:6], ids=str)
def test_split_convolution_runs_dense_layers(case: Case) -> None:
    check_convolution("bconv2d_split", case)
