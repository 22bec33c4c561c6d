"""``phonebit.onnxruntime.session``. ONNX Runtime and onnx are imported only inside functions."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from phonebit.acceleration_report import AccelerationReport
from phonebit.converter.importers.errors import named
from phonebit.errors import ConversionError, PhoneBitWarning
from phonebit.plugins import check_threads, check_version, library

if TYPE_CHECKING:
    from phonebit.converter.passes.decide_zeros import Zeros

PathLike = str | os.PathLike[str]
OLDEST: Final = (1, 23)
"""ONNX Runtime whose interface the provider uses."""
ERRORS: Final = 3
"""Of messages: else it warns where not all nodes are one provider's."""
_registering = threading.Lock()


def session(
    model: PathLike | Any, *, threads: int = 0, zeros: Zeros = "auto", options: Any = None
) -> Any:
    """Make an ONNX Runtime session whose binary parts run on PhoneBit, on the CPU.

    The whole model where it converts; else the largest runs of its nodes that do and have a binary
    layer, and the rest in ONNX Runtime. Integer layers give the CPU provider's results bit for
    bit, float layers within rounding.

    Args:
        model: Path of an ``.onnx`` file, as exported or of ``compile_model``; or a ``ModelProto``.
        threads: Of PhoneBit and, without ``options``, of ONNX Runtime; 0: one for each processor.
        zeros: As in ``phonebit.convert``.
        options: ``onnxruntime.SessionOptions``; PhoneBit's provider is added to them.

    Returns:
        An ``onnxruntime.InferenceSession`` with a ``report``. Without a part that can run on
        PhoneBit it is one of the CPU provider, with a ``PhoneBitWarning`` that says why. Calls
        from several threads run side by side.

    Raises:
        ConversionError: ONNX Runtime or onnx is absent or too old, or the file no ONNX model.
        DeviceError: The provider is not part of this installation.
        InputError: ``threads`` is out of range.
        VerificationError: The converter changed a result: a bug in PhoneBit.
    """
    onnxruntime = _onnxruntime()
    check_threads(threads)
    compiled, report = _compiled(model, zeros)
    if options is None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = ERRORS
    if report is not None and not report.parts:
        text = f"no part of the model runs on PhoneBit\n{report}"
        warnings.warn(text, PhoneBitWarning, stacklevel=2)
        path = _path(model)
        given = compiled.SerializeToString() if path is None else str(path)
        made = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    else:
        options.add_provider_for_devices(_devices(onnxruntime), {"threads": str(threads)})
        made = onnxruntime.InferenceSession(compiled.SerializeToString(), options)
    made.report = report
    return made


def compile_model(
    model: PathLike | Any, output_path: PathLike, *, zeros: Zeros = "auto"
) -> AccelerationReport:
    """Write an ONNX file whose binary parts are ``.pbit`` files, for any program's ONNX Runtime.

    A program that has registered ``library()`` loads it without Python and without conversion.

    Args:
        model: Path of an ``.onnx`` file, or a ``ModelProto``.
        output_path: Where to write; an existing ONNX file is replaced when the new one is complete.
        zeros: As in ``phonebit.convert``.

    Returns:
        What runs on PhoneBit, and what does not and why.

    Raises:
        ConversionError: No part of it runs on PhoneBit, or the file is no ONNX model.
        InputError: The output path is the source, a folder, or a file of another kind.
        VerificationError: The converter changed a result: a bug in PhoneBit.
    """
    from phonebit.converter.importers.onnx.files import ONNX_FILE
    from phonebit.output_files import check_output, write_output

    path = _path(model)
    sources = [] if path is None else [path]
    check_output(output_path, ONNX_FILE, sources)
    compiled, report = _compiled(model, zeros)
    if report is None:
        raise ConversionError("is compiled already", where=_name(model))
    if not report.parts:
        raise ConversionError(
            f"no part of the model runs on PhoneBit\n{report}", where=_name(model)
        )
    write_output(output_path, compiled.SerializeToString(), ONNX_FILE, sources)
    return report


def _compiled(source: PathLike | Any, zeros: Zeros) -> tuple[Any, AccelerationReport | None]:
    """The model with a node for each part; without a report if it is compiled already."""
    from phonebit.converter.importers.onnx.files import check_model, load_model

    with named(_name(source)):
        path = _path(source)
        model = check_model(source) if path is None else load_model(path)
        from phonebit.onnxruntime.conversion import SOURCE
        from phonebit.onnxruntime.model_view import ModelView
        from phonebit.onnxruntime.partition import Partition

        for node in model.graph.node:
            given = {attribute.name: attribute.s for attribute in node.attribute}
            if node.op_type == "EPContext" and given.get("source") == SOURCE.encode():
                return model, None
    partition = Partition(ModelView(model, path.parent if path else None), zeros)
    return partition.model(), partition.report


def _path(source: Any) -> Path | None:
    return Path(source) if isinstance(source, str | os.PathLike) else None


def _name(source: Any) -> str:
    return str(_path(source) or type(source).__name__)


def _onnxruntime() -> Any:
    """The package, new enough.

    Raises:
        ConversionError: It is absent or too old.
    """
    hint = "pip install 'phonebit[onnxruntime]'"
    try:
        import onnxruntime
    except ImportError as error:
        raise ConversionError(
            "ONNX Runtime is not installed", where="phonebit.onnxruntime", hint=hint
        ) from error
    check_version("ONNX Runtime", onnxruntime.__version__, OLDEST, hint)
    return onnxruntime


def _devices(onnxruntime: Any) -> list[Any]:
    """The provider's devices: the CPU. Registers the library where nobody has."""
    from phonebit.onnxruntime.conversion import SOURCE

    def found() -> list[Any]:
        return [each for each in onnxruntime.get_ep_devices() if each.ep_name == SOURCE]

    with _registering:
        if not found():
            onnxruntime.register_execution_provider_library(SOURCE, str(library()))
        return found()
