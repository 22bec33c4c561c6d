"""``phonebit plan``: who computes what of a network on a CPU and a GPU, kept in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phonebit.cli.console import output, print_json
from phonebit.cli.options import ForceOption, JsonOption
from phonebit.cli.plan_file import (
    MethodName,
    PlanPrecision,
    PlanRequest,
    PlanSharing,
    PlanSynchronization,
    check_plan_outputs,
    draw_plan,
    plan_file,
)
from phonebit.cli.plan_text import print_report

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="DEVICE",
        help="What `train-predictor` wrote: a file, or the key of a device it was kept for.",
    ),
]
MethodOption = Annotated[
    MethodName,
    typer.Option("--method", help="search measures every cut; the others predict; see the docs."),
]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, metavar="N", help="CPU threads; 0: the profile's most.")
]
MeasureOption = Annotated[
    bool, typer.Option("--measure", help="Measure what was chosen, and cuts nearby, on the device.")
]
PairOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Where to measure: gpu+cpu, gpu:1+cpu as `devices` lists.",
    ),
]
PrecisionOption = Annotated[
    PlanPrecision,
    typer.Option("--precision", help="Of what is measured; predictions are for exact layers."),
]
MarginOption = Annotated[
    float | None,
    typer.Option(
        "--margin",
        metavar="SHARE",
        help="What a split must gain over one processor; else 0.02 of measured times, and the "
        "predictor's typical error of predicted ones.",
    ),
]
ChannelStepOption = Annotated[
    int | None,
    typer.Option("--channel-step", metavar="N", help="Cut channels at multiples of N: 8, 32, ..."),
]
RowStepOption = Annotated[
    int, typer.Option("--row-step", metavar="N", help="Rows between the cuts that search tries.")
]
SharingOption = Annotated[
    PlanSharing | None,
    typer.Option("--sharing", help="How memory is shared; else what was measured first."),
]
SynchronizationOption = Annotated[
    PlanSynchronization | None,
    typer.Option("--synchronization", help="How the processors wait for each other; likewise."),
]


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    profile: ProfileOption,
    output_path: Annotated[
        Path, typer.Option("-o", "--output", metavar="PLANNED", help="The file with the plan.")
    ],
    method: MethodOption = "finegrained",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each layer's choice and its alternatives.")
    ] = False,
    measure: MeasureOption = False,
    device: PairOption = "gpu+cpu",
    precision: PrecisionOption = "exact",
    threads: ThreadsOption = 0,
    sharing: SharingOption = None,
    synchronization: SynchronizationOption = None,
    margin: MarginOption = None,
    channel_step: ChannelStepOption = None,
    row_step: RowStepOption = 8,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="SVG", help="Also draw the plan.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Plan a network for a CPU and a GPU that work on one image together.

    The plan is added to the file, beside plans for other devices; in exact
    precision it changes no result. Where both processors are not faster than
    the better one, by the margin, that one has the whole network; with
    --measure, and by search, the network is measured as a whole, too, and the
    plan must be the fastest in three of four rounds.
    """
    request = PlanRequest(
        method,
        measure,
        device,
        precision,
        threads,
        sharing,
        synchronization,
        margin,
        channel_step,
        row_step,
    )
    check_plan_outputs(file, profile, output_path, picture, force)
    report = plan_file(file, profile, output_path, request, quiet=as_json, replace_any=force)
    if picture is not None:
        draw_plan(picture, report, replace_any=force)
    if as_json:
        print_json(report.to_dict())
    else:
        layers = report.layers if explain else []
        print_report(output(), report, layers)
