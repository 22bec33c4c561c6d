"""What an exported program says about its nodes and its parameters."""

from __future__ import annotations

import operator
from typing import Any, Final

NOT_THE_USERS: Final = ("packages/torch/", "torch/tracing.py", "torch/export.py")
"""In the paths of files that are no part of the user's code."""


def stored_tensors(exported: Any) -> dict[str, Any]:
    """Parameters, buffers and constants by the names of the nodes that stand for them."""
    signature = exported.graph_signature
    tensors = {**exported.constants, **exported.state_dict}
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    return {node: tensors[name] for node, name in names.items() if name in tensors}


def type_of(node: Any) -> tuple[tuple[int, ...], str | None]:
    """Shape and element type of a node's (first) tensor; () and None if it has none."""
    value = node.meta.get("val")
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return (), None
    return tuple(as_integer(size) or 0 for size in value.shape), name_of(value.dtype)


def name_of(dtype: Any) -> str:
    """The name of a torch.dtype, without PyTorch's."""
    return str(dtype).removeprefix("torch.")


def as_integer(value: Any) -> int | None:
    """An int as it is, a symbolic size as the one of the example input, else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    hint = getattr(getattr(value, "node", None), "hint", None)
    return hint if isinstance(hint, int) else None


def is_random(node: Any) -> bool:
    """Whether an operator gives other results each time."""
    tags = getattr(node.target, "tags", [])
    return any(getattr(tag, "name", "") == "nondeterministic_seeded" for tag in tags)


def op_name(node: Any) -> str:
    """An operator's name without its overload."""
    if node.target is operator.getitem:
        return "getitem"
    packet = getattr(node.target, "overloadpacket", None)
    name = str(getattr(packet, "__name__", None) or getattr(node.target, "__name__", node.target))
    if getattr(node.target, "_overloadname", "") == "other":  # of two tensors, not along an axis
        return {"max": "maximum", "min": "minimum"}.get(name, name)
    return name


def scope_of(node: Any) -> tuple[str, str]:
    """Key and path of the innermost module around a node."""
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ("", "")
    key, (path, _) = list(stack.items())[-1]
    return (str(key), str(path))


def user_outputs(exported: Any, output: Any) -> list[tuple[Any, str]]:
    """The nodes that the user's function returns, and their keys if it returns a dict, else "".

    Args:
        exported: The program. Buffers that the function updates are returned in front of its own.
        output: The graph's output node.
    """
    specs = exported.graph_signature.output_specs
    own = [
        node
        for node, spec in zip(output.args[0], specs, strict=True)
        if spec.kind.name == "USER_OUTPUT"
    ]
    keys = _keys(exported.call_spec.out_spec, len(own))
    return [(node, key) for node, key in zip(own, keys, strict=True) if hasattr(node, "name")]


def _keys(spec: Any, count: int) -> list[str]:
    """Of the leaves of what a function returns, where it is a dict; names alone, else ""."""
    from torch.utils import _pytree as pytree

    try:
        tree = pytree.tree_unflatten(list(range(count)), spec)
        paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    except Exception:  # a class of the user's that this process does not know
        return [""] * count
    is_mapping = len(paths) == count and all(path and hasattr(path[0], "key") for path in paths)
    names = [".".join(str(getattr(e, "key", getattr(e, "idx", e))) for e in path) for path in paths]
    return [name if name.isprintable() else "" for name in names] if is_mapping else [""] * count


def user_line(node: Any) -> str:
    """Where the user's own code made the call: the innermost frame outside PyTorch."""
    frames = [text.strip() for text in (node.meta.get("stack_trace") or "").split("File ")]
    own = [frame for frame in frames if frame and not any(part in frame for part in NOT_THE_USERS)]
    if not own:
        return ""
    place, _, code = own[-1].partition("\n")
    parts = place.replace('"', "").split(", ")
    line = parts[1].removeprefix("line ") if len(parts) > 1 else ""
    file = parts[0].replace("\\", "/").rsplit("/", 1)[-1]
    return f"{file}:{line}: {code.strip().splitlines()[0] if code.strip() else ''}"
