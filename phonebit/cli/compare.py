"""``phonebit compare``: two results side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import JsonOption
from phonebit.display import escape_markup as escape


def compare(
    first: Annotated[Path, typer.Argument(metavar="A.json", help="A result.")],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="Another one.")],
    as_json: JsonOption = False,
) -> None:
    """Show two results side by side, with ratios and what differs in the machine.

    Results are files with the output of `bench`, `profile` or `eval` with --json.
    """
    from phonebit.comparing import compare as compare_results

    document = compare_results(first, second)
    if as_json:
        print_json(document)
        return
    console = output()
    for key in ("metrics", "layers", "classes"):
        if document.get(key):
            console.print(_numbers(key, document[key]))
            console.print()
    _print_differences(console, document)


def _numbers(title: str, rows: list[Mapping[str, Any]]) -> Table:
    table = _table("metric" if title == "metrics" else f"{title.rstrip('s')}, ms")
    if title == "classes":
        table.columns[0].header = "class"
    table.add_column("B / A", justify="right")
    for row in rows:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        table.add_row(escape(row["name"]), _number(row["a"]), _number(row["b"]), ratio)
    return table


def _table(first: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    for side in "AB":
        table.add_column(side, justify="right", overflow="fold")
    return table


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"


def _print_differences(console: Console, document: Mapping[str, Any]) -> None:
    if not document["differences"]:
        console.print("same file, device, options, machine and versions")
        return
    table = _table("differs in")
    for column in table.columns[1:]:
        column.justify = "left"
    for row in document["differences"]:
        cells = ("-" if row[side] is None else escape(str(row[side])) for side in "ab")
        table.add_row(escape(row["name"]), *cells)
    console.print(table)
