"""Limits and levels, asked where no input leads: CLAMP and COUNT in the epilogue of a layer.

A limit that no input reaches changes nothing, and so does a threshold of a quantizer that no input
lies next to. So such layers are executed once more without the step and all after it. What they
give is related to the source's values (``relations``), and file and source are both asked what they
make of values beyond each limit, and on both sides of each threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Quantize
from phonebit.converter.ops.epilogue import Clamp, Count, Epilogue, EpilogueOp, ScaleBias
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.converter.origins import Level
from phonebit.converter.passes.chains import Chain, is_per_channel
from phonebit.format.records import DataType
from phonebit.verification.relations import FAR, Numbers, Relation, near_of
from phonebit.verification.sign_chains import SignChain, longest


@dataclass(frozen=True)
class Limited:
    """A layer of the file with a limit, and the source's operators that have it, too.

    Attributes:
        node: the layer.
        place: of the limiting step in its epilogue.
        chain: the source's operators; the last gives what the layer gives.
        values: of the file's levels, if it gives these.
    """

    node: Node
    place: int
    chain: SignChain
    values: NDArray[np.float32] | None

    @property
    def steps(self) -> list[EpilogueOp]:
        """The limiting step, and all after it."""
        assert isinstance(self.node.op, EpilogueOperator)
        return self.node.op.epilogue.steps[self.place :]

    def without(self, channels: int) -> Node:
        """The layer without these; a step that changes nothing makes sums numbers."""
        assert isinstance(self.node.op, EpilogueOperator)
        ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        before = self.node.op.epilogue.steps[: self.place] or [ScaleBias(ones, zeros)]
        return replace(self.node, op=self.node.op.with_epilogue(Epilogue(before)))

    def wrong(self, found: Relation, tolerance: float) -> list[str]:
        """Where file and source differ, one text for each channel."""
        step = self.steps[0]
        if isinstance(step, Clamp):
            return self._wrong_limits(found, step, tolerance)
        assert isinstance(step, Count)
        slope = np.where(found.is_known, found.slope, 1.0)
        border = step.thresholds.T.astype(np.float64) * slope + found.offset
        middle = np.where(np.isfinite(border), border, 0)
        near = near_of(found, middle)
        far = FAR * (found.largest + np.abs(middle))
        values = np.concatenate([middle + near, middle - near, middle + far, middle - far])
        near = np.concatenate([near] * 4) / 2
        file = self._of_file((values - found.offset) / slope)
        below, above = (self._of_source(found, values + move) for move in (-near, near))
        return _texts((below == above) & (below != file) & found.is_known, values, below, file)

    def _wrong_limits(self, found: Relation, step: Clamp, tolerance: float) -> list[str]:
        """Beyond each limit by as much as the values are large."""
        slope = np.where(found.is_known, found.slope, 1.0)
        size = np.abs((found.values - found.offset) / slope).max(initial=0.0) + 1
        beyond = [(step.low, -1), (step.high, 1)]
        ends = [limit + side * (size + abs(limit)) for limit, side in beyond if np.isfinite(limit)]
        if not ends:
            return []
        points = np.stack([np.full(slope.shape, end) for end in ends])
        values = points * slope + found.offset
        file, source = self._of_file(points), self._of_source(found, values)
        allowed = tolerance * max(np.abs(file).max(), np.abs(source).max())
        return _texts((np.abs(file - source) > allowed) & found.is_known, values, source, file)

    def _of_file(self, points: Numbers) -> Numbers:
        """What the steps make of (rows, channels)."""
        array = points[:, None, None, :].astype(np.float32)
        for step in self.steps:
            array = step.apply(array, [])
        if self.values is not None:
            array = self.values[array.astype(np.int64)]
        return array[:, 0, 0].astype(np.float64)

    def _of_source(self, found: Relation, values: Numbers) -> Numbers:
        *steps, last = self.chain.nodes[found.place :]
        with np.errstate(all="ignore"):
            return Chain(self.chain.top, steps, last).results(values).astype(np.float64)


def limited(file: Graph, source: Graph, node: Node) -> Limited | None:
    """A layer of float values with limits that the source has, too; None for any other."""
    if not isinstance(node.op, EpilogueOperator) or node.bits is not None or node.value is None:
        return None
    channels = file.types[node.value].shape[2]
    steps = node.op.epilogue.steps
    place = next((i for i, step in enumerate(steps) if isinstance(step, Clamp | Count)), None)
    if place is None or not all(step.is_per_channel(channels) for step in steps[place:]):
        return None
    name, values = node.value, None
    if name not in source.types:
        planes = [plane for reader in file.consumers(name) for plane in reader.planes[:1]]
        origin = file.origins.get(planes[0]) if planes else None
        if not isinstance(origin, Level) or origin.value not in source.types:
            return None
        name, op = origin.value, source.producer(origin.value).op
        if not isinstance(op, Quantize):
            return None
        values = op.values
    if name not in source.types or source.types[name].dtype != DataType.F32:
        return None
    last = source.producer(name)
    if not (isinstance(last.op, Quantize) or is_per_channel(last, channels)):
        return None
    chain = longest(source, SignChain(last.inputs[0], [last]))
    return Limited(node, place, chain, values)


def _texts(wrong: NDArray[np.bool_], values: Numbers, source: Numbers, file: Numbers) -> list[str]:
    places = [(int(np.argmax(column)), c) for c, column in enumerate(wrong.T) if column.any()]
    return [
        f"channel {channel}: of {values[row, channel]:.9g} the source makes "
        f"{source[row, channel]:.9g}, the file {file[row, channel]:.9g}"
        for row, channel in places
    ]
