"""What ``phonebit plan`` prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.planner.measure.in_network import PassCheck
    from phonebit.planner.planning_files import PlanReport
    from phonebit.planner.search.explain import CutTime, LayerChoice, LayerTimes
    from phonebit.planner.search.planning import Planned

ROUGH: Final = 0.1
"""Typical error of predictions from which on the user hears of it."""


def print_report(console: Console, report: PlanReport, layers: Sequence[LayerChoice]) -> None:
    """Prints the result, after a table of the layers.

    Args:
        console: where.
        report: of the plan.
        layers: those to explain; none: no table.
    """
    planned = report.planned
    if layers:
        console.print(_layer_table(layers))
        console.print(
            "microseconds of stages and best cuts with synchronization; [green]green[/]: measured"
        )
    _print_times(console, planned, report.check)
    console.print(
        f"planned by {planned.plan.method} for {escape(planned.plan.device)}, "
        f"kept in {escape(str(report.output))}",
        soft_wrap=True,
    )
    if report.typical_error is not None and report.typical_error > ROUGH:
        console.print(
            f"[yellow]rough:[/] predictions of this profile are typically "
            f"{report.typical_error:.0%} off; plan with --measure, or collect and train with more "
            "layers",
            soft_wrap=True,
        )


def _print_times(console: Console, planned: Planned, check: PassCheck | None) -> None:
    """How long the network takes: measured where it was, else predicted."""
    from phonebit.planner.measure.in_network import AGREEMENT

    home = planned.home.name
    ms, home_ms, by = planned.total_us / 1000, planned.home_us / 1000, "predicted"
    if check is not None:
        ms, home_ms, by = check.pass_us / 1000, check.home_us / 1000, "measured"
    if planned.is_split:
        both = sum(len(stage.parts) for stage in planned.stages if stage.processor is None)
        total = sum(len(stage.parts) for stage in planned.stages)
        console.print(
            f"[bold]{ms:.3f} ms[/] {by}, {home_ms / ms:.2f} x the {home} alone "
            f"({home_ms:.3f} ms); {both} of {total} layers in stages of both processors",
            soft_wrap=True,
        )
    else:
        console.print(
            f"[bold]{ms:.3f} ms[/] {by}, on the {home} alone: no plan for both gains enough"
        )
    if check is None:
        return
    side = "long" if check.error > 0 else "short"
    console.print(
        f"predicted {check.predicted_us / 1000:.3f} ms, {abs(check.error):.1%} too {side} for a "
        f"machine {check.slowness:.2f} times as slow as at first, after {check.rounds} "
        f"{'round' if check.rounds == 1 else 'rounds'} of planning and measuring",
        soft_wrap=True,
    )
    if not check.agrees:
        console.print(
            f"[yellow]prediction and measurement differ by more than {AGREEMENT:.0%}:[/] other "
            "work on this machine disturbs the measurements; plan again when it is idle",
            soft_wrap=True,
        )


def _layer_table(layers: Sequence[LayerChoice]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim")
    table.add_column("layer", overflow="fold")
    table.add_column("stage", justify="right", no_wrap=True)
    table.add_column("us", justify="right", no_wrap=True)
    table.add_column("choice", overflow="fold")
    for title in ("GPU", "CPU", "best rows", "best channels", "chosen"):
        table.add_column(title, justify="right", no_wrap=True)
    last_stage = -1
    for choice in layers:
        is_same = choice.stage == last_stage
        last_stage = choice.stage
        table.add_row(
            str(choice.layer),
            escape(choice.name),
            "" if is_same else str(choice.stage),
            "" if is_same else _us_text(choice.stage_us),
            escape(choice.text),
            _cell(choice, lambda times: _us_text(times.gpu_us)),
            _cell(choice, lambda times: _us_text(times.cpu_us)),
            _cell(choice, lambda times: _cut_text(times.rows)),
            _cell(choice, lambda times: _cut_text(times.channels)),
            _cell(choice, lambda times: _us_text(times.chosen_us)),
        )
    return table


def _cell(choice: LayerChoice, text: Callable[[LayerTimes], str]) -> str:
    """The predicted number, and the measured one below it."""
    lines = [text(choice.predicted)] if choice.predicted else []
    if choice.measured:
        lines.append(f"[green]{text(choice.measured)}[/]")
    return "\n".join(lines)


def _us_text(us: float) -> str:
    if not math.isfinite(us):
        return "-"
    return f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def _cut_text(best: CutTime | None) -> str:
    """``0:64 12.3``: the GPU's share, and the time."""
    return "" if best is None else f"0:{best.cut} {_us_text(best.us)}"
