"""Imports TensorFlow Lite networks, those with Larq Compute Engine's operators among them.

Operators become ONNX's, those become calls of ATen operators, and the rules of both are shared. The
package tflite is imported only inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phonebit.converter.importers.errors import named
from phonebit.converter.importers.onnx.importer import translated
from phonebit.converter.importers.tflite.execution import Kernels, TFLiteRunner
from phonebit.converter.importers.tflite.files import Model, load_model
from phonebit.converter.importers.tflite.reader import read_model
from phonebit.converter.importers.torch.program import Program
from phonebit.converter.importers.torch.translation import Translation
from phonebit.converter.ir import Graph


@dataclass(frozen=True)
class TFLiteSource:
    """A file: its source graph, and what is needed to run it.

    Attributes:
        content: Its bytes.
        model: The same as tables.
        program: Its calls.
        translation: Its source graph, and which of the program's calls the graph's values are.
    """

    content: bytes
    model: Model
    program: Program
    translation: Translation

    @property
    def graph(self) -> Graph:
        """The source graph."""
        return self.translation.graph

    def runner(self, kernels: Kernels = "reference") -> TFLiteRunner:
        """What executes the file."""
        return TFLiteRunner(self.content, self.model, self.program, self.translation, kernels)


def open_tflite(
    source: str | os.PathLike[str], *, input_shape: Sequence[int] | None = None
) -> TFLiteSource:
    """As ``import_tflite``, but keeps the file, so that its values can be computed."""
    path = Path(source)
    with named(str(source), path.stem):
        model, content = load_model(path)
        reading = read_model(model, input_shape)
        translation = translated(reading, path.stem)
        return TFLiteSource(content, model, reading.program, translation)


def import_tflite(
    source: str | os.PathLike[str], *, input_shape: Sequence[int] | None = None
) -> Graph:
    """Imports a TensorFlow Lite file as a source graph.

    Args:
        source: Path of a ``.tflite`` file.
        input_shape: Of its only input; it must be the file's own.

    Returns:
        The source graph.

    Raises:
        UnsupportedLayerError: Operators that PhoneBit cannot express; all of them are listed.
        ConversionError: The file is missing or damaged, or the package tflite is not installed.
    """
    return open_tflite(source, input_shape=input_shape).graph
