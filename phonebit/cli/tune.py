"""``phonebit tune``: the fastest kernels for a network on a device, measured and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import GpuDeviceOption, JsonOption, PrecisionOption
from phonebit.devices.tuning import LayerTuning, Level, TuningReport
from phonebit.devices.tuning import tune as tune_file
from phonebit.display import escape_markup as escape

LevelOption = Annotated[
    Level,
    typer.Option(
        "--level",
        help="rapid: defaults of each kernel; normal: one parameter at a time from the best of "
        "those; exhaustive: everything.",
    ),
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The batch size that matters.",
        show_default="fastest at 1, not slower at 32",
    ),
]


def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    device: GpuDeviceOption = "gpu",
    level: LevelOption = "normal",
    batch: BatchOption = None,
    precision: PrecisionOption = "exact",
    export: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Also merge the results into this tuning table."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Select the fastest kernel configuration per layer on an OpenCL device.

    Results are stored per device and apply to every network with layers of
    these shapes. Only bit-identical kernels are selected. Interrupted runs keep
    their results.
    """
    with progress("measuring", None, quiet=as_json) as advance:
        report = tune_file(
            file, device, level=level, batch=batch, precision=precision, export=export,
            progress=advance,
        )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
    else:
        _print(output(), report)


def _print(console: Console, report: TuningReport) -> None:
    console.print(
        f"[bold]{escape(report.device)}[/]  level {report.level}, batch "
        + " and ".join(map(str, report.batches)),
        soft_wrap=True,
    )
    if not report.layers:
        console.print("no layer of this network has a choice of kernels on this device")
        return
    console.print(_layer_table(report.layers))
    before_ms = sum(len(entry.layers) * entry.before_ms for entry in report.layers)
    after_ms = sum(len(entry.layers) * entry.after_ms for entry in report.layers)
    console.print(
        f"these layers: {before_ms:.3f} ms before, [bold]{after_ms:.3f} ms[/] after; "
        f"{sum(entry.measured for entry in report.layers)} candidates measured"
    )
    refused = {text: why for entry in report.layers for text, why in entry.refused.items()}
    for text, why in refused.items():
        console.print(f"[yellow]refused[/] {escape(text)}: {escape(why)}", soft_wrap=True)
    for where in (report.kept_in, report.exported_to):
        if where is not None:
            console.print(f"kept in {escape(where)}", soft_wrap=True)


def _layer_table(layers: list[LayerTuning]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("layer", overflow="fold")
    table.add_column("before, after", overflow="fold")
    for title in ("ms", "gain", "tried"):
        table.add_column(title, justify="right", no_wrap=True)
    for entry in layers:
        others = f" and {len(entry.layers) - 1} like it" if len(entry.layers) > 1 else ""
        changed = entry.after != entry.before
        choices, times, gain = escape(entry.before), f"{entry.before_ms:.4f}", ""
        if changed:
            choices += f"\n[green]{escape(entry.after)}[/]"
            times += f"\n{entry.after_ms:.4f}"
            gain = f"\n{entry.before_ms / entry.after_ms:.2f} x" if entry.after_ms else ""
        table.add_row(escape(entry.layers[0]) + others, choices, times, gain, f"{entry.measured}")
    return table
