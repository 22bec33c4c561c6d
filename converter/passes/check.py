"""The check after every pass: the rewritten graph computes what it computed before.

Each node of the new graph is fed the old graph's values wherever they bear the same name, so every
rewrite is judged alone: a float tie in one layer does not spread through the rest of the network.
Nodes that a pass did not touch are not executed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node, Values
from phonebit.converter.ops import Input, PlaneSum, Quantize
from phonebit.converter.ops.epilogue import Count, Epilogue, EpilogueOp
from phonebit.converter.ops.epilogue.functions import Round
from phonebit.converter.ops.with_epilogue import EpilogueOperator
from phonebit.errors import VerificationError
from phonebit.format.records import DataType

FLOAT_TOLERANCE: Final = 1e-4
"""Largest difference of float values, relative to the tensor's largest magnitude. Reordered
float32 sums of 10^4 terms differ by about 1e-6 of it; a wrong weight by far more."""
TIE_MARGIN: Final = 1e-5
"""A bit may differ only where the compared value is this close to its threshold, on that scale."""

NodeKey = tuple[int, tuple[str, ...], str | None, str | None]


class ReferenceCheck:
    """Holds the values of the last accepted graph on one seeded random input."""

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self._values: Values = {}
        self._margins: Values = {}
        self._operators: list[object] = []
        self._evaluated: dict[NodeKey, Node] = {}
        rng = np.random.default_rng(seed)
        self._inputs = {name: random_input(graph, name, rng) for name in graph.inputs}
        self.ties = 0
        self._tied: dict[str, NDArray[np.bool_] | bool] = {}
        self._rounds = False
        self.accept(graph, "the source network")

    def accept(self, graph: Graph, what: str, rounds: bool = False) -> None:
        """Compares a graph with the last one and remembers its values.

        Args:
            graph: The new graph, with inferred types.
            what: Who made it, for errors.
            rounds: Whether its maker rearranges float arithmetic.

        Raises:
            VerificationError: A value differs by more than float rounding explains.
        """
        self._rounds = rounds
        values: Values = {}
        margins: Values = {}
        evaluated: dict[NodeKey, Node] = {}
        for node in graph.nodes:
            if isinstance(node.op, Input):
                name = node.outputs[0]
                values[name] = self._inputs[name]
                continue
            key = (id(node.op), tuple(node.inputs), node.value, node.bits)
            evaluated[key] = node
            if key in self._evaluated and self._same_operands(node, values):
                for name in node.outputs:
                    values[name] = self._values[name]
                    if name in self._margins:
                        margins[name] = self._margins[name]
                continue
            fresh = evaluate_node(node, [values[name] for name in node.inputs], margins)
            for name, array in fresh.items():
                if name in self._values:
                    noise = rounding_after_steps(node, [values[operand] for operand in node.inputs])
                    self._compare(
                        what, node, name, (self._values[name], array), margins.get(name), noise
                    )
                    array = self._values[name]
                values[name] = array
        self._values, self._margins, self._evaluated = values, margins, evaluated
        # Keys hold ids: the operators must outlive them.
        self._operators = [node.op for node in graph.nodes]

    def _same_operands(self, node: Node, values: Values) -> bool:
        return all(values[name] is self._values.get(name) for name in node.inputs)

    def _compare(
        self,
        what: str,
        node: Node,
        name: str,
        values: tuple[NDArray[Any], NDArray[Any]],
        margin: NDArray[Any] | None,
        noise: Callable[[], NDArray[Any]],
    ) -> None:
        before, after = values
        if before.shape != after.shape or before.dtype != after.dtype:
            got = (after.shape, after.dtype)
            raise VerificationError(
                f"{what} changed the type of {name!r}",
                where=node.name,
                expected=(before.shape, before.dtype),
                got=got,
                hint="this is a bug in PhoneBit: please report it",
            )
        if before.dtype == np.float32:
            wrong = float_differences(before, after)
            if np.any(wrong):
                wrong &= ~(np.abs(before - after) <= noise())
        else:
            differs = before != after
            wrong = differs & ~self._is_tie(name, differs, margin)
            self._tied[name] = self._tied.get(name, False) | (differs & ~wrong)
            self.ties += int(differs.sum() - wrong.sum())
        if np.any(wrong):
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise VerificationError(
                f"{what} changed {int(wrong.sum())} of {wrong.size} elements of {name!r}, "
                f"first at {place}",
                where=node.name,
                expected=before[place],
                got=after[place],
                hint="this is a bug in PhoneBit: please report it",
            )

    def _is_tie(
        self, name: str, differs: NDArray[np.bool_], after: NDArray[Any] | None
    ) -> NDArray[np.bool_]:
        """Where a compared value is within rounding of its threshold, before and ``after``.

        A value on its threshold is +1 by definition; only arithmetic that was rearranged, by this
        pass or by one before it, may miss it. That shows: the value is not on the threshold now. A
        tie stays one: the value that was kept for it is not what its margin was measured of.
        """
        before = self._margins.get(name)
        if before is None or not differs.any():
            return np.zeros_like(differs)
        near = _within_rounding(before)
        if self._rounds:
            return near
        moved = np.zeros_like(differs) if after is None else _within_rounding(after) & (after != 0)
        tie: NDArray[np.bool_] = near & ((before != 0) | moved | self._tied.get(name, False))
        return tie


def _within_rounding(margin: NDArray[Any]) -> NDArray[np.bool_]:
    """Where compared values lie on their threshold, up to rounding."""
    finite = np.abs(margin[np.isfinite(margin)])
    near: NDArray[np.bool_] = np.abs(margin) <= TIE_MARGIN * float(finite.max(initial=0.0))
    return near


def rounding_after_steps(node: Node, operands: list[NDArray[Any]]) -> Callable[[], NDArray[Any]]:
    """A function that says what the rounding of an op's sum can become after its steps.

    What it returns broadcasts to the result; it executes the op again, so ask it only if needed.

    A sum may differ by ``FLOAT_TOLERANCE`` of its size, and a batch norm after it (of small
    variance, with a mean that cancels most of the sum) makes that a larger part of the result.
    A value on the border of two integers may become either.
    """

    def noise() -> NDArray[Any]:
        op = node.op
        if isinstance(op, Quantize):
            near = _within_rounding(op.borders(operands[0]))
            return np.float32(np.abs(np.diff(op.values)).max()) * near
        if isinstance(op, PlaneSum):  # levels that are 0 may be sums of what is not
            return FLOAT_TOLERANCE * op.size
        if not isinstance(op, EpilogueOperator):
            return np.zeros(1, np.float32)

        def after(steps: list[EpilogueOp]) -> NDArray[Any]:
            part = replace(node, op=op.with_epilogue(Epilogue(steps)), value="part", bits=None)
            return evaluate_node(part, operands)["part"]

        steps = op.epilogue.steps
        size: NDArray[Any] = np.full(1, FLOAT_TOLERANCE * np.abs(after([])).max(), np.float32)
        for index, step in enumerate(steps):
            if isinstance(step, Round | Count):
                border = step.borders(after(steps[:index]))
                size = np.float32(1) * (border <= size * (TIE_MARGIN / FLOAT_TOLERANCE))
            else:
                size = size * step.gain(operands)
        return size

    return noise


def float_differences(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two float arrays differ by more than rounding.

    Sums that overflow may be anything: what they overflow to, and if they do, is up to their order.
    """
    finite = np.abs(before[np.isfinite(before)])
    allowed = FLOAT_TOLERANCE * float(finite.max(initial=0.0)) + 1e-30
    with np.errstate(invalid="ignore"):
        close = np.abs(before - after) <= allowed
    same = (before == after) | ~np.isfinite(before)
    different: NDArray[np.bool_] = ~(close | same)
    return different


def random_input(graph: Graph, name: str, rng: np.random.Generator) -> NDArray[Any]:
    """One random image for an input: all bytes, or standard normal floats."""
    kind = graph.types[name]
    if kind.dtype == DataType.U8:
        return rng.integers(0, 256, (1, *kind.shape)).astype(np.uint8)
    return rng.standard_normal((1, *kind.shape)).astype(np.float32)
