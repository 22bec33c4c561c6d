"""Options of model import, shared by all commands that read a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.converter.importers.sources import ImportOptions

PANEL: Final = "Model import"


@dataclass(frozen=True)
class ImportFlags:
    """What a user typed."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PACKAGE.MODULE:FACTORY",
            help="PyTorch checkpoint: function that builds the module. Runs your Python code.",
            rich_help_panel=PANEL,
        ),
    ] = None
    input_shape: Annotated[
        str | None,
        typer.Option(
            "--input-shape",
            metavar="N,C,H,W",
            help="PyTorch: input shape for tracing. ONNX: the same, for models without a fixed "
            "shape. Keras: H,W,C, likewise.",
            rich_help_panel=PANEL,
        ),
    ] = None
    trust_lambdas: Annotated[
        bool,
        typer.Option(
            "--trust-lambdas",
            help="Keras: run the Python code of Lambda layers in the file. Use only with files "
            "from people you trust.",
            rich_help_panel=PANEL,
        ),
    ] = False
    plugin: Annotated[
        Path | None,
        typer.Option(
            "--plugin",
            metavar="FILE.py",
            help="Keras: Python file that defines CUSTOM_LAYERS. It is executed.",
            rich_help_panel=PANEL,
        ),
    ] = None

    def options(self) -> ImportOptions:
        """The same for the importers.

        Raises:
            InputError: if the shape is none.
            ConversionError: if the plug-in cannot be loaded.
        """
        from phonebit.converter.importers.sources import ImportOptions

        layers = None
        if self.plugin is not None:
            from phonebit.converter.importers.keras.plugin import load_plugin

            layers = load_plugin(self.plugin)
        return ImportOptions(
            input_shape=_shape(self.input_shape),
            model=self.model,
            custom_layers=layers,
            trust_lambdas=self.trust_lambdas,
        )


def _shape(text: str | None) -> tuple[int, ...] | None:
    """``"1,3,224,224"`` as numbers; None stays None."""
    if text is None:
        return None
    try:
        shape = tuple(int(number) for number in text.split(","))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        expected = "whole numbers above 0, e.g. 1,3,224,224"
        raise InputError("not a shape", where="--input-shape", expected=expected, got=repr(text))
    return shape
