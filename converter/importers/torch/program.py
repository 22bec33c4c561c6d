"""An exported PyTorch program as calls of ATen operators that are worth translating.

What changes no value is gone (detach, clone, dropout, casts to the same type), equal calls are one,
straight-through estimators have collapsed to their forward value, and what no output needs is not
listed.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, Final

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.cancellation import Cancellation
from phonebit.converter.importers.torch.nodes import (
    as_integer,
    is_random,
    op_name,
    scope_of,
    stored_tensors,
    type_of,
    user_line,
)
from phonebit.errors import ConversionError

SHAPE_ONLY: Final = frozenset(
    {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like"}
)
"""Operators that read only their operand's shape and type."""
FORWARDED: Final = frozenset(
    {"detach", "alias", "clone", "contiguous", "lift_fresh", "lift_fresh_copy", "lift"}
)
CASTS: Final = frozenset({"to", "_to_copy"})
DROPOUTS: Final = frozenset({"dropout", "feature_dropout", "alpha_dropout", "native_dropout"})
RESHAPES: Final = frozenset({"view", "reshape", "expand", "_unsafe_view", "expand_as", "view_as"})


@dataclass
class Program:
    """Live calls in execution order.

    ``estimators`` says, for the exported node of a straight-through estimator, the node of its
    forward value, which stands for it.
    """

    calls: list[Call] = field(default_factory=list)
    inputs: list[Call] = field(default_factory=list)
    outputs: list[Call] = field(default_factory=list)
    estimators: dict[str, str] = field(default_factory=dict)


def read_program(exported: Any) -> Program:
    """Reads a functional ``ExportedProgram``.

    Args:
        exported: As ``export.functional`` returns it.

    Raises:
        ConversionError: It has no outputs that depend on its inputs.
    """
    return _Reader(exported).program()


class _Reader:
    """Maps every node of the exported graph to the call that stands for it."""

    def __init__(self, exported: Any) -> None:
        self._exported = exported
        self._user_inputs = set(exported.graph_signature.user_inputs)
        self._tensors = stored_tensors(exported)
        self._calls: dict[Any, Call] = {}
        self._order: list[Call] = []
        self._known: dict[Any, Call] = {}
        self._cancelled: set[Any] = set()
        self._cancellation = Cancellation()
        self._estimators: dict[str, str] = {}

    def program(self) -> Program:
        result = Program()
        returned: list[Any] = []
        for node in self._exported.graph.nodes:
            if node.op == "output":
                returned = [arg for arg in node.args[0] if hasattr(arg, "name")]
                continue
            self._calls[node] = call = self._read(node)
            if node.op == "placeholder" and call.op == "input":
                result.inputs.append(call)
        # Buffers that the forward function updates are returned in front of the user's outputs.
        wanted = set(self._exported.graph_signature.user_outputs)
        outputs = [self._calls[node] for node in returned if node.name in wanted]
        result.outputs = list(dict.fromkeys(outputs))
        if not result.outputs or all(call.constant for call in result.outputs):
            raise ConversionError("the network returns no tensor that depends on its input")
        result.calls, result.estimators = _live(self._order, result), self._estimators
        return result

    def _read(self, node: Any) -> Call:
        call = self._placeholder(node) if node.op == "placeholder" else self._plain(node)
        same = self._forwarded(call)
        if same is not None:
            return same
        key = call if node.op == "placeholder" else _key(call)
        if key not in self._known:
            self._known[key] = left = self._cancellation.simplified(call)
            self._order.append(call)
            if left is not call:
                self._cancelled.add(key)
        if key in self._cancelled:
            self._estimators[node.name] = self._known[key].name
        return self._known[key]

    def _placeholder(self, node: Any) -> Call:
        shape, dtype = type_of(node)
        if node.name in self._user_inputs:
            return Call(node.name, "input", None, {}, shape, dtype)
        tensor = self._tensors.get(node.name)
        return Call(node.name, "parameter", tensor, {}, shape, dtype, constant=tensor is not None)

    def _plain(self, node: Any) -> Call:
        import torch

        shape, dtype = type_of(node)
        op, target, arguments = op_name(node), node.target, self._arguments(node)
        if op == "type_as":  # which reads only its operand's type
            op, target = "to", torch.ops.aten.to.dtype
            arguments = {"self": arguments["self"], "dtype": dtype}
        call = Call(
            node.name,
            op,
            target,
            arguments,
            shape,
            dtype,
            scope_of(node),
            user_line(node),
        )
        call.constant = not is_random(node) and all(o.constant for o in call.operands())
        return call

    def _arguments(self, node: Any) -> dict[str, Any]:
        if node.target is operator.getitem:
            return {"self": self._argument(node.args[0]), "index": node.args[1]}
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            positional = {f"{index}": arg for index, arg in enumerate(node.args)}
            given = {**positional, **node.kwargs}
        else:
            names = [argument.name for argument in schema.arguments]
            defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
            given = {**defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}
        arguments = {name: self._argument(value) for name, value in given.items()}
        if op_name(node) in SHAPE_ONLY:
            like = arguments["self"]
            arguments["self"] = Call("", "empty", None, {}, like.shape, like.dtype, constant=True)
        return arguments

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._argument(item) for item in value]
        if not hasattr(value, "meta"):
            return value
        size = as_integer(value.meta.get("val"))
        return self._calls[value] if size is None else size

    def _forwarded(self, call: Call) -> Call | None:
        """The operand that a call only passes on, if it does."""
        operand = call["self"] if call["self"] is not None else call["input"]
        if not isinstance(operand, Call):
            return None
        if call.op == "getitem" and operand.op == "native_dropout" and not operand["train"]:
            return next(operand.operands())
        same = operand.dtype == call.dtype and operand.shape == call.shape
        passes = (
            call.op in FORWARDED | CASTS | RESHAPES
            or (call.op in DROPOUTS and not call["train"])
            or (call.op == "permute" and list(call["dims"]) == sorted(call["dims"]))
        )
        return operand if passes and same else None


def _key(call: Call) -> Any:
    """Equal for calls that compute the same."""

    def frozen(value: Any) -> Any:
        if isinstance(value, Call):
            return ("call", id(value))
        if isinstance(value, list | tuple):
            return tuple(frozen(item) for item in value)
        return (type(value).__name__, str(value))

    arguments = tuple((name, frozen(value)) for name, value in call.arguments.items())
    return (str(call.target), call.op, call.shape, str(call.dtype), arguments)


def _live(order: list[Call], program: Program) -> list[Call]:
    """Those of the calls that the outputs need, in their order, with ``users`` counted."""
    live = set(program.inputs)
    waiting = list(program.outputs)
    while waiting:
        call = waiting.pop()
        if call not in live:
            live.add(call)
            waiting += call.operands()
    kept = [call for call in order if call in live]
    for reader in kept:
        for operand in set(reader.operands()):
            operand.users += 1
    for call in program.outputs:
        call.users += 1
    return kept
