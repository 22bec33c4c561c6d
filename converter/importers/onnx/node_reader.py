"""What reading a graph of nodes as a program has in common, whatever format the graph has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.torch.calls import Call, live
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.importers.torch.program import Problem, Program
from phonebit.errors import ConversionError

Rule = Callable[[Builder, Node], Call | Sequence[Call | None]]
MAX_INPUT: Final = 1 << 25
"""Elements of an input, a place of 8 bytes for each of which is computed."""
CHOOSING: Final = ("argmax", "topk")
"""Calls whose operand the file gives in their place, if they are outputs."""


@dataclass
class Reading:
    """A model as a program.

    Attributes:
        program: Its calls.
        notes: For the report.
    """

    program: Program
    notes: list[str] = field(default_factory=list)


class NodeReader:
    """Collects the calls that nodes stand for; each name is defined once, before it is read."""

    def __init__(self) -> None:
        self._builder = Builder()
        self._values: dict[str, Call | None] = {}
        self._program = Program()

    def _define(self, name: str, call: Call | None) -> None:
        if name in self._values:
            raise ConversionError("a name is defined twice", where=repr(name))
        self._values[name] = call

    def _operand(self, name: str, where: str) -> Call | None:
        if name and name not in self._values:
            raise ConversionError(
                f"reads {name!r}, which nothing before it computes",
                where=where,
                hint="the graph has a cycle, or its nodes are not in order",
            )
        return self._values[name] if name else None

    def _apply(
        self, where: str, title: str, outputs: list[str], make: Callable[[], object]
    ) -> None:
        """Defines a node's results; what cannot be expressed is listed."""
        results: list[Call | None] = []
        try:
            made = make()
            results = [made] if isinstance(made, Call) else list(made or ())  # type: ignore[call-overload]
        except UnsupportedError as error:
            self._program.problems.append(Problem(where, title, str(error)))
        results += [None] * len(outputs)
        for name, call in zip(outputs, results, strict=False):
            if name:
                self._define(name, self._named(call, name))

    def _named(self, call: Call | None, name: str) -> Call | None:
        """Gives a call that has just been made the name of the result that it is."""
        if call is not None and call in self._builder.fresh:
            call.name = name
            self._builder.fresh.discard(call)
        elif call is not None and call.name != name:
            self._program.estimators[name] = call.name
        return call

    def _finished(self, outputs: Iterable[str], channels_last: Callable[[Call], bool]) -> Reading:
        """The program whose outputs have these names."""
        reading, program = Reading(self._program), self._program
        for name in outputs:
            call = self._output(name, reading, channels_last)
            if call is not None:
                program.outputs.append(call)
                program.names.append(name)
        repeated = Counter(program.outputs)
        program.names = [
            name if repeated[call] > 1 else ""  # else it is called like its module
            for call, name in zip(program.outputs, program.names, strict=True)
        ]
        if not program.problems and all(call.constant for call in program.outputs):
            raise ConversionError("the network returns no tensor that depends on its input")
        program.calls = live(self._builder.order, program.inputs, program.outputs)
        return reading

    def _output(
        self, name: str, reading: Reading, channels_last: Callable[[Call], bool]
    ) -> Call | None:
        """What the file gives: the scores, where the model gives the place of the largest."""
        if name not in self._values:
            raise ConversionError("an output that nothing computes", where=repr(name))
        call = self._values[name]
        chosen = call
        while chosen is not None and chosen.op in ("view", "to", *CHOOSING):
            if chosen.op in CHOOSING:
                reading.notes.append(
                    f"output {name!r}: the file gives the scores that {chosen.title} chooses from"
                )
                call = chosen["self"]
                break
            chosen = chosen["self"]
        if call is not None and channels_last(call):
            self._program.channels_last.add(call)
        return call
