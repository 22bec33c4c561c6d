"""A verification's report in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.verification import DeviceCheck, EndToEndCheck, LayerCheck, VerificationReport

SHOWN_TIES = 10
_STYLES = {
    "equal": "green",
    "within tolerance": "green",
    "exact zeros": "yellow",
    "float ties": "yellow",
    "lower precision": "yellow",
    "mismatch": "bold red",
}


def print_report(console: Console, report: VerificationReport) -> None:
    """Print the table of layers, the end-to-end result, and where the results first part."""
    origin = f"{report.framework}'s own activations"
    if report.reference == "interpreter":
        origin = f"the reference interpreter ({escape(report.reason)})"
    several = len(report.devices) > 1
    where = f" on {escape(' and '.join(d.device for d in report.devices))}" if several else ""
    precision = f", precision '{report.precision}'" if report.precision != "exact" else ""
    console.print(
        f"layer by layer, {report.samples} inputs{where}{precision}, each layer fed from {origin}",
        soft_wrap=True,
    )
    console.print(_layer_table(report))
    console.print(f"constants: {escape(report.constants.text)}", soft_wrap=True)
    asked = sum(layer.thresholds for layer in report.layers)
    if asked:
        wrong = sum(layer.wrong_thresholds for layer in report.layers)
        console.print(f"thresholds, asked on both sides: {asked:,}, wrong: {wrong:,}")
    if report.stored_as:
        console.print(f"rounded weights: {escape(report.rounding)}", soft_wrap=True)
    if report.default_kernels is not None and report.default_kernels.text:
        console.print(f"[yellow]note[/]: {escape(report.default_kernels.text)}", soft_wrap=True)
    for device in report.devices:
        _print_end_to_end(console, device.end_to_end, _prefix(device, several))
    for device in report.devices:
        _print_device(console, device, _prefix(device, several))
    if report.passed:
        same = ", the same to the last bit on all devices" if several else ""
        console.print(
            f"[bold green]passed[/]: {escape(report.file)} computes what "
            f"{escape(report.source)} does{report.exceptions}{same}",
            soft_wrap=True,
        )


def _prefix(device: DeviceCheck, several: bool) -> str:
    return f"{escape(device.short_name)}: " if several else ""


def _print_device(console: Console, device: DeviceCheck, prefix: str) -> None:
    first = device.first_mismatch
    if first is not None:
        console.print(
            f"{prefix}[bold red]first mismatch[/] at layer '{escape(first.name)}': "
            f"{escape(first.explanation)}",
            soft_wrap=True,
        )
        others = [layer.name for layer in device.layers if layer.mismatch and layer is not first]
        if others:
            console.print(f"and, judged alone, at {escape(', '.join(others))}", soft_wrap=True)
    elif not device.passed:
        check = device.end_to_end
        reason = f"inputs {check.unexplained[:10]}"
        if check.other_device:
            reason = f"{check.other_device:,} outputs are not what the first device computed"
        console.print(
            f"{prefix}[bold red]mismatch[/] end to end although every layer alone agrees: {reason}"
        )


def _layer_table(report: VerificationReport) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim")
    table.add_column("layer", overflow="fold", min_width=14)
    table.add_column("op", no_wrap=True)
    for device in report.devices:
        below = f"\n{escape(device.short_name)}" if len(report.devices) > 1 else ""
        for title in ("max diff", "bits off"):
            table.add_column(f"{title}{below}", justify="right", no_wrap=True)
    table.add_column("ties", justify="right", no_wrap=True)
    if report.zeros:
        table.add_column("zeros", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in zip(*(device.layers for device in report.devices), strict=True):
        shown = next((check for check in row if check.mismatch), row[0])
        star = "*" if shown.oracle == "engine graph" else ""
        cells = [cell for check in row for cell in _differences(check)]
        cells.append(f"{shown.ties} <= {shown.worst_tie:.1g}" if shown.ties else "")
        if report.zeros:
            cells.append(f"{shown.zeros:,}" if shown.zeros else "")
        cells.append(f"[{_STYLES[shown.verdict]}]{shown.verdict}[/]")
        table.add_row(str(shown.index), escape(shown.name) + star, shown.kind, *cells)
    if any(check.oracle == "engine graph" for check in report.layers):
        table.caption = (
            "* the checkpoint has no such value: compared with the file's own definition"
        )
        table.caption_justify = "left"
    return table


def _differences(check: LayerCheck) -> tuple[str, str]:
    return (
        f"{check.max_abs_difference:.2g}" if check.values else "",
        f"{check.differing_bits:,}/{check.bits:,}" if check.bits else "",
    )


def _print_end_to_end(console: Console, check: EndToEndCheck, prefix: str) -> None:
    way = []
    if check.ties:
        way.append(f"{len(check.ties)} float ties")
    if check.zeros:
        way.append(f"{check.zeros:,} exact zeros")
    ties = f", {' and '.join(way)} on the way of {check.samples_with_ties} inputs" if way else ""
    console.print(
        f"{prefix}end to end: same argmax for {check.same_argmax} of {check.samples}, largest "
        f"output difference {check.max_abs_difference:.2g}{ties}: "
        f"[{_STYLES[check.verdict]}]{check.verdict}[/]"
    )
    for tie in check.ties[:SHOWN_TIES]:
        console.print(f"  [yellow]float tie[/] {escape(tie)}")
    if len(check.ties) > SHOWN_TIES:
        console.print(f"  and {len(check.ties) - SHOWN_TIES} more (all of them: --json)")
