"""Imports ONNX networks, those with QONNX's quantizers among them.

Nodes become calls of ATen operators, which the importer of PyTorch translates by what they compute:
so quantizers, layouts and layers are recognised by the same rules. The package onnx is imported
only inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from phonebit.converter.importers.errors import named
from phonebit.converter.importers.onnx.execution import OnnxRunner
from phonebit.converter.importers.onnx.files import check_model, load_model
from phonebit.converter.importers.onnx.node_reader import Reading
from phonebit.converter.importers.onnx.reader import read_model
from phonebit.converter.importers.onnx.thresholds import multi_threshold
from phonebit.converter.importers.torch.translation import RULES, Translation, translate
from phonebit.converter.ir import Graph

PathLike = str | os.PathLike[str]
ONNX_RULES: Final = {**RULES, "multi_threshold": multi_threshold}


@dataclass(frozen=True)
class OnnxSource:
    """A model: its source graph, and the model itself to run it.

    Attributes:
        model: The ``ModelProto``.
        folder: Where its external data lies, or None.
        translation: Its source graph, and which of the model's tensors the graph's values are.
    """

    model: Any
    folder: Path | None
    translation: Translation

    @property
    def graph(self) -> Graph:
        """The source graph."""
        return self.translation.graph

    def runner(self) -> OnnxRunner:
        """What executes the model."""
        return OnnxRunner(self.model, self.folder, self.translation)


def open_onnx(source: PathLike | Any, *, input_shape: Sequence[int] | None = None) -> OnnxSource:
    """As ``import_onnx``, but keeps the model, so that its values can be computed."""
    is_path = isinstance(source, str | os.PathLike)
    where = str(source) if is_path else type(source).__name__
    name = Path(source).stem if is_path else _graph_name(source)
    with named(where, name):
        if is_path:
            path = Path(source)
            model, folder = load_model(path), path.parent
        else:
            model, folder = check_model(source), None
        reading = read_model(model, folder, input_shape)
        return OnnxSource(model, folder, translated(reading, name))


def translated(reading: Reading, name: str) -> Translation:
    """The source graph of a program that was read from nodes."""
    translation = translate(reading.program, name, ONNX_RULES)
    translation.graph.notes[:0] = reading.notes
    return translation


def _graph_name(model: Any) -> str:
    return str(model.graph.name) or "network"


def import_onnx(source: PathLike | Any, *, input_shape: Sequence[int] | None = None) -> Graph:
    """Imports an ONNX model as a source graph.

    Args:
        source: Path of an ``.onnx`` file, or a ``ModelProto``.
        input_shape: Of its only input, for models that leave more of it open than the batch.

    Returns:
        The source graph.

    Raises:
        UnsupportedLayerError: Operators that PhoneBit cannot express; all of them are listed.
        ConversionError: The file is missing or damaged, or the package onnx is not installed.
    """
    return open_onnx(source, input_shape=input_shape).graph
