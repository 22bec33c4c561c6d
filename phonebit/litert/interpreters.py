"""``phonebit.litert.interpreter``. LiteRT is imported only inside functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from phonebit.errors import ConversionError
from phonebit.plugins import check_threads, check_version, library

if TYPE_CHECKING:
    from phonebit.converter.importers.torch.calls import Call
    from phonebit.converter.passes.decide_zeros import Zeros

OLDEST: Final = (2, 0)
"""LiteRT whose structures the delegate knows."""


def interpreter(
    model: str | os.PathLike[str], *, threads: int = 0, zeros: Zeros = "auto", **options: Any
) -> Any:
    """Make a LiteRT interpreter whose model PhoneBit computes, on the CPU.

    LiteRT need not know the model's operators: files of Larq Compute Engine run in it, too. Results
    are those of ``phonebit.convert``'s file.

    Args:
        model: Path of a ``.tflite`` file, all of which converts.
        threads: Of PhoneBit; 0: one for each processor.
        zeros: As in ``phonebit.convert``.
        **options: Of ``ai_edge_litert.interpreter.Interpreter``.

    Returns:
        An ``ai_edge_litert.interpreter.Interpreter``. The batch can be changed by
        ``resize_tensor_input``; values between inputs and outputs are not there.

    Raises:
        ConversionError: LiteRT is absent or too old, or the model cannot be converted as a whole.
        DeviceError: The delegate is not part of this installation.
        InputError: ``threads`` is out of range.
        VerificationError: The converter changed a result: a bug in PhoneBit.
    """
    litert = _litert()
    check_threads(threads)
    from phonebit.converter.convert import convert_graph
    from phonebit.converter.importers.tflite.importer import open_tflite

    path = os.fspath(model)
    source = open_tflite(path)
    conversion = convert_graph(source.graph, origin={"framework": "tflite"}, zeros=zeros)
    calls = source.program.outputs
    shapes = [source.model.tensors[place].shape for place in source.model.outputs]
    if shapes != [call.shape for call in calls] or len(source.graph.outputs) != len(calls):
        raise ConversionError(
            "an output is no tensor that a file gives as it is",
            where=path,
            hint="convert the model with phonebit.convert and run it with phonebit.Network",
        )
    words = ["bytes", str(len(conversion.content))]
    words += [*_forms("in", source.program.inputs), *_forms("out", calls)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.pbit"
        file.write_bytes(conversion.content)
        places = [*source.model.inputs, *source.model.outputs]
        delegate = litert.load_delegate(
            str(library()),
            {
                "file": str(file),
                "form": " ".join(words),
                "tensors": " ".join(map(str, places)),
                "threads": str(threads),
            },
        )
    given = [*options.pop("experimental_delegates", []), delegate]
    return litert.Interpreter(model_path=path, experimental_delegates=given, **options)


def _forms(side: str, calls: Sequence[Call]) -> list[str]:
    """Tensors as the delegate reads them in its options: sizes without the batch."""
    return [word for call in calls for word in (side, "plain", *map(str, call.shape[1:]))]


def _litert() -> Any:
    """LiteRT's module of interpreters, new enough.

    Raises:
        ConversionError: It is absent or too old.
    """
    from importlib.metadata import PackageNotFoundError, version

    hint = "pip install 'phonebit[litert]'"
    try:
        found = version("ai-edge-litert")
    except PackageNotFoundError as error:
        raise ConversionError("LiteRT is not installed", hint=hint) from error
    check_version("LiteRT", found, OLDEST, hint)
    from ai_edge_litert import interpreter as litert

    return litert
