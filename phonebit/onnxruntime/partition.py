"""Which nodes of a model run on PhoneBit: the largest runs that convert with a binary layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from phonebit.acceleration_report import WITHOUT_BINARY, AccelerationReport
from phonebit.converter.passes.decide_zeros import Zeros
from phonebit.errors import ConversionError
from phonebit.onnxruntime.conversion import ConvertedPart, converted, unsupported
from phonebit.onnxruntime.model_view import ModelView

CHOOSING: Final = ("ArgMax", "ArgMin", "TopK")
"""A file gives the scores in place of what these choose."""


class Partition:
    """Runs of nodes in the model's order, from the whole model to smaller ones.

    A run is split at the nodes that the importer does not know. No path leaves a run and comes
    back, since the order is topological.

    Args:
        view: The model.
        zeros: As in ``phonebit.convert``.

    Attributes:
        report: what runs where.
    """

    def __init__(self, view: ModelView, zeros: Zeros) -> None:
        self._view = view
        self._zeros: Zeros = zeros
        self._parts: dict[int, tuple[Sequence[int], ConvertedPart]] = {}
        self.report = AccelerationReport("ONNX Runtime")
        self._walk(view.nodes)

    def model(self) -> Any:
        """The model with a node for each part."""
        graph = self._view.model.graph
        nodes: list[Any] = []
        values: list[Any] = []
        replaced = {index for numbers, _ in self._parts.values() for index in numbers}
        for index, node in enumerate(graph.node):
            if index in self._parts:
                part = self._parts[index][1]
                nodes += part.nodes
                values += part.values
            elif index not in replaced:
                nodes.append(node)
        made = {value.name: value for value in values}
        outputs = [
            value if value.type.WhichOneof("value") else made.pop(value.name, value)
            for value in graph.output
        ]
        between = made.keys() - {value.name for value in outputs}
        return self._view.with_nodes(nodes, outputs, [made[name] for name in sorted(between)])

    def _walk(self, nodes: Sequence[int]) -> None:
        waiting = [list(nodes)]
        while waiting:
            run = waiting.pop()
            try:
                barred = self._barred(run) or unsupported(self._view, run)
                if not barred:
                    self._take(run)
            except ConversionError as error:
                self._leave(run, "; ".join(error.problems))
                continue
            self.report.rest.update((self._view.title(i), why) for i, why in barred.items())
            waiting += reversed(_between(run, barred) if barred else [])

    def _barred(self, run: Sequence[int]) -> dict[int, str]:
        """Nodes whose results a part cannot give as they are, or whose operands it cannot take."""
        view, graph = self._view, self._view.model.graph
        refusals = {name: why for name in view.inputs_of(run) if (why := view.refusal(name))}
        odd = {name for name in view.outputs_of(run) if not view.gives_floats(name)}
        reasons = {}
        for index in run:
            node = graph.node[index]
            if node.op_type in CHOOSING:
                reasons[index] = "chooses places, where a file gives scores"
            elif not odd.isdisjoint(node.output):
                reasons[index] = "gives no floats"
            for name in node.input:
                if name in refusals:
                    reasons[index] = refusals[name]
        return reasons

    def _take(self, run: Sequence[int]) -> None:
        is_whole = len(run) == len(self._view.nodes)
        part = converted(self._view, run, "" if is_whole else self._title(run), self._zeros)
        if part.part.binary_layers:
            self._parts[run[0]] = (run, part)
            self.report.parts.append(part.part)
        else:
            self._leave(run, WITHOUT_BINARY)

    def _leave(self, run: Sequence[int], reason: str) -> None:
        is_whole = len(run) == len(self._view.nodes)
        self.report.rest["" if is_whole else self._title(run)] = reason

    def _title(self, run: Sequence[int]) -> str:
        first, last = self._view.title(run[0]), self._view.title(run[-1])
        return first if len(run) == 1 else f"{first} to {last}"


def _between(run: Sequence[int], barred: dict[int, str]) -> list[list[int]]:
    """The runs between nodes that are left out."""
    runs: list[list[int]] = [[]]
    for index in run:
        if index in barred:
            runs.append([])
        else:
            runs[-1].append(index)
    return [each for each in runs if each]
