"""Which importer reads a trained network: Keras's, PyTorch's, ONNX's or TensorFlow Lite's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from phonebit.converter.importers.hdf5 import is_hdf5
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError
from phonebit.missing_files import missing_file

Framework = Literal["keras", "torch", "onnx", "tflite"]

KERAS_SUFFIXES: Final = (".h5", ".hdf5", ".keras")
TORCH_SUFFIXES: Final = (
    ".pt2",
    ".pth",
    ".pt",
    ".th",
    ".ckpt",
    ".bin",
    ".tar",
    ".safetensors",
)
ONNX_SUFFIXES: Final = (".onnx",)
TFLITE_SUFFIXES: Final = (".tflite",)
ROADS: Final = {
    ".pb": "TensorFlow graphs cannot be read: save the Keras model as .keras, or export it with "
    "tf2onnx",
    ".mlmodel": "Core ML models cannot be read: convert the network that it was made of",
    ".mlpackage": "Core ML models cannot be read: convert the network that it was made of",
    ".ort": "ONNX Runtime's own format cannot be read: give the .onnx file",
}
"""What to do about files of other kinds."""


@dataclass(frozen=True)
class ImportOptions:
    """What importers may need to know besides the source itself.

    Attributes:
        input_shape: Keras: (height, width, channels), for models that leave them open. PyTorch:
            (N, channels, height, width) of the input that the module is traced with. ONNX: of the
            input, in the model's own order, for models that leave it open. TensorFlow Lite: the
            file's own.
        model: PyTorch checkpoints: "package.module:factory", a function that builds the module
            whose parameters the file holds.
        example_input: PyTorch modules: a tensor, or a tuple of them, to trace with.
        custom_quantizers: Keras: what quantizers of your own compute, by their saved name.
        custom_layers: Keras: functions that express layers of your own, see keras/plugin.py.
        trust_lambdas: Keras files: run the Python code that their Lambda layers hold.
    """

    input_shape: Sequence[int] | None = None
    model: str | None = None
    example_input: Any = None
    custom_quantizers: Mapping[str, str] | None = None
    custom_layers: Mapping[str, Any] | None = None
    trust_lambdas: bool = False


def framework_of(source: str | os.PathLike[str] | Any, options: ImportOptions) -> Framework:
    """The framework that a path or a live object belongs to.

    Raises:
        ConversionError: It belongs to none that PhoneBit knows.
    """
    if isinstance(source, str | os.PathLike):
        return _framework_of_file(Path(source), options)
    if hasattr(source, "get_config") and hasattr(source, "layers"):
        return "keras"
    if hasattr(source, "state_dict") and (
        hasattr(source, "forward") or hasattr(source, "graph_module")
    ):
        return "torch"
    if hasattr(source, "SerializeToString") and hasattr(source, "opset_import"):
        return "onnx"
    raise ConversionError(
        "cannot be imported",
        got=type(source).__name__,
        expected="a path, a Keras model, a torch.nn.Module, a torch.export.ExportedProgram or an "
        "onnx.ModelProto",
    )


def _framework_of_file(path: Path, options: ImportOptions) -> Framework:
    suffix = path.suffix.lower()
    if options.model is not None or suffix in TORCH_SUFFIXES:
        return "torch"
    if suffix in KERAS_SUFFIXES or is_hdf5(path):
        return "keras"
    if suffix in ONNX_SUFFIXES:
        return "onnx"
    if suffix in TFLITE_SUFFIXES:
        return "tflite"
    if path.is_dir() and (path / "saved_model.pb").exists():
        suffix = ".pb"
    if suffix in ROADS:
        raise ConversionError(ROADS[suffix], where=str(path))
    kinds = {
        "Keras": KERAS_SUFFIXES,
        "PyTorch": TORCH_SUFFIXES,
        "ONNX": ONNX_SUFFIXES,
        "TensorFlow Lite": TFLITE_SUFFIXES,
    }
    raise ConversionError(
        "unknown kind of file",
        where=str(path),
        expected="; ".join(f"{name}: {', '.join(suffixes)}" for name, suffixes in kinds.items()),
        got=suffix or "no suffix",
    )


def check_source(source: str | os.PathLike[str] | Any, options: ImportOptions) -> None:
    """Names all that is missing at once, before a framework is loaded, which takes seconds.

    Raises:
        ConversionError: There is no such file, or it needs options that are not given.
    """
    if not isinstance(source, str | os.PathLike):
        return
    path = Path(source)
    if not path.exists():
        raise missing_file(path, ConversionError)
    if missing := missing_options(path, options):
        raise ConversionError(missing, where=str(path))


def missing_options(path: Path, options: ImportOptions) -> list[str]:
    """What the importer of an existing file needs to be told, one sentence each.

    Raises:
        ConversionError: No option would help.
    """
    from phonebit.converter.importers.torch.archive import is_program
    from phonebit.converter.importers.torch.pickled import refuse_torchscript

    if framework_of(path, options) != "torch" or is_program(path):
        return []
    refuse_torchscript(path)
    missing = []
    if options.model is None:
        missing.append(
            "a checkpoint holds parameters, not the network that they belong to: pass "
            "model='package.module:factory' (--model), a function that builds the module"
        )
    if options.input_shape is None and options.example_input is None:
        missing.append(
            "a PyTorch module does not know the shape of its input: pass input_shape=(N, C, H, W) "
            "(--input-shape 1,3,224,224)"
        )
    return missing


def import_source(source: str | os.PathLike[str] | Any, options: ImportOptions) -> Graph:
    """Imports a trained network as a source graph.

    Args:
        source: Path of a Keras, PyTorch, ONNX or TensorFlow Lite file, or a live model of one of
            the first three.
        options: What the source leaves open.

    Raises:
        UnsupportedLayerError: What PhoneBit does not know, all of it listed.
        ConversionError: The source cannot be read, or needs an option that is missing.
    """
    check_source(source, options)
    framework = framework_of(source, options)
    if framework == "onnx":
        from phonebit.converter.importers.onnx.importer import import_onnx

        return import_onnx(source, input_shape=options.input_shape)
    if framework == "tflite":
        from phonebit.converter.importers.tflite.importer import import_tflite

        return import_tflite(source, input_shape=options.input_shape)
    if framework == "torch":
        from phonebit.converter.importers.torch.importer import import_torch

        return import_torch(
            source,
            example_input=options.example_input,
            input_shape=options.input_shape,
            model=options.model,
        )
    from phonebit.converter.importers.keras.importer import import_larq

    return import_larq(
        source,
        input_shape=options.input_shape,
        custom_quantizers=options.custom_quantizers,
        custom_layers=options.custom_layers,
        trust_lambdas=options.trust_lambdas,
    )
