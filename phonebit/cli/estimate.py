"""``phonebit estimate``: modelled times of a network on a phone that is not at hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import JsonOption, KernelsOption
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape

PHONES = Path(__file__).parents[1] / "estimate" / "phones.toml"

if TYPE_CHECKING:
    from phonebit.estimate.network_times import Estimate, ProcessorTime

NAMES = re.findall(r"^\[([\w-]+)\]", PHONES.read_text(encoding="utf-8"), re.MULTILINE)
PhoneNameOption = Annotated[
    str,
    typer.Option(
        "--phone", metavar="PHONE", help=f"{', '.join(NAMES)}, or a file that describes a phone."
    ),
]


def estimate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    phone: PhoneNameOption,
    kernels: KernelsOption = "tuned",
    precision: Annotated[
        Literal["exact", "f16"],
        typer.Option("--precision", help="Of the GPU: f16 has halves between its layers."),
    ] = "exact",
    as_json: JsonOption = False,
) -> None:
    """Model the time of a network on a phone: nothing is measured.

    GPU: instructions of the compiled kernels, bytes, launches. CPU: cycles of
    one thread. A measurement may be half or twice as long.
    """
    from phonebit.estimate.network_times import estimate as model
    from phonebit.estimate.phones import phone_named

    found = model(file, phone_named(phone), kernels, precision)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(output(), found)


def _print(console: Console, found: Estimate) -> None:
    title = f"[bold]{escape(str(found.file))}[/] on {escape(found.phone.title)}"
    console.print(title, soft_wrap=True)
    for each in found.processors:
        console.print()
        console.print(_layer_table(each))
    console.print()
    for each in found.processors:
        console.print(total_text(each), soft_wrap=True)


def total_text(time: ProcessorTime) -> str:
    """One line, with markup: total, range, what is not in it."""
    from phonebit.estimate.network_times import BASIS

    low, high = time.range_ms
    layers = "1 layer" if time.uncounted == 1 else f"{time.uncounted} layers"
    rest = f"; {layers} by bytes only" if time.uncounted else ""
    return (
        f"{escape(time.processor)}: [bold]{time.total_ms:.2f} ms[/], {BASIS}: "
        f"{low:.2f} to {high:.2f} ms[dim]{rest}[/]"
    )


def _layer_table(time: ProcessorTime) -> Table:
    table = Table(title=escape(time.processor), title_justify="left", box=None, pad_edge=False)
    table.add_column("layer", overflow="fold")
    table.add_column("kernel", overflow="fold")
    for name in (f"M {time.kind}", "bytes", "ms", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound by")
    total = time.total_ms or 1.0
    for layer in time.layers:
        work = "-" if layer.work is None else f"{layer.work / 1e6:.2f}"
        table.add_row(
            escape(layer.name), escape(layer.kernel), work, bytes_text(round(layer.bytes)),
            f"{layer.ms:.3f}", f"{layer.ms / total:.0%}", layer.bound,
        )  # fmt: skip
    return table
