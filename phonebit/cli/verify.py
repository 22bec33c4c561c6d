"""``phonebit verify``: does a ``.pbit`` file compute what its checkpoint does?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from phonebit.cli.console import EXIT_PARTED, output, print_json, progress
from phonebit.cli.options import DeviceOption, JsonOption, RangeOption, ThreadsOption

if TYPE_CHECKING:
    from phonebit.verification import EndToEndCheck, LayerCheck, VerificationReport

SHOWN_TIES = 10
_STYLES = {
    "equal": "green",
    "within tolerance": "green",
    "float ties": "yellow",
    "parted": "bold red",
}


def verify(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="The checkpoint.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .pbit file made from it.")],
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="An .npz file or a folder of pictures; else random."),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Inputs to use; 8 if random, else all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of random inputs.")] = 0,
    input_range: RangeOption = None,
    interpreter: Annotated[
        bool, typer.Option("--interpreter", help="Do not use TensorFlow even if it is there.")
    ] = False,
    threads: ThreadsOption = 0,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Compare a .pbit file with its checkpoint, layer by layer, then end to end.

    Every layer is fed the checkpoint's own values: TensorFlow's where it is
    installed, the reference interpreter's elsewhere. Exit code 0: they agree,
    1: they part, 2: bad input.
    """
    from phonebit.cli.verify_inputs import read_inputs
    from phonebit.network import Network
    from phonebit.verification import batches
    from phonebit.verification import verify as verify_model

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow talks of its build otherwise
    network = Network.load(file, device=device, threads=threads)
    arrays = read_inputs(network, inputs, samples, seed, input_range)
    count = max(len(array) for array in arrays.values())
    with progress("reading the checkpoint", 1 + batches(count), quiet=as_json) as advance:
        report = verify_model(source, network, arrays, framework=not interpreter, progress=advance)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(output(), report)
    if not report.passed:
        raise typer.Exit(EXIT_PARTED)


def _print(console: Console, report: VerificationReport) -> None:
    origin = "TensorFlow's own activations"
    if report.reference == "interpreter":
        origin = f"the reference interpreter ({escape(report.reason)})"
    console.print(f"layer by layer, {report.samples} inputs, each layer fed from {origin}")
    console.print(_layer_table(report.layers))
    _print_end_to_end(console, report.end_to_end)
    first = report.first_parted
    if first is not None:
        console.print(f"[bold red]parted[/] first at layer '{escape(first.name)}': {_how(first)}")
        others = [layer.name for layer in report.layers if layer.parted and layer is not first]
        if others:
            console.print(f"and, judged alone, at {escape(', '.join(others))}")
    elif not report.passed:
        console.print(
            "[bold red]parted[/] end to end although every layer alone agrees: "
            f"inputs {report.end_to_end.unexplained[:10]}"
        )
    else:
        console.print(
            f"[bold green]passed[/]: {escape(report.file)} computes what "
            f"{escape(report.source)} does{_ties_text(report)}",
            soft_wrap=True,
        )


def _ties_text(report: VerificationReport) -> str:
    if not report.ties:
        return ""
    bits = sum(layer.bits for layer in report.layers)
    return f", up to {report.ties} float ties in {bits:,} bits"


def _how(check: LayerCheck) -> str:
    """By how much a layer parted."""
    parts = []
    if check.differing_bits:
        parts.append(
            f"{check.differing_bits:,} of {check.bits:,} bits differ"
            f" ({check.ties:,} of them float ties)"
        )
        if check.worst_bit:
            parts.append(f"first at {escape(check.worst_bit)}")
    if check.max_abs_difference > check.tolerance or check.max_abs_difference != (
        check.max_abs_difference
    ):
        parts.append(
            f"largest difference {check.max_abs_difference:.3g} at {escape(check.worst)}, "
            f"allowed {check.tolerance:.3g}"
        )
    return "; ".join(parts)


def _layer_table(checks: list[LayerCheck]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim")
    table.add_column("layer", overflow="fold")
    table.add_column("op", no_wrap=True)
    for title in ("max diff", "bits off", "ties"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for check in checks:
        table.add_row(
            str(check.index),
            escape(check.name) + ("*" if check.oracle == "engine graph" else ""),
            check.kind,
            f"{check.max_abs_difference:.2g}" if check.values else "",
            f"{check.differing_bits:,}/{check.bits:,}" if check.bits else "",
            f"{check.ties} <= {check.worst_tie:.1g}" if check.ties else "",
            f"[{_STYLES[check.verdict]}]{check.verdict}[/]",
        )
    if any(check.oracle == "engine graph" for check in checks):
        table.caption = (
            "* the checkpoint has no such value: compared with the file's own definition"
        )
        table.caption_justify = "left"
    return table


def _print_end_to_end(console: Console, check: EndToEndCheck) -> None:
    ties = ""
    if check.ties:
        ties = f", {len(check.ties)} float ties on the way of {check.samples_with_ties} inputs"
    console.print(
        f"end to end: same argmax for {check.same_argmax} of {check.samples}, largest output "
        f"difference {check.max_abs_difference:.2g}{ties}: "
        f"[{_STYLES[check.verdict]}]{check.verdict}[/]"
    )
    for tie in check.ties[:SHOWN_TIES]:
        console.print(f"  [yellow]float tie[/] {escape(tie)}")
    if len(check.ties) > SHOWN_TIES:
        console.print(f"  and {len(check.ties) - SHOWN_TIES} more (all of them: --json)")
