"""Outputs that are softmaxes, or their logarithms, are compared by the logits that they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit.converter.interpreter import run
from phonebit.converter.ops import Elementwise, Softmax
from phonebit.converter.ops.epilogue import Epilogue, ScaleBias
from phonebit.converter.writer import to_bytes
from phonebit.network import Network
from phonebit.verification.end_to_end import EndToEndChecker
from phonebit.verification.source_trace import SourceTrace
from support.engine_net import Net
from support.golden import integer_inputs


@pytest.mark.parametrize("log", [False, True])
def test_rounding_of_large_logits_does_not_count_as_a_difference(log: bool, tmp_path: Path) -> None:
    net = Net("large_logits")
    far = ScaleBias(np.ones(5, np.float32), np.full(5, 4096, np.float32))
    logits = net.op("logits", Elementwise(Epilogue([far])), net.input("x", (1, 1, 5)))
    graph = net.done(net.op("scores", Softmax(log), logits))
    path = tmp_path / "large_logits.pbit"
    path.write_bytes(to_bytes(graph))
    inputs = integer_inputs(graph)
    values = run(graph, inputs, graph.types)
    values["logits"][..., 1:] += np.float32(2.0**-11)  # one unit in their last place
    values |= run(graph, {"x": values["logits"] - np.float32(4096)}, ["scores"])
    checker = EndToEndChecker(Network.load(path), graph, tolerance=1e-5)
    engine = checker.check_batch(inputs, SourceTrace(graph, values), 0)
    assert np.abs(engine["scores"] - values["scores"]).max() > 1e-5 * np.abs(values["scores"]).max()
    assert checker.check.max_abs_difference == 2.0**-11
    assert not checker.check.unexplained
