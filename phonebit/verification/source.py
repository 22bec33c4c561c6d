"""Opening the source of a verification, and giving it what the file reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from phonebit.converter.importers.larq import import_larq
from phonebit.converter.ir import Graph
from phonebit.errors import VerificationError
from phonebit.format.records import DataType
from phonebit.network import Network
from phonebit.verification.source_trace import Array, Source


def open_source(source: str | os.PathLike[str] | Any, framework: bool) -> Source:
    """Import a checkpoint, and find out whether its framework can run it here.

    Args:
        source: path or live model.
        framework: whether the framework may be used.

    Returns:
        The source, ready to be traced.

    Raises:
        ConversionError: if the checkpoint cannot be imported.
    """
    graph = import_larq(source)
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else graph.name
    if not framework:
        return Source(name, graph, None, "as asked")
    missing = [module for module in ("tensorflow", "larq") if find_spec(module) is None]
    if missing:
        return Source(name, graph, None, f"{' and '.join(missing)} not installed")
    from phonebit.converter.importers.keras_activations import keras_activations, load_keras

    is_path = isinstance(source, str | os.PathLike)
    try:
        model = load_keras(source) if is_path else source
    except Exception as error:  # Keras itself raises nearly anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Source(name, graph, None, f"Keras cannot load the checkpoint: {reason}")
    return Source(name, graph, lambda inputs: keras_activations(model, inputs), "")


def source_inputs(graph: Graph, network: Network, batch: Mapping[str, Array]) -> dict[str, Array]:
    """What the source reads when the file reads ``batch``.

    Args:
        graph: the source graph.
        network: the file; its metadata say what picture levels stand for.
        batch: the file's inputs by name.

    Returns:
        The same, as real values where the file reads levels and the source real values.

    Raises:
        VerificationError: if the file does not say what its levels stand for.
    """
    inputs = {}
    for name, array in batch.items():
        if array.dtype != np.uint8 or graph.types[name].dtype != DataType.F32:
            inputs[name] = array
            continue
        if network.level_meaning is None:
            raise VerificationError(
                "its metadata do not say which real values the levels 0..255 stand for",
                where=str(network.path),
                hint="convert the checkpoint again",
            )
        scale, offset = map(np.float32, network.level_meaning)
        inputs[name] = array.astype(np.float32) * scale + offset
    return inputs


def check_belonging(source: Source, network: Network) -> None:
    """Refuse to compare networks that have nothing in common.

    Raises:
        VerificationError: if inputs or outputs differ in name or shape.
    """
    for direction, names in (("inputs", source.graph.inputs), ("outputs", source.graph.outputs)):
        theirs = {name: source.graph.types[name].shape for name in names}
        ours = {info.name: info.shape for info in getattr(network, direction)}
        if theirs != ours:
            raise VerificationError(
                f"its {direction} are not those of {source.name}",
                where=str(network.path),
                expected=theirs,
                got=ours,
                hint="give the checkpoint that the file was converted from",
            )
