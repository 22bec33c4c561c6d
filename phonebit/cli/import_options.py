"""Flags that say what a checkpoint leaves open: one place for all commands that import one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.converter.importers.sources import ImportOptions

PANEL: Final = "What the checkpoint leaves open"

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="PACKAGE.MODULE:FACTORY",
        help="PyTorch checkpoints: what builds the module whose weights it holds. "
        "Your Python code, which is imported and run.",
        rich_help_panel=PANEL,
    ),
]
InputShapeOption = Annotated[
    str | None,
    typer.Option(
        "--input-shape",
        metavar="N,C,H,W",
        help="PyTorch: shape to trace the module with. Keras: H,W,C of models that leave it open.",
        rich_help_panel=PANEL,
    ),
]
TrustLambdasOption = Annotated[
    bool,
    typer.Option(
        "--trust-lambdas",
        help="Keras: run the Python code that Lambda layers in the file hold. "
        "It can do anything: only for files of people you trust.",
        rich_help_panel=PANEL,
    ),
]
PluginOption = Annotated[
    Path | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Keras: Python code whose CUSTOM_LAYERS express layers of your own. It is run.",
        rich_help_panel=PANEL,
    ),
]


def import_options(
    model: str | None, input_shape: str | None, trust_lambdas: bool, plugin: Path | None
) -> ImportOptions:
    """What a user typed, for the importers.

    Raises:
        InputError: if the shape is none.
        ConversionError: if the plug-in cannot be loaded.
    """
    from phonebit.converter.importers.sources import ImportOptions

    layers = None
    if plugin is not None:
        from phonebit.converter.plugin import load_plugin

        layers = load_plugin(plugin)
    return ImportOptions(
        input_shape=_shape(input_shape),
        model=model,
        custom_layers=layers,
        trust_lambdas=trust_lambdas,
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
