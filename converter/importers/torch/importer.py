"""Imports PyTorch networks: ``torch.export`` programs, checkpoints with their module, live modules.

The importer reads the exported graph of ATen operators, so that a network is recognised by what it
computes, not by how its author wrote it. PyTorch is imported only inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from phonebit.converter.importers.errors import named
from phonebit.converter.importers.torch.activations import run_exported
from phonebit.converter.importers.torch.archive import is_program, load_program
from phonebit.converter.importers.torch.checkpoint import load_module, read_parameters
from phonebit.converter.importers.torch.export import example_tensors, export_module
from phonebit.converter.importers.torch.functional import (
    decomposed,
    functional,
    in_simpler_operators,
)
from phonebit.converter.importers.torch.program import read_program
from phonebit.converter.importers.torch.translation import RULES, Translation, translate
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError, UnsupportedLayerError

Array = NDArray[Any]
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class TorchSource:
    """An exported network: its source graph, and PyTorch itself to run it.

    Attributes:
        program: The functional ``torch.export.ExportedProgram``.
        translation: Its source graph, and which of PyTorch's tensors the graph's values are.
    """

    program: Any
    translation: Translation

    @property
    def graph(self) -> Graph:
        """The source graph."""
        return self.translation.graph

    def activations(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs PyTorch operator by operator; straight-through estimators as their forward value.

        Args:
            inputs: One array (N, H, W, C) for each of the graph's inputs, by name.

        Returns:
            Arrays (N, H, W, C): the values that PyTorch computed, by the name that they have in
            ``graph``; float32, or int8 -1/+1 for BIT values. Values that PyTorch does not have as
            such, e.g. of a rearrangement that the graph needs, are missing.

        Raises:
            InputError: An input is missing or has the wrong shape.
        """
        return run_exported(self.program, self.translation, inputs)


def open_torch(
    source: PathLike | Any,
    *,
    example_input: Any = None,
    input_shape: Sequence[int] | None = None,
    model: str | None = None,
) -> TorchSource:
    """As ``import_torch``, but keeps the program, so that PyTorch can be asked for its values."""
    where = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    try:
        import torch
    except ImportError as error:
        raise ConversionError(
            "PyTorch is not installed", where=where, hint="pip install 'phonebit[torch]'"
        ) from error
    notes: list[str] = []
    with named(where):
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            name = path.stem
            exported, notes = _open_file(path, example_input, input_shape, model)
        elif isinstance(source, torch.nn.Module):
            name = type(source).__name__
            exported = export_module(source, example_tensors(example_input, input_shape))
        elif isinstance(source, torch.export.ExportedProgram):
            name, exported = "network", source
        else:
            raise ConversionError(
                "cannot be imported", expected="a path, an nn.Module or an ExportedProgram"
            )
        program, translation = _translated(functional(exported), name)
        translation.graph.notes[:0] = notes
        return TorchSource(program, translation)


def _translated(program: Any, name: str) -> tuple[Any, Translation]:
    """A functional program, perhaps in simpler operators, and its translation.

    Raises:
        UnsupportedLayerError: Simpler operators do not help; what is listed are the user's own.
    """
    try:
        return program, translate(read_program(program), name)
    except UnsupportedLayerError as error:
        simpler = in_simpler_operators(program, RULES)
        if simpler is None:
            raise
        try:
            return simpler, translate(read_program(simpler), name)
        except UnsupportedLayerError:
            raise error from None


def _open_file(
    path: Path, example_input: Any, input_shape: Sequence[int] | None, model: str | None
) -> tuple[Any, list[str]]:
    """The exported program in a file, or of the module that a file holds the parameters of."""
    if not path.is_file():
        raise ConversionError("no such file", where=str(path))
    if is_program(path):
        return decomposed(load_program(path)), []  # a file may say any shape
    if model is None:
        read_parameters(path)  # a file that holds none says so
        raise ConversionError(
            "a checkpoint holds parameters, but not the network that they belong to",
            where=str(path),
            hint="pass model='package.module:factory' (--model), a function that builds the module",
        )
    module, notes = load_module(path, model)
    return export_module(module, example_tensors(example_input, input_shape)), notes


def import_torch(
    source: PathLike | Any,
    *,
    example_input: Any = None,
    input_shape: Sequence[int] | None = None,
    model: str | None = None,
) -> Graph:
    """Imports a PyTorch network as a source graph.

    Args:
        source: Path of a ``.pt2`` file (``torch.export.save``); path of a checkpoint, together with
            ``model``; a live ``nn.Module``, with ``example_input`` or ``input_shape``; or a live
            ``ExportedProgram``.
        example_input: A tensor or array, or a tuple of them, in PyTorch's shape, batch first.
        input_shape: (N, C, H, W), instead of ``example_input`` for networks of one input.
        model: "package.module:factory", what builds the module of a checkpoint; it is imported
            (also from the current folder) and called without arguments.

    Returns:
        The source graph. Values are called like the modules that compute them, e.g.
        "layer1.0.conv1"; what a module computes on the way is called "layer1.0.conv1/sign".

    Raises:
        UnsupportedLayerError: Operators that PhoneBit cannot express; all of them are listed.
        ConversionError: The file is missing or damaged, its keys do not fit the module, the module
            cannot be exported, or PyTorch is not installed.
    """
    return open_torch(
        source, example_input=example_input, input_shape=input_shape, model=model
    ).graph
