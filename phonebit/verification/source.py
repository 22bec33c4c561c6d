"""Opening the source of a verification, and giving it what the file reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from phonebit.converter.importers.sources import (
    Framework,
    ImportOptions,
    check_source,
    framework_of,
    import_source,
)
from phonebit.converter.ir import Graph
from phonebit.errors import VerificationError
from phonebit.format.records import DataType
from phonebit.network import Network
from phonebit.verification.source_trace import Array, FrameworkName, Source

PathLike = str | os.PathLike[str]


def open_source(
    source: PathLike | Any, framework: bool, options: ImportOptions | None = None
) -> Source:
    """Import a checkpoint, and find out whether its framework can run it here.

    Args:
        source: path or live model.
        framework: whether the framework may be used.
        options: what the source leaves open, as for the conversion.

    Returns:
        The source, ready to be traced.

    Raises:
        ConversionError: if the checkpoint cannot be imported.
    """
    options = options or ImportOptions()
    check_source(source, options)
    kind = framework_of(source, options)
    if kind == "torch":
        return _open_torch(source, framework, options)
    if kind in ("onnx", "tflite"):
        return _open_graph(kind, source, framework, options)
    return _open_keras(source, framework, options)


def _open_torch(source: PathLike | Any, framework: bool, options: ImportOptions) -> Source:
    from phonebit.converter.importers.torch.importer import open_torch

    opened = open_torch(
        source,
        example_input=options.example_input,
        input_shape=options.input_shape,
        model=options.model,
    )
    activations, reason = (opened.activations, "") if framework else (None, "as asked")
    return Source(_name(source, opened.graph), opened.graph, activations, reason, "PyTorch")


def _open_graph(
    kind: Framework, source: PathLike | Any, framework: bool, options: ImportOptions
) -> Source:
    """A file that is a graph itself, which needs something else to execute it."""
    from phonebit.converter.importers.onnx.importer import open_onnx
    from phonebit.converter.importers.tflite.importer import open_tflite

    opened: Any
    origin: FrameworkName
    if kind == "onnx":
        opened, origin = open_onnx(source, input_shape=options.input_shape), "ONNX"
    else:
        opened, origin = open_tflite(source, input_shape=options.input_shape), "TensorFlow Lite"
    name = _name(source, opened.graph)
    if not framework:
        return Source(name, opened.graph, None, "as asked", origin)
    default = None
    try:
        runner = opened.runner()
        if kind == "tflite" and runner.kernels == "reference":
            default = opened.runner("default").activations
    except Exception as error:  # the executors' own exceptions derive from Exception only
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Source(name, opened.graph, None, f"the model cannot be executed: {reason}", origin)
    return Source(name, opened.graph, runner.activations, "", origin, default)


def _open_keras(source: PathLike | Any, framework: bool, options: ImportOptions) -> Source:
    graph = import_source(source, options)
    name = _name(source, graph)
    if not framework:
        return Source(name, graph, None, "as asked")
    missing = [module for module in ("tensorflow", "larq") if find_spec(module) is None]
    if missing:
        return Source(name, graph, None, f"{' and '.join(missing)} not installed")
    from phonebit.converter.importers.keras.activations import keras_activations, load_keras

    try:
        is_path = isinstance(source, str | os.PathLike)
        trust = options.trust_lambdas
        model = load_keras(source, trust_lambdas=trust) if is_path else source
    except Exception as error:  # Keras itself raises nearly anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Source(name, graph, None, f"Keras cannot load the checkpoint: {reason}")
    return Source(name, graph, lambda inputs: keras_activations(model, inputs), "")


def _name(source: PathLike | Any, graph: Graph) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else graph.name


def traced_as(source: PathLike | Any, options: ImportOptions, network: Network) -> ImportOptions:
    """Let the file say with what shape a PyTorch module is traced, where the user does not.

    Args:
        source: path or live model.
        options: what the user said.
        network: the file that was made from the source.

    Returns:
        The options, with ``input_shape`` if it is needed and the file has one input.
    """
    told = options.input_shape is not None or options.example_input is not None
    is_path = isinstance(source, str | os.PathLike)
    exported = os.fspath(source).endswith(".pt2") if is_path else hasattr(source, "graph_module")
    if told or exported or len(network.inputs) != 1 or framework_of(source, options) != "torch":
        return options
    info = network.inputs[0]
    shape = info.array_shape
    if len(shape) == 3 and not info.has_own_axes:
        shape = (shape[2], *shape[:2])
    return replace(options, input_shape=(1, *shape))


def source_inputs(graph: Graph, network: Network, batch: Mapping[str, Array]) -> dict[str, Array]:
    """What the source reads when the file reads ``batch``.

    Args:
        graph: the source graph.
        network: the file; its preprocessing says what image levels stand for.
        batch: the file's inputs by name.

    Returns:
        The same, as float values where the file reads levels and the source float values.

    Raises:
        VerificationError: if the file does not say what its levels stand for.
    """
    inputs = {}
    for name, array in batch.items():
        if array.dtype != np.uint8 or graph.types[name].dtype != DataType.F32:
            inputs[name] = array
            continue
        if name not in network.preprocessing:
            raise VerificationError(
                "it does not say which real values the levels 0..255 stand for",
                where=str(network.path),
                hint="convert the checkpoint again",
            )
        inputs[name] = network.preprocessing[name].values(array)
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
