"""Signs, asked where no input leads: the values in front of them, and both sides of thresholds.

A layer that ends in bits shows one bit of each of its values. So every such layer is executed once
more with its values as another output, and these are compared with the source's. A file may hold
another multiple of a value than the source, or lack a constant that a threshold contains; so first
both are related by a factor and an offset for each channel, and nothing but that may lie between
them. Through the same relation each threshold is a number of the source's value. There, just below
it and far on both sides of it, the source's own operators are asked for their decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops.convolution import Convolution
from phonebit.converter.ops.with_epilogue import EpilogueOperator, epilogue_of
from phonebit.converter.passes.base import fresh_value, refresh_types
from phonebit.converter.passes.chains import Chain
from phonebit.converter.passes.integer_thresholds import reach_of
from phonebit.converter.writer import to_bytes
from phonebit.network import Network
from phonebit.verification.comparison import TIE_LIMIT, compare_reals
from phonebit.verification.layer_check import LayerCheck
from phonebit.verification.limits import Limited, limited
from phonebit.verification.relations import FAR, Numbers, Relation, near_of, related
from phonebit.verification.sign_chains import SignChain
from phonebit.verification.source_trace import Array, SourceTrace

ENOUGH: Final = 2048
"""Values of a channel that are compared at least, where the inputs give as many."""
NO_LIMIT: Final = 1 << 62


class Decisions:
    """Layers that end in bits, with the source's values in front of these.

    Args:
        file: the file's graph.
        source: the source graph.
        chains: what the source computes in front of its signs, by the name of the file's bits.
    """

    def __init__(self, file: Graph, source: Graph, chains: Mapping[str, SignChain]) -> None:
        self._nodes: dict[int, Node] = {}
        self._limited: dict[int, Limited] = {}
        self._chains = chains
        shown = replace(file, nodes=list(file.nodes), types=dict(file.types))
        for place, node in enumerate(list(shown.nodes)):
            limits = limited(file, source, node)
            if limits is not None:
                self._limited[place - len(file.inputs)] = limits
                shown.nodes[place] = limits.without(file.types[node.outputs[0]].shape[2])
            epilogue = epilogue_of(node.op)
            if node.bits not in chains or epilogue is None or epilogue.threshold is None:
                continue
            assert isinstance(node.op, EpilogueOperator)
            self._nodes[place - len(file.inputs)] = node
            real = replace(epilogue, threshold=epilogue.threshold.astype(np.float32))
            value = node.value or fresh_value(shown, f"{node.bits}/value")
            op = node.op.with_epilogue(real)
            shown.nodes[place] = replace(node, op=op, value=value)
        self._values = {
            place - len(file.inputs): str(node.value) for place, node in enumerate(shown.nodes)
        }
        self._network = _loaded(shown) if self._nodes or self._limited else None

    def reads(self, index: int) -> list[str]:
        """Names of the source's values that ``check`` needs."""
        chain = self._chain(index)
        return [] if chain is None else [chain.top]

    def _chain(self, index: int) -> SignChain | None:
        if index in self._limited:
            return self._limited[index].chain
        return self._chains[str(self._nodes[index].bits)] if index in self._nodes else None

    def check(
        self,
        index: int,
        operands: Sequence[Array],
        trace: SourceTrace,
        tolerance: float,
        checks: Sequence[LayerCheck],
    ) -> None:
        """Judge one layer, if it ends in bits or has limits that the source has, too.

        Args:
            index: its place.
            operands: what it reads, all samples.
            trace: the source's values for these.
            tolerance: allowed difference of values, as a share of the largest.
            checks: receive the result.
        """
        chain = self._chain(index)
        if chain is None or self._network is None:
            return
        height, width = trace.values[chain.top].shape[1:3]
        count = -(-ENOUGH // (height * width))
        name = self._values[index]
        got = self._network.run_layer(index, [array[:count] for array in operands])[name]
        if index in self._nodes and np.all(np.abs(got) == 1):
            return  # bits as numbers: the sign was before
        found = related(got, chain.values(trace, count), tolerance)
        is_related = found.error <= tolerance  # else the values are the mismatch
        if index in self._limited:
            wrong = self._limited[index].wrong(found, tolerance) if is_related else []
        else:
            wrong = _wrong_thresholds(self._nodes[index], chain, found) if is_related else []
        for check in checks:
            if index in self._nodes:
                values = found.values.astype(np.float64)
                compare_reals(check, found.predicted, values, tolerance, (name, 0))
            check.thresholds += int(np.count_nonzero(found.is_known)) * is_related
            check.wrong_thresholds += len(wrong)
            if wrong and not check.worst_threshold:
                check.worst_threshold = wrong[0]
            check.mismatch |= bool(wrong)


def _loaded(graph: Graph) -> Network:
    """On the CPU: exact layers give the same bits on every device. The file is within limits."""
    refresh_types(graph)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "values.pbit"
        path.write_bytes(to_bytes(graph))
        return Network.load(path, "cpu", max_memory_bytes=NO_LIMIT, max_work=float(NO_LIMIT))


def _wrong_thresholds(node: Node, chain: SignChain, found: Relation) -> list[str]:
    """Where the file decides otherwise than the source, one text for each channel."""
    assert isinstance(node.op, EpilogueOperator) and node.op.epilogue.threshold is not None
    threshold = node.op.epilogue.threshold
    slope = np.where(found.is_known, found.slope, 1.0)
    if threshold.dtype == np.int32 and isinstance(node.op, Convolution):
        reach = reach_of(node.op)
        ends = np.full(threshold.shape, reach.low), np.full(threshold.shape, reach.high)
        sums = np.stack([threshold, threshold - reach.step, *ends]).clip(reach.low, reach.high)
        values, fires = sums * slope + found.offset, sums >= threshold
        near = np.full(threshold.shape, 0.1 * TIE_LIMIT * found.largest)
    else:
        border = threshold.astype(np.float64) * slope + found.offset
        middle = np.where(np.isfinite(border), border, 0)  # of those that always fire, or never do
        near = near_of(found, middle)
        far = FAR * (found.largest + np.abs(middle))
        values = np.stack([middle + near, middle - near, middle + far, middle - far])
        fires = (values - found.offset) / slope >= threshold
        near = near / 2
    return _differing(chain, found, values, fires, near)


def _differing(
    chain: SignChain,
    found: Relation,
    values: Numbers,
    fires: NDArray[np.bool_],
    near: Numbers,
) -> list[str]:
    """Channels in which the source decides otherwise at some value, and not the same around it."""
    *steps, sign = chain.nodes[found.place :]
    asked = Chain(chain.top, steps, sign)
    with np.errstate(all="ignore"):
        below, above = (asked.decide(values + move) for move in (-near, near))
    wrong = (below == above) & (below != fires) & found.is_known
    places = [(int(np.argmax(column)), c) for c, column in enumerate(wrong.T) if column.any()]
    return [
        f"channel {channel}: at {values[row, channel]:.9g} before the sign the source gives "
        f"{'+1' if below[row, channel] else '-1'}, the file {'+1' if fires[row, channel] else '-1'}"
        for row, channel in places
    ]
