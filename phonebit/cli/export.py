"""``phonebit export``: a ``.pbit`` file for viewers of other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phonebit.cli.console import output
from phonebit.cli.options import ForceOption
from phonebit.display import escape_markup as escape


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="VIEW", help="The ONNX view to write.")
    ],
    force: ForceOption = False,
) -> None:
    """Write a .pbit file as an ONNX graph that Netron shows.

    Nodes are the file's layers; constants have shapes without values. It is not meant to run.
    """
    from phonebit.converter.importers.onnx.files import ONNX_FILE
    from phonebit.converter.reader import read_graph
    from phonebit.output_files import check_output, write_output
    from phonebit.pages.onnx_view import onnx_view

    check_output(target, ONNX_FILE, [file], force)
    write_output(target, onnx_view(read_graph(file), file.name), ONNX_FILE, [file], force)
    output().print(f"wrote [bold]{escape(str(target))}[/]", soft_wrap=True)
