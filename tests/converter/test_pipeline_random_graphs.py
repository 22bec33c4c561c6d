"""Conversion changes no bit of any output, on random networks whose float arithmetic is exact."""

from __future__ import annotations

import numpy as np
from graphs import check_origins
from hypothesis import given, settings
from random_networks import networks

from phonebit.converter.convert import convert_graph
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.reader import graph_from_bytes
from phonebit.format.records import DataType


def integer_input(graph: Graph, seed: int) -> np.ndarray:
    kind = graph.types["x"]
    rng = np.random.default_rng(seed)
    if kind.dtype == DataType.U8:
        return rng.integers(0, 256, (2, *kind.shape)).astype(np.uint8)
    return rng.integers(-2, 3, (2, *kind.shape)).astype(np.float32)


@settings(max_examples=120)
@given(networks())
def test_source_and_file_agree_to_the_last_bit(source: Graph) -> None:
    conversion = convert_graph(source)
    engine = graph_from_bytes(conversion.content)
    check_origins(conversion.content)
    x = {"x": integer_input(source, 1)}
    before, after = run(source, x), run(engine, x)
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.dtype == after[name].dtype
        np.testing.assert_array_equal(array, after[name], err_msg=name)
