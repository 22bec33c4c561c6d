"""Walks the calls of a program in order and translates each into nodes of a source graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.errors import first_line, listed
from phonebit.converter.importers.torch.adaptive import ADAPTIVE
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.constants import Constants
from phonebit.converter.importers.torch.depth import DEPTH
from phonebit.converter.importers.torch.element_positions import (
    UnsupportedError,
    View,
    file_layout,
    hwc_of,
    plain_view,
    without_batch,
)
from phonebit.converter.importers.torch.elementwise import ELEMENTWISE, elementwise
from phonebit.converter.importers.torch.emission import Emission
from phonebit.converter.importers.torch.layers import LAYERS
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.lookups import LOOKUPS
from phonebit.converter.importers.torch.normalising import NORMALISING
from phonebit.converter.importers.torch.pooling import POOLING
from phonebit.converter.importers.torch.products import PRODUCTS
from phonebit.converter.importers.torch.program import Problem, Program
from phonebit.converter.importers.torch.rearranging import REARRANGING, rearrange
from phonebit.converter.importers.torch.recurrent import RECURRENT
from phonebit.converter.importers.torch.reducing import REDUCING
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.importers.torch.transposed import CONVOLUTIONS
from phonebit.converter.importers.torch.unsupported import advice
from phonebit.converter.infer import infer
from phonebit.converter.ir import Graph, TensorType
from phonebit.converter.ops import Dequantize, Elementwise, Input
from phonebit.converter.ops.epilogue import Epilogue
from phonebit.errors import ConversionError, PhoneBitError, UnsupportedLayerError
from phonebit.format.records import DataType

Rule = Callable[[Context, Call], Any]

INPUT_TYPES: Final = {
    "float32": DataType.F32,
    "uint8": DataType.U8,
    **dict.fromkeys(("int32", "int64"), DataType.F32),
}
"""Whole numbers of more bytes, as embeddings read them, are given as floats."""
RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(REARRANGING, rearrange),
    **LAYERS,
    **CONVOLUTIONS,
    **PRODUCTS,
    **RECURRENT,
    **LOOKUPS,
    **DEPTH,
    **POOLING,
    **ADAPTIVE,
    **REDUCING,
    **NORMALISING,
}


@dataclass
class Translation:
    """A source graph and where PyTorch computes its values.

    Attributes:
        graph: The graph.
        tensors: For a value, the exported node that computes it, and how the tensor's elements lie.
        estimators: See ``torch_program.Program``.
        batch: Images in the exported program.
    """

    graph: Graph
    tensors: dict[str, tuple[str, View]] = field(default_factory=dict)
    estimators: dict[str, str] = field(default_factory=dict)
    batch: int = 1


def translate(program: Program, name: str, rules: Mapping[str, Rule] = RULES) -> Translation:
    """The source graph of a program.

    Args:
        program: Live calls in order.
        name: The network's name.
        rules: For each operator.

    Raises:
        UnsupportedLayerError: Operators that PhoneBit cannot express, all of them listed.
        ConversionError: The program has no input with a batch, or is inconsistent.
    """
    context = Context(_batch(program), Emission(program), Constants())
    problems = list(program.problems)
    for call in program.inputs:
        context.values[call] = _input(context, call, call in program.channels_last)
    for call in program.calls:
        if not call.constant and call.op != "input":
            context.values[call] = _translated(context, call, rules, problems)
    outputs = _outputs(context, program, problems)
    if problems:
        error = UnsupportedLayerError(
            described(problems),
            where=name,
            hint="replace what is listed by supported operators and convert again",
        )
        error.reasons = {each.where: f"{each.operator} {each.reason}" for each in problems}
        for problem in dict.fromkeys(problem for problem in problems if problem.line):
            error.add_note(f"{problem.where}: {problem.operator}: {problem.line}")
        raise error
    emission = context.emission
    graph = Graph(
        name,
        emission.nodes,
        emission.types,
        [call.name for call in program.inputs],
        outputs,
        expected_binary=context.expected_binary,
        notes=context.notes,
        arrays=context.arrays,
    )
    graph.types = infer(graph)
    return Translation(graph, emission.tensors, program.estimators, context.batch)


def _batch(program: Program) -> int:
    sizes = {call.shape[0] if call.shape else 0 for call in program.inputs}
    if len(sizes) != 1 or 0 in sizes:
        raise ConversionError(
            "inputs without a common batch, which must be their first axis",
            expected="(N, C, H, W) or (N, features)",
            got=[call.shape for call in program.inputs],
        )
    return sizes.pop()


def _input(context: Context, call: Call, channels_last: bool) -> Value:
    inner = without_batch(call.shape, context.batch)
    layout = file_layout(len(inner), channels_last)
    kind = INPUT_TYPES.get(str(call.dtype))
    if kind is None or not 1 <= len(inner) <= 4:
        raise ConversionError(
            f"input {call.name!r} cannot be expressed",
            expected="float32, uint8 or integers, of two to five axes with the batch",
            got=f"{call.dtype}, {call.shape}",
        )
    emission = context.emission
    hwc = hwc_of(inner, layout)
    emission.emit(Input(), [], hwc, call.name)
    emission.types[call.name] = TensorType(hwc, kind)
    value = context.result(call, call.name, layout)
    assert value.view is not None
    shape = context.array_shape(value.view)
    if shape is not None:
        context.arrays[call.name] = shape
    if kind == DataType.U8:  # whatever reads bytes computes with them as numbers
        one, zero = np.ones(hwc[2], np.float32), np.zeros(hwc[2], np.float32)
        name = f"{call.name}/float"
        emission.emit(Dequantize(one, zero, (1, 0, 1)), [call.name], hwc, name)
        value.view = plain_view(name, call.shape, context.batch, layout)
    return value


def _translated(
    context: Context, call: Call, rules: Mapping[str, Rule], problems: list[Problem]
) -> Any:
    rule = _item if call.op == "getitem" else rules.get(call.op)
    with _translating(call, problems):
        if rule is None:
            raise UnsupportedError(f"is not supported{advice(call.op)}")
        known = (operand.constant or context.values.get(operand) for operand in call.operands())
        # What comes after a problem that is listed already is left out.
        return rule(context, call) if all(known) else None
    return None


@contextmanager
def _translating(call: Call, problems: list[Problem]) -> Iterator[None]:
    """Lists what cannot be expressed; any other failure is an error that names the call."""
    try:
        yield
    except UnsupportedError as error:
        problems.append(_problem(error.call or call, str(error)))
    except PhoneBitError:
        raise
    except Exception as error:  # a mistake of ours, or PyTorch's word on constants
        raise ConversionError(
            described([_problem(call, f"cannot be translated: {first_line(error)}")]),
            hint="this is a bug in PhoneBit: please report it",
        ) from error


def _item(context: Context, call: Call) -> Any:
    item = context.values[call["self"]]
    value = item[call["index"]] if isinstance(item, list) else None
    if isinstance(value, Value) and value.view is not None:
        context.emission.record(call, value.view)
    return value


def _outputs(context: Context, program: Program, problems: list[Problem]) -> list[str]:
    """The values of the outputs, by the source's names where it tells some.

    A value that is given more than once has a copy for each other name.
    """
    inputs = {call.name for call in program.inputs}
    views = {
        call: _output(context, call, call in program.channels_last, problems)
        for call in dict.fromkeys(program.outputs)
    }
    results: dict[str, str] = {}
    for call, name in zip(program.outputs, program.output_names(), strict=True):
        view = views[call]
        if view is None:
            continue
        value, shape = view.value, context.array_shape(view)
        if value in results or (value in inputs and context.arrays.get(value) != shape):
            copied = Elementwise(Epilogue([]))
            value = context.emission.emit(copied, [value], view.hwc, name or f"{value}/output")
        if shape is not None:
            context.arrays[value] = shape
        results[value] = name if value not in inputs else ""
    for value, name in results.items():  # only here: views know values by their first names
        if name:
            results[value] = context.emission.renamed(value, name)
            if value in context.arrays:
                context.arrays[results[value]] = context.arrays.pop(value)
    return [name or value for value, name in results.items()]


def _output(
    context: Context, call: Call, channels_last: bool, problems: list[Problem]
) -> View | None:
    """An output in the order of ``file_layout``."""
    value = context.values.get(call)
    if not isinstance(value, Value):
        if call.constant:
            problems.append(Problem(call.name, "an output", "that does not depend on an input"))
        return None
    with _translating(call, problems):
        view = context.real(value)
        layout, name = file_layout(view.sample().ndim, channels_last), f"{view.value}/output"
        moved = relayout(context.emission, view, layout, name)
        if moved.value == view.value or context.array_shape(moved) is None:
            return moved
        return replace(moved, value=context.emission.renamed(moved.value, name))
    return None


def _problem(call: Call, reason: str) -> Problem:
    operator = call.title or f"aten.{call.op}"
    return Problem(call.scope[1] or call.name, operator, reason, call.line)


def described(problems: list[Problem]) -> list[str]:
    """One message for each kind of problem."""
    return listed((problem.where, f"{problem.operator} {problem.reason}") for problem in problems)
