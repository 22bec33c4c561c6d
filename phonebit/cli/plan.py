"""``phonebit plan``: who computes what of a network on a CPU and a GPU, kept in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import ForceOption, JsonOption, PairOption, PrecisionOption
from phonebit.cli.plan_text import print_report

CostModelOption = Annotated[
    str | None,
    typer.Option(
        "--cost-model",
        metavar="DEVICE",
        help="Written by `train-predictor`: a file, or the key of a device.",
        show_default="measure here",
    ),
]
MethodOption = Annotated[
    Literal["search", "ulayer", "codl", "finegrained", "combined"],
    typer.Option(
        "--method",
        help="search measures every split, the others only the best. See docs/coexecution.md.",
    ),
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        "--threads",
        min=0,
        metavar="N",
        help="CPU threads; 0: the most that were profiled, without a profile one per core.",
    ),
]
MeasureOption = Annotated[
    bool | None,
    typer.Option(
        "--measure/--predict",
        help="Measure the best predicted splits.",
        show_default="if this is the profiled device",
    ),
]


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    output_path: Annotated[
        Path, typer.Option("-o", "--output", metavar="PLANNED", help="The file with the plan.")
    ],
    cost_model: CostModelOption = None,
    method: MethodOption = "combined",
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the selection and its alternatives for each layer."),
    ] = False,
    measure: MeasureOption = None,
    device: PairOption = "gpu+cpu",
    threads: ThreadsOption = 0,
    precision: PrecisionOption = "exact",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Plan the co-execution of a network on a CPU and a GPU.

    The plan is stored in the file, next to plans for other devices, and changes
    no result of exact precision. If co-execution does not pay, one processor runs the whole
    network. During the first inferences the runtime compares the plan with
    CPU-only and GPU-only execution and keeps the fastest.
    """
    from phonebit.planner.planning_files import plan as plan_file

    with progress("planning", None, quiet=as_json) as advance:
        report = plan_file(
            file,
            cost_model,
            output_path,
            method=method,
            measure=measure,
            device=device,
            threads=threads,
            precision=precision,
            replace_any=force,
            progress=advance,
        )
    if as_json:
        print_json(report.to_dict())
    else:
        print_report(output(), report, report.layers if explain else [])
