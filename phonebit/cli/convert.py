"""``phonebit convert``: a trained checkpoint to a ``.pbit`` file."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from phonebit.cli.console import bytes_text, output, print_json, progress
from phonebit.cli.options import JsonOption, RangeOption
from phonebit.errors import InputError


class InputType(StrEnum):
    """Element types that a converted network can read."""

    f32 = "f32"
    u8 = "u8"


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A Larq .h5 or .keras file.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The .pbit file; next to SRC if absent."
        ),
    ] = None,
    input_type: Annotated[
        InputType,
        typer.Option("--input", help="f32: read values as in training; u8: read picture levels."),
    ] = InputType.f32,
    input_range: RangeOption = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Class names: one a line, or a JSON list."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a layer trained as binary is not.")
    ] = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Skip comparing the graph after every pass.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a trained network to a .pbit file."""
    from phonebit.cli.pictures import parse_range
    from phonebit.converter.convert import convert as convert_model

    value_range = parse_range(input_range)
    target = to or source.with_suffix(".pbit")
    names = read_labels(labels) if labels else None
    with progress(f"converting {source.name}", None, quiet=as_json):
        report = convert_model(
            source,
            target,
            input_dtype=input_type.value,
            input_range=(value_range.low, value_range.high) if value_range else None,
            labels=names,
            strict=strict,
            check=not no_check,
        )
    if as_json:
        print_json(json.loads(report.to_json()))
        return
    console = output()
    console.print(report.render())
    console.print(
        f"wrote [bold]{escape(str(target))}[/], {bytes_text(target.stat().st_size)}", soft_wrap=True
    )


def read_labels(path: Path) -> list[str]:
    """Class names from a text file (one a line, blank lines ignored) or a JSON list of strings.

    Raises:
        InputError: if the file is neither, or names no class.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError("not a text file", where=str(path), expected="UTF-8") from error
    if not text.lstrip().startswith(("[", "{")):
        names = [line.strip() for line in text.splitlines() if line.strip()]
    else:
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("not valid JSON", where=str(path), got=error) from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not names:
        raise InputError(
            "no class names in it",
            where=str(path),
            expected="one a line, or a JSON list of strings",
        )
    return names
