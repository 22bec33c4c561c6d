"""An exported PyTorch program as calls of ATen operators that are worth translating.

What changes no value is gone (detach, clone, dropout, casts to the same type), equal calls are one,
straight-through estimators have collapsed to their forward value, and what no output needs is not
listed.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, Final

from phonebit.converter.importers.torch.arrays import OnArrays, to_array
from phonebit.converter.importers.torch.calls import Call, call_key, live
from phonebit.converter.importers.torch.cancellation import Cancellation
from phonebit.converter.importers.torch.constant_work import spend_for
from phonebit.converter.importers.torch.nodes import (
    as_integer,
    is_random,
    op_name,
    scope_of,
    stored_tensors,
    type_of,
    user_line,
    user_outputs,
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
RESHAPES: Final = frozenset({"view", "reshape", "expand", "_unsafe_view", "view_as"})


@dataclass(frozen=True)
class Problem:
    """What keeps a network from being converted.

    Attributes:
        where: The name of the module or node.
        operator: What is not supported, as its author calls it.
        reason: Why, after the operator's name.
        line: The user's source line, or "".
    """

    where: str
    operator: str
    reason: str
    line: str = ""


@dataclass
class Program:
    """Live calls in execution order.

    ``outputs`` may hold a call twice; ``names`` are what the source calls them, or "" for those
    called like their modules; empty if all are. ``estimators`` says, for the exported node of a
    straight-through estimator, the node of its forward value, which stands for it. ``problems`` are
    what the reader could not express, and ``channels_last`` the tensors among inputs and outputs
    whose channels are their last axis.
    """

    calls: list[Call] = field(default_factory=list)
    inputs: list[Call] = field(default_factory=list)
    outputs: list[Call] = field(default_factory=list)
    estimators: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    channels_last: set[Call] = field(default_factory=set)
    names: list[str] = field(default_factory=list)

    def output_names(self) -> list[str]:
        """A name, or "", for each output."""
        return self.names or [""] * len(self.outputs)


def read_program(exported: Any) -> Program:
    """Reads a functional ``ExportedProgram``.

    Args:
        exported: As ``functional`` returns it.

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
        returned: list[tuple[Any, str]] = []
        for node in self._exported.graph.nodes:
            if node.op == "output":
                returned = user_outputs(self._exported, node)
                continue
            self._calls[node] = call = self._read(node)
            if node.op == "placeholder" and call.op == "input":
                result.inputs.append(call)
        result.outputs = [self._calls[node] for node, _ in returned]
        result.names = [name for _, name in returned]
        if not result.outputs or all(call.constant for call in result.outputs):
            raise ConversionError("the network returns no tensor that depends on its input")
        result.calls = live(self._order, result.inputs, result.outputs)
        result.estimators = self._estimators
        return result

    def _read(self, node: Any) -> Call:
        call = self._placeholder(node) if node.op == "placeholder" else self._plain(node)
        same = self._forwarded(call)
        if same is not None:
            return same
        key = call if node.op == "placeholder" else call_key(call)
        if key not in self._known:
            if call.constant and node.op != "placeholder":
                spend_for(call)
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
        array = None if tensor is None else to_array(tensor)
        return Call(node.name, "parameter", array, {}, shape, dtype, constant=array is not None)

    def _plain(self, node: Any) -> Call:
        import torch

        shape, dtype = type_of(node)
        op, target, arguments = op_name(node), node.target, self._arguments(node)
        if op == "type_as":  # which reads only its operand's type
            op, target = "to", torch.ops.aten.to.dtype
            arguments = {"self": arguments["self"], "dtype": getattr(torch, str(dtype))}
        if op == "expand_as":  # only its operand's shape
            op, target = "expand", torch.ops.aten.expand.default
            arguments = {"self": arguments["self"], "size": list(shape)}
        if op == "copy":  # only its operand's shape, too
            op, target = "expand", torch.ops.aten.expand.default
            arguments = {"self": arguments["src"], "size": list(shape)}
        call = Call(
            node.name,
            op,
            OnArrays(target),
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
