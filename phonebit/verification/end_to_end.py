"""End to end: whole inferences, and for every difference the float tie that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.network import Network
from phonebit.verification.comparison import TIE_LIMIT, tie_mask, unequal
from phonebit.verification.differences import Mask
from phonebit.verification.report import EndToEndCheck
from phonebit.verification.rounding import rounding_of, rounds
from phonebit.verification.source_bits import bit_sources
from phonebit.verification.source_trace import Array, SourceTrace


class EndToEndChecker:
    """Compares the engine's own inferences with the source's outputs.

    Args:
        network: the loaded file.
        graph: the same file as an engine graph.
        tolerance: allowed difference of outputs, as a share of their largest value.
        precision: with which the network was loaded, as asked for.
    """

    def __init__(
        self, network: Network, graph: Graph, tolerance: float, precision: str = "exact"
    ) -> None:
        self._network = network
        self._graph = graph
        self._tolerance = tolerance
        self.check = EndToEndCheck(precision=precision)

    def check_batch(
        self,
        inputs: dict[str, Array],
        trace: SourceTrace,
        first_sample: int,
        other: dict[str, Array] | None = None,
        own: SourceTrace | None = None,
    ) -> dict[str, Array]:
        """Run one batch and compare.

        Args:
            inputs: the engine's inputs by name.
            trace: the source's values for the same inputs.
            first_sample: number of the batch's first sample.
            other: another device's outputs, which must be the same.
            own: the source's values with its own weights, where ``trace`` has the file's.

        Returns:
            The network's outputs by name.
        """
        values = {**inputs, **self._network.activations(inputs)}
        count = len(next(iter(inputs.values())))
        same = np.ones(count, np.bool_)
        near = np.ones(count, np.bool_)
        weighted = np.ones(count, np.bool_)
        for info in self._network.outputs:
            name = self._judged(info.name, trace)
            got = values[name].reshape(count, -1).astype(np.float64)
            expected = trace.values[name].reshape(count, -1).astype(np.float64)
            same &= same_argmax(got, expected)
            if own is not None:
                before = own.values[name].reshape(count, -1).astype(np.float64)
                weighted &= before.argmax(axis=1) == expected.argmax(axis=1)
                change = float(np.abs(before - expected).max())
                self.check.weights_difference = max(self.check.weights_difference, change)
            difference = np.abs(got - expected).max(axis=1)
            tolerance = self._tolerance * float(np.abs(expected).max())
            near &= difference <= tolerance
            self.check.tolerance = max(self.check.tolerance, tolerance)
            worst = float(difference.max())
            if not worst <= self.check.max_abs_difference:
                self.check.max_abs_difference = worst
        first = first_differences(self._network, self._graph, values, trace, first_sample)
        self.check.samples += count
        self.check.same_argmax += int(np.count_nonzero(same))
        self.check.weights_class_changes += int(np.count_nonzero(~weighted))
        explained = (first.ties + first.zeros > 0) & ~first.mismatch
        self.check.samples_with_ties += int(np.count_nonzero(explained))
        self.check.ties += first.shown
        self.check.zeros += int(first.zeros.sum())
        # Outputs within the tolerance may still swap two best classes of the same score.
        unexplained = ~near & ~explained & (self.check.precision == "exact")
        self.check.unexplained += [int(i) + first_sample for i in np.flatnonzero(unexplained)]
        outputs = {info.name: values[info.name] for info in self._network.outputs}
        same_precision = self.check.precision == "exact"  # else each device has its own
        for name, array in (other or {}).items() if same_precision else ():
            self.check.other_device += unequal(outputs[name], array)
        return outputs

    def _judged(self, output: str, trace: SourceTrace) -> str:
        """What stands for an output: for a softmax, or its logarithm, the logits that it reads.

        A softmax turns a difference of logits, whatever their size, into one of probabilities, so
        that rounding which is within tolerance of logits in the thousands would seem too large. The
        softmax itself is judged alone, and keeps the order of the classes.
        """
        for layer in self._network.layers:
            if layer.kind in ("softmax", "log_softmax") and output in layer.outputs:
                logits = layer.inputs[0]
                return logits if logits in trace.values else output
        return output


def same_argmax(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether rows have their largest element in one place.

    Where a row has several largest ones, as a map of an image of one colour has, any of them will
    do: the other side may have them next to each other by rounding.

    Args:
        one: (N, elements).
        other: the same.
    """
    rows = np.arange(len(one))
    in_one = one[rows, other.argmax(axis=1)] == one.max(axis=1)
    in_other = other[rows, one.argmax(axis=1)] == other.max(axis=1)
    same: NDArray[np.bool_] = in_one | in_other
    return same


@dataclass(frozen=True)
class FirstDifferences:
    """Where each sample's bits first differ from the source's.

    Attributes:
        mismatch: (N,) whether bits differ there that are neither float ties nor exact zeros.
        ties: (N,) float ties there.
        zeros: (N,) bits there that are 0 in the source.
        shown: each float tie, as in ``EndToEndCheck.ties``.
    """

    mismatch: NDArray[np.bool_]
    ties: NDArray[np.int64]
    zeros: NDArray[np.int64]
    shown: list[str]


def first_differences(
    network: Network,
    graph: Graph,
    values: Mapping[str, Array],
    trace: SourceTrace,
    first_sample: int = 0,
) -> FirstDifferences:
    """Look for the cause of every difference.

    After the first tensor with other bits, or other integers where a layer rounds, everything may
    legitimately differ, so for each sample only that one is judged.

    Args:
        network: gives the order of the layers.
        graph: the same file as an engine graph.
        values: the engine's activations by name.
        trace: the source's values for the same inputs.
        first_sample: number of the batch's first sample.

    Returns:
        The places, by sample.
    """
    count = len(next(iter(values.values())))
    mismatch = np.zeros(count, np.bool_)
    ties, zeros = np.zeros(count, np.int64), np.zeros(count, np.int64)
    waiting = np.ones(count, np.bool_)
    shown: list[str] = []
    names = [name for layer in network.layers for name in layer.outputs]
    shapes = {name: values[name].shape[1:] for name in names if values[name].dtype == np.int8}
    sources = bit_sources(trace.graph, shapes, graph.origins)
    rounding = {node.value: node for node in graph.nodes if rounds(node)}
    for name in names:
        expected = sources[name].bits(trace) if name in sources else None
        if name in rounding and name in trace.values:
            differs, tied = _other_integers(rounding[name], values, trace.values[name])
            apart = differs & waiting[:, None, None, None]
            mismatch |= (apart & ~tied).any(axis=(1, 2, 3))
            ties += (apart & tied).sum(axis=(1, 2, 3))
            waiting &= ~apart.any(axis=(1, 2, 3))
            shown += [
                f"{name}{_place(place, first_sample)} is rounded to either side"
                for place in np.argwhere(apart & tied)
            ]
        if expected is None or expected.margins is None:
            continue
        zero = np.zeros(values[name].shape, np.bool_) if expected.zeros is None else expected.zeros
        zero = zero & waiting[:, None, None, None]
        differs = (values[name] != expected.values) & waiting[:, None, None, None] & ~zero
        tied = differs & tie_mask(expected.margins)
        mismatch |= (differs & ~tied).any(axis=(1, 2, 3))
        ties += tied.sum(axis=(1, 2, 3))
        zeros += zero.sum(axis=(1, 2, 3))
        waiting &= ~(differs | zero).any(axis=(1, 2, 3))
        for place in np.argwhere(tied):
            where = _place(place, first_sample)
            shown.append(f"{name}{where} = {expected.margins[tuple(place)]:.3g}")
    return FirstDifferences(mismatch, ties, zeros, shown)


def _other_integers(node: Node, values: Mapping[str, Array], expected: Array) -> tuple[Mask, Mask]:
    """Where a layer that rounds gives another integer than the source, and where that is a tie."""
    found = rounding_of(node, [values[name] for name in node.inputs])
    assert found is not None and node.value is not None
    result = values[node.value]
    allowed = TIE_LIMIT * float(np.abs(expected).max())
    differs: Mask = np.abs(result.astype(np.float64) - expected) > allowed
    return differs, found.ties(result, expected, TIE_LIMIT, allowed)


def _place(place: NDArray[np.intp], first_sample: int) -> str:
    """``[sample, row, column, channel]``."""
    return f"[{', '.join(str(int(i)) for i in (place[0] + first_sample, *place[1:]))}]"
