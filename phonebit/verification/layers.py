"""Layer by layer: each op of the file, fed with the source's own values, judged alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Input, Node
from phonebit.network import Network
from phonebit.verification.hoisted import hoisted_sign
from phonebit.verification.report import LayerCheck, Oracle
from phonebit.verification.source_trace import Array, SourceTrace

TIE_LIMIT = 1e-5
"""A bit may differ where the compared value is below this share of the layer's largest value."""
TIE_SHARE = 1e-3
"""More ties than this share of a layer's bits (and than TIE_COUNT) are no accident of rounding."""
TIE_COUNT = 16


@dataclass(frozen=True)
class Expected:
    """What an op should compute: its outputs by name, and the real values behind its bits."""

    oracle: Oracle
    values: dict[str, Array]
    margins: dict[str, Array]


class LayerChecker:
    """Compares the engine's ops with the source, over any number of batches.

    Args:
        network: the loaded file.
        graph: the same file as an engine graph.
        source: the source graph.
        tolerance: allowed difference of real values, as a share of the layer's largest value.
    """

    def __init__(self, network: Network, graph: Graph, source: Graph, tolerance: float) -> None:
        self._network = network
        self._source = source
        self._nodes = [node for node in graph.nodes if not isinstance(node.op, Input)]
        self._graph = graph
        self._tolerance = tolerance
        self.checks = [
            LayerCheck(index, layer.name, layer.kind) for index, layer in enumerate(network.layers)
        ]

    def check_batch(self, inputs: dict[str, Array], trace: SourceTrace, first_sample: int) -> None:
        """Run and judge every op on one batch.

        Args:
            inputs: the engine's inputs by name.
            trace: the source's values for the same inputs.
            first_sample: number of the batch's first sample, for messages.
        """
        values = dict(inputs)
        for node, check in zip(self._nodes, self.checks, strict=True):
            names = self._network.layers[check.index].inputs
            results = self._network.run_layer(check.index, [values[name] for name in names])
            expected = self._expected(node, values, trace)
            check.oracle = expected.oracle
            for name, result in results.items():
                place = (name, first_sample)
                if result.dtype == np.int8:
                    margin = expected.margins.get(name)
                    compare_bits(check, result, expected.values[name], margin, place)
                else:
                    compare_reals(check, result, expected.values[name], self._tolerance, place)
            values.update(results if expected.oracle == "engine graph" else expected.values)

    def _expected(
        self, node: Node, values_so_far: dict[str, Array], trace: SourceTrace
    ) -> Expected:
        """The source's values; or those of a sign that moved; or the file's own definition."""
        values: dict[str, Array] = {}
        margins: dict[str, Array] = {}
        oracle: Oracle = "source"
        for name in node.outputs:
            if self._is_same(name, trace):
                values[name] = trace.values[name]
                if name in trace.margins:
                    margins[name] = trace.margins[name]
                continue
            moved = hoisted_sign(name, self._source, trace)
            if moved is None:
                oracle = "engine graph"
            else:
                values[name], margins[name] = moved
                oracle = "source, rearranged" if oracle == "source" else oracle
        if oracle == "engine graph":
            own_margins: dict[str, Array] = {}
            operands = [values_so_far[name] for name in node.inputs]
            own = evaluate_node(node, operands, own_margins)
            values, margins = {**own, **values}, {**own_margins, **margins}
        return Expected(oracle, values, margins)

    def _is_same(self, name: str, trace: SourceTrace) -> bool:
        """Whether the source has this value, in the same form."""
        if name not in trace.values:
            return False
        value = trace.values[name]
        is_bit = self._graph.types[name].dtype.name == "BIT"
        return value.shape[1:] == self._graph.types[name].shape and is_bit == (
            value.dtype == np.int8
        )


def compare_reals(
    check: LayerCheck, result: Array, expected: Array, tolerance: float, place: tuple[str, int]
) -> None:
    """Find the largest difference of real values.

    Args:
        check: receives it.
        result: the engine's values.
        expected: what they should be.
        tolerance: allowed difference, as a share of the largest expected value.
        place: name of the value and number of the batch's first sample.
    """
    allowed = tolerance * float(np.abs(expected).max())
    difference = np.abs(result.astype(np.float64) - expected)
    worst = float(difference.max())
    check.values += result.size
    check.tolerance = max(check.tolerance, allowed)
    if not worst <= allowed:  # a NaN parts too
        check.parted = True
    if not worst <= check.max_abs_difference:
        check.max_abs_difference = worst
        check.worst = _place_text(place, int(np.argmax(difference)), difference.shape)


def compare_bits(
    check: LayerCheck,
    result: Array,
    expected: Array,
    margin: Array | None,
    place: tuple[str, int],
) -> None:
    """Count bits that differ, and those among them that are float ties.

    Args:
        check: receives the counts.
        result: the engine's -1 and +1.
        expected: what they should be.
        margin: the real values whose signs ``expected`` is, or None if it is integer arithmetic.
        place: name of the value and number of the batch's first sample.
    """
    differs = result != expected
    count = int(np.count_nonzero(differs))
    check.bits += result.size
    check.differing_bits += count
    if not count:
        return
    ties = differs & tie_mask(margin) if margin is not None else np.zeros_like(differs)
    tie_count = int(np.count_nonzero(ties))
    check.ties += tie_count
    if tie_count and margin is not None:
        check.worst_tie = max(check.worst_tie, float(np.abs(margin[ties]).max()))
    if tie_count < count and not check.worst_bit:
        first = int(np.argmax(differs & ~ties))
        check.worst_bit = _place_text(place, first, differs.shape)
    too_many = check.ties > max(TIE_COUNT, TIE_SHARE * check.bits)
    if tie_count < count or too_many:
        check.parted = True


def tie_mask(margin: Array) -> Array:
    """Where a real value is so near to zero that the order of float additions decides its sign."""
    magnitude = np.abs(margin)
    limit = TIE_LIMIT * float(magnitude.max(initial=0.0))
    return np.asarray(magnitude <= limit)


def _place_text(place: tuple[str, int], index: int, shape: tuple[int, ...]) -> str:
    """``name[sample, row, column, channel]``."""
    sample, *rest = np.unravel_index(index, shape)
    where = ", ".join(str(int(i)) for i in (sample + place[1], *rest))
    return f"{place[0]}[{where}]"
