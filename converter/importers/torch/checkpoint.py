"""Checkpoints: parameters from a file, into a module that a function of the user's builds."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.errors import first_line
from phonebit.converter.importers.torch.pickled import STATE_DICT, class_of, pickled
from phonebit.errors import ConversionError

WRAPPERS: Final = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "net",
    "network",
    "module",
    "weights",
    "params",
)
"""Under what training scripts save the parameters, besides epochs and optimizers."""
PREFIXES: Final = ("module.", "model.", "_orig_mod.", "net.", "network.")
MAX_LISTED: Final = 8
MAX_NESTED: Final = 8
"""Wrappers inside of one another."""


def load_module(path: Path, factory: str) -> tuple[Any, list[str]]:
    """Builds a module and loads a checkpoint into it.

    Args:
        path: The checkpoint; nothing in it is executed.
        factory: "package.module:function"; the function is called without arguments.

    Returns:
        The module, and notes on what was adapted.

    Raises:
        ConversionError: The file holds no parameters, they do not fit the module, or the module
            cannot be built.
    """
    parameters = read_parameters(path)
    module = build_module(factory)
    notes = _load(module, parameters, path)
    return module, notes


def build_module(factory: str) -> Any:
    """Calls "package.module:function".

    Raises:
        ConversionError: There is no such function, it fails, or returns no ``nn.Module``.
    """
    import torch

    module_name, colon, attribute = factory.partition(":")
    if not (module_name and colon and attribute):
        raise ConversionError("model", expected="package.module:factory", got=repr(factory))
    with _current_folder():
        try:
            function: Any = importlib.import_module(module_name)
            for part in attribute.split("."):
                function = getattr(function, part)
            module = function if isinstance(function, torch.nn.Module) else function()
        except Exception as error:  # the user's code: any exception may escape
            raise ConversionError(
                f"the module cannot be built: {first_line(error)}",
                where=factory,
                hint="it is imported from the current folder and the installed packages, and "
                "called without arguments",
            ) from error
    if not isinstance(module, torch.nn.Module):
        got = type(module).__name__
        raise ConversionError("no module", where=factory, expected="a torch.nn.Module", got=got)
    return module


@contextmanager
def _current_folder() -> Any:
    """Imports find modules in the current folder, too."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)


def read_parameters(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name.

    Raises:
        ConversionError: The file cannot be read as data, or holds no parameters.
    """
    content = _safetensors(path) if path.suffix.lower() == ".safetensors" else pickled(path)
    found = parameters_of(content)
    if not found:
        raise ConversionError(
            "holds no parameters",
            where=str(path),
            expected="a state dict, perhaps under " + ", ".join(WRAPPERS),
            got=_kind(content),
            hint=STATE_DICT,
        )
    return found


def _safetensors(path: Path) -> Any:
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise ConversionError(
            "safetensors is not installed", where=str(path), hint="pip install safetensors"
        ) from error
    try:
        return load_file(path)
    except Exception as error:  # its own exceptions derive from Exception only
        raise ConversionError(f"cannot be read: {first_line(error)}", where=str(path)) from error


def parameters_of(content: Any, depth: int = 0, seen: set[int] | None = None) -> dict[str, Any]:
    """The parameters in nested dicts; each is looked at once, since a pickle may have cycles."""
    seen = set() if seen is None else seen
    if not isinstance(content, Mapping) or id(content) in seen or depth > MAX_NESTED:
        return {}
    seen.add(id(content))
    tensors = {str(key): value for key, value in content.items() if hasattr(value, "numel")}
    for key in WRAPPERS:
        inner = parameters_of(content.get(key), depth + 1, seen)
        if len(inner) > len(tensors):
            return inner
    return tensors


def _without_prefixes(names: dict[str, Any], wanted: set[str]) -> dict[str, Any]:
    """Removes prefixes that all names have, until the names are those of the module."""
    while names and not wanted & set(names):
        prefix = next((p for p in PREFIXES if all(name.startswith(p) for name in names)), None)
        if prefix is None:
            break
        names = {name.removeprefix(prefix): value for name, value in names.items()}
    return names


def _load(module: Any, parameters: dict[str, Any], path: Path) -> list[str]:
    own = module.state_dict()
    given = _without_prefixes(parameters, set(own))
    # Old checkpoints lack these counters, which inference does not read.
    optional = {name for name in own if name.endswith("num_batches_tracked")}
    problems = _listed("missing from the file", sorted(set(own) - set(given) - optional))
    problems += _listed("not in the module", sorted(set(given) - set(own) - optional))
    notes = []
    fitting = {}
    for name in own.keys() & given.keys():
        tensor, shape = given[name], tuple(own[name].shape)
        if tuple(tensor.shape) != shape:
            if not _same_order(tuple(tensor.shape), shape):
                problems.append(_unlike(name, tuple(tensor.shape), shape))
                continue
            notes.append(f"{name}: {tuple(tensor.shape)} in the file, read as {shape}")
        fitting[name] = tensor.reshape(shape)
    if problems:
        raise ConversionError(
            problems,
            where=str(path),
            hint="the factory must build the very network that the file was saved from, and the "
            "file must hold its tensors as module.state_dict() has them",
        )
    module.load_state_dict(fitting, strict=False)
    return notes


def _same_order(given: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    """Whether elements in the file's order are in the module's: it is flat, or has the same axes.

    Axes of size 1 do not count.
    """
    axes = [[size for size in shape if size != 1] for shape in (given, needed)]
    return math.prod(given) == math.prod(needed) and (len(axes[0]) <= 1 or axes[0] == axes[1])


def _unlike(name: str, given: tuple[int, ...], needed: tuple[int, ...]) -> str:
    text = f"{name}: shape {given} in the file, {needed} needed"
    if sorted(given) == sorted(needed):
        text += "; its axes have another order: save it with .permute() or .t() in the module's"
    elif math.prod(given) == math.prod(needed):
        text += "; as many elements, but which is which is not known: save it in that shape"
    return text


def _listed(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
    return [f"{len(names)} parameters {what}: {shown}"]


def _kind(content: Any) -> str:
    if class_of(content):
        return f"an object of {class_of(content)}"
    if isinstance(content, Mapping):
        return "a dict with " + ", ".join(map(str, list(content)[:MAX_LISTED]))
    return type(content).__name__
