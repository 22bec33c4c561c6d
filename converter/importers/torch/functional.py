"""Exported programs in functional form: no operator writes to its operands.

PyTorch's way there, ``run_decompositions``, traces the program again, which takes longer than the
export. Most networks need no tracing: they write nothing, or overwrite only what nothing reads
afterwards ("x += y", ReLU in place), where an operator with a result of its own does the same.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Collection
from typing import Any, Final

from phonebit.converter.importers.errors import first_line, interruptible
from phonebit.converter.importers.torch.calls import FLOATS
from phonebit.converter.importers.torch.export import quiet
from phonebit.converter.importers.torch.nodes import op_name, type_of
from phonebit.converter.ops.epilogue import FUNCTIONS
from phonebit.errors import ConversionError

ELEMENT_BY_ELEMENT: Final = frozenset(
    {name for name, function in FUNCTIONS["torch"].items() if function.has_inplace}
    | {"add", "sub", "mul", "div", "neg", "abs", "clamp", "clamp_min", "clamp_max"}
    | {"relu", "relu6", "leaky_relu", "hardtanh", "celu", "silu", "hardsigmoid", "hardswish"}
)
"""Operators whose form in place ("add_") differs in nothing else, if all its tensors are floats."""
IN_PLACE: Final = frozenset(f"{name}_" for name in (*ELEMENT_BY_ELEMENT, "detach"))
NEW: Final = ELEMENT_BY_ELEMENT | frozenset(
    {"conv1d", "conv2d", "conv3d", "linear", "batch_norm", "max_pool2d", "avg_pool2d", "cat"}
    | {"clone", "lift_fresh_copy"}
)
"""Operators whose result shares no memory with their operands."""
VIEWS: Final = frozenset(
    {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as"}
    | {"permute", "transpose", "t", "movedim", "slice", "select", "narrow"}
    | {"split", "split_with_sizes", "chunk", "unbind"}
    | {"detach", "alias", "contiguous", "to"}
)
"""Operators whose result may share memory, as the importer reads them."""
TRAINING: Final = {"batch_norm": "training", "dropout": "train"}
"""Arguments with which operators write, or draw numbers."""


def functional(exported: Any) -> Any:
    """The same program without operators that write to their operands.

    Raises:
        ConversionError: PyTorch cannot rewrite it.
    """
    return _without_writes(exported) or decomposed(exported)


def decomposed(exported: Any) -> Any:
    """``functional`` by PyTorch, which computes every shape again instead of believing it.

    Raises:
        ConversionError: PyTorch cannot rewrite it.
    """
    import torch

    from phonebit.converter.importers.torch.decompositions import quantizers

    if exported.dialect == "ATEN":  # what run_decompositions() gives; again would take as long
        return exported
    with torch.no_grad(), quiet():
        try:
            return exported.run_decompositions(quantizers())
        except Exception as error:  # a compiler: any exception may escape
            raise ConversionError(
                f"PyTorch cannot make the program functional: {first_line(error)}",
                hint="export it with the same version of PyTorch",
            ) from error


def in_simpler_operators(exported: Any, known: Collection[str]) -> Any:
    """The same program with simpler operators in place of those that have no rule.

    What they are is PyTorch's own definition, or ours (``decompositions``).

    Args:
        exported: A functional program.
        known: Names of the operators that have one.

    Returns:
        None if none of the others is defined by simpler ones.
    """
    import torch

    from phonebit.converter.importers.torch.decompositions import definitions

    table = {**torch.export.default_decompositions(), **definitions()}
    unknown = {op: rule for op, rule in table.items() if _plain_name(op) not in known}
    if not any(node.target in unknown for node in exported.graph.nodes):
        return None
    with torch.no_grad(), quiet():
        try:
            with interruptible():
                return exported.run_decompositions(unknown)
        except Exception:  # a compiler: any exception may escape, and the first error says enough
            return None


def _plain_name(op: Any) -> str:
    return str(op._schema.name).rpartition(":")[2]


def _without_writes(exported: Any) -> Any:
    """A program that needs no tracing to become functional; None for any other."""
    import torch

    if not all(_is_known(node) for node in exported.graph.nodes):
        return None
    if not any(_writes(node) for node in exported.graph.nodes):
        return exported
    graph = _copied(exported.graph)
    if not _replace_writes(graph):
        return None
    return torch.export.ExportedProgram(  # which checks that no operator writes
        {},
        graph,
        exported.graph_signature,
        exported.state_dict,
        exported.range_constraints,
        exported.module_call_graph,
        exported.example_inputs,
        exported.constants,
    )


def _copied(graph: Any) -> Any:
    """A copy whose nodes have the same names, by which the signature knows them.

    PyTorch's copy renames nodes that are called as a builtin of Python or not in ASCII, as the
    arguments of a forward function may be.
    """
    copied = copy.deepcopy(graph)
    for node, original in zip(copied.nodes, graph.nodes, strict=True):
        node.name = original.name
    return copied


def _is_known(node: Any) -> bool:
    """Whether the importer reads an operator, or its form that does not write, as it is."""
    if node.op != "call_function":
        return node.op in ("placeholder", "output")
    if node.target is operator.getitem:
        return True
    if getattr(node.target, "namespace", "") != "aten":
        return False
    name, schema = op_name(node), node.target._schema
    if name in TRAINING:
        names = [argument.name for argument in schema.arguments]
        return not {**dict(zip(names, node.args, strict=False)), **node.kwargs}[TRAINING[name]]
    if schema.is_mutable:
        return name in IN_PLACE
    if any(tag.name == "maybe_aliasing_or_mutating" for tag in node.target.tags):
        return False
    return name in VIEWS or all(argument.alias_info is None for argument in schema.arguments)


def _writes(node: Any) -> bool:
    return node.op == "call_function" and op_name(node) in IN_PLACE


def _replace_writes(graph: Any) -> bool:
    """Replaces operators in place by those with a result of their own.

    Returns:
        Whether that changes no value: nothing reads what was overwritten, or a view of it, later.
    """
    import torch

    place = {node: number for number, node in enumerate(graph.nodes)}
    shared: dict[Any, set[Any]] = {}  # with each node those that may share memory with it
    for node in graph.nodes:
        if _writes(node):
            written = node.args[0]
            later = {
                other: [user for user in other.users if place[user] > place[node]]
                for other in shared[written]
            }
            replaced = later.pop(written)
            outside = any(other.op == "placeholder" for other in shared[written])
            if outside or any(later.values()) or not _is_uniform(node):
                return False
            for user in replaced:
                user.replace_input_with(written, node)
            twin = getattr(torch.ops.aten, op_name(node).removesuffix("_"))
            node.target = getattr(twin, node.target._overloadname)
        name = op_name(node)
        operands = [] if name in NEW else node.all_input_nodes[: 1 if name in VIEWS else None]
        group = {node}.union(*(shared[operand] for operand in operands))
        shared.update(dict.fromkeys(group, group))
    return True


def _is_uniform(node: Any) -> bool:
    """Whether all tensors are floats of one type, which the result then has in either form."""
    types = {type_of(operand)[1] for operand in node.all_input_nodes}
    return op_name(node) == "detach_" or (len(types) == 1 and types <= FLOATS)
