"""Checkpoints: parameters from a file, into a module that a function of the user's builds."""

from __future__ import annotations

import importlib
import math
import sys
import zipfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.errors import first_line
from phonebit.converter.importers.torch.archive import bounded_entries, within
from phonebit.converter.importers.torch.export import quiet
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
"""Under what training scripts save the parameters, beside epochs and optimizers."""
PREFIXES: Final = ("module.", "model.", "_orig_mod.", "net.", "network.")
MAX_LISTED: Final = 8


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
    parameters = _parameters(path)
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


def _parameters(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name, common prefixes removed."""
    content = _safetensors(path) if path.suffix.lower() == ".safetensors" else _pickled(path)
    found = _unwrapped(content)
    if not found:
        raise ConversionError(
            "holds no parameters",
            where=str(path),
            expected="a state dict, perhaps under " + ", ".join(WRAPPERS),
            got=_kind(content),
        )
    return found


def _pickled(path: Path) -> Any:
    import torch

    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                bounded_entries(archive, path)
        with quiet():
            return torch.load(path, map_location="cpu", weights_only=True)
    except ConversionError as error:
        raise within(path, error) from error
    except OSError as error:
        raise ConversionError(
            f"cannot be read: {error.strerror or error}", where=str(path)
        ) from error
    except Exception as error:  # damaged archives raise whatever their bytes lead to
        raise ConversionError(
            f"is damaged, or holds other objects than tensors ({type(error).__name__})",
            where=str(path),
            hint="pickled modules and TorchScript are code, which is never run: save "
            "module.state_dict(), or torch.export.save() the program as .pt2",
        ) from error


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


def _unwrapped(content: Any) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        return {}
    tensors = {str(key): value for key, value in content.items() if hasattr(value, "numel")}
    for key in WRAPPERS:
        inner = _unwrapped(content.get(key))
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
            if tensor.numel() != math.prod(shape):
                problems.append(f"{name}: shape {tuple(tensor.shape)} in the file, {shape} needed")
                continue
            notes.append(f"{name}: {tuple(tensor.shape)} in the file, read as {shape}")
        fitting[name] = tensor.reshape(shape)
    if problems:
        raise ConversionError(
            problems,
            where=str(path),
            hint="the factory must build the very network that the file was saved from",
        )
    module.load_state_dict(fitting, strict=False)
    return notes


def _listed(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
    return [f"{len(names)} parameters {what}: {shown}"]


def _kind(content: Any) -> str:
    if isinstance(content, Mapping):
        return "a dict with " + ", ".join(map(str, list(content)[:MAX_LISTED]))
    return type(content).__name__
