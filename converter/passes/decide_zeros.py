"""What becomes of sign(0) = 0, for each layer: proven impossible, kept exact, or reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from phonebit.converter.ir import SMALLEST, Graph, Node
from phonebit.converter.ops import Quantize, Sign
from phonebit.converter.origins import Plane
from phonebit.converter.passes.base import (
    PassLog,
    ZeroFate,
    fresh_value,
    refresh_types,
    rename_uses,
    replace_node,
)
from phonebit.converter.passes.zero_analysis import (
    Occurrence,
    zeros_before,
    zeros_of_constants,
)

Zeros = Literal["auto", "exact", "plus"]
"""auto: zeros that have a cause stay exact (a ReLU, an even number of +-1, a region of one colour);
those that are a rare accident of real-valued sums count as +1. exact: all stay exact unless proven
impossible. plus: all count as +1."""


def decide_zeros(graph: Graph, zeros: Zeros, log: PassLog) -> None:
    """Turns signs with three levels into signs with two, where that is right or asked for.

    Given::

        q = quantize(v; thresholds 0 and the next number; values -1, 0, 1)     # torch.sign

    Result (unless zeros are to stay exact)::

        q/bits = sign(v)                                                       # sign(0) = +1

    This is no pass: where a zero "counts as +" the network's meaning changes, and the checks that
    surround passes compare with the network after this decision. The log says what was decided for
    each layer; the report repeats it.

    Args:
        graph: Source graph, changed in place.
        zeros: What is asked for.
        log: Receives a fate for every sign.
    """
    signs = [n for n in graph.nodes if isinstance(n.op, Quantize) and has_zero_level(n.op)]
    occurrences = zeros_before(graph, [node.inputs[0] for node in signs])
    if zeros == "auto" and "possible" in occurrences:
        constant = zeros_of_constants(graph, [node.inputs[0] for node in signs])
        occurrences = [
            "likely" if found == "possible" and node.inputs[0] in constant else found
            for node, found in zip(signs, occurrences, strict=True)
        ]
    for node, occurrence in zip(signs, occurrences, strict=True):
        assert isinstance(node.op, Quantize)
        log.zeros[node.name] = fate = _fate(occurrence, zeros)
        if fate != "exact" and node.outputs[0] not in graph.outputs:
            drop_zero(graph, node, node.op)
    refresh_types(graph)
    if log.zeros:
        log.notes.append(_summary(log.zeros))


def _summary(fates: Mapping[str, ZeroFate]) -> str:
    """One sentence for the report."""
    by_fate = {fate: [name for name in fates if fates[name] == fate] for fate in fates.values()}
    parts = [f"signs with sign(0) = 0: {len(fates)}"]
    if "impossible" in by_fate:
        parts.append(f"provably without zeros: {len(by_fate['impossible'])}")
    if "exact" in by_fate:
        parts.append(f"exact, with two bits a value: {len(by_fate['exact'])}")
    counted = by_fate.get("counted as +", [])
    if counted:
        shown = ", ".join(counted[:3]) + (", ..." if len(counted) > 3 else "")
        parts.append(
            f"after sums of float values, where a zero counts as +1: {len(counted)} ({shown}; "
            "zeros='exact' keeps it, at twice the cost of what reads it)"
        )
    return "; ".join(parts)


def has_zero_level(op: Quantize) -> bool:
    """Whether the middle one of three levels is taken at exact zeros only."""
    return bool(op.thresholds.tolist() == [0, SMALLEST])


def _fate(occurrence: Occurrence, zeros: Zeros) -> ZeroFate:
    if occurrence == "impossible":
        return "impossible"
    if zeros == "plus" or (zeros == "auto" and occurrence == "possible"):
        return "counted as +"
    return "exact"


def drop_zero(graph: Graph, node: Node, op: Quantize) -> None:
    """Turns a sign with a zero level into one in which zeros count as +1; infers no types."""
    value = node.outputs[0]
    if tuple(op.values[[0, 2]]) != (-1, 1):
        two = Quantize(np.zeros(1, np.float32), op.values[[0, 2]])
        replace_node(graph, node, replace(node, op=two))
        return
    bits = fresh_value(graph, f"{value}/bits")
    graph.origins[bits] = Plane(value, 0)
    replace_node(graph, node, replace(node, op=Sign(), value=bits))
    rename_uses(graph, value, bits)
