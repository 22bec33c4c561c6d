"""``phonebit batch``: label images by the million, on this machine or a Ray cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from phonebit.cli.console import EXIT_BAD_INPUT, output, print_json, progress
from phonebit.cli.groups import Without
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.options import EngineFlags, JsonOption
from phonebit.cli.run import OverlapOption, ScoreOption
from phonebit.display import escape_markup as escape

SOURCE_PANEL = "Source"
WORKERS_PANEL = "Ray"
ReaderOption = Annotated[
    str | None,
    typer.Option(
        "--reader",
        metavar="NAME",
        help="Reader of Ray Data: webdataset for ray.data.read_webdataset.",
        show_default="by SOURCE",
        rich_help_panel=SOURCE_PANEL,
    ),
]
ColumnOption = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Column of the images in a table.",
        show_default="image, bytes or path",
        rich_help_panel=SOURCE_PANEL,
    ),
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="NAME",
        help="Column with a different value for each image.",
        show_default="id or path",
        rich_help_panel=SOURCE_PANEL,
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Ray cluster: auto, HOST:PORT or ray://HOST:PORT.",
        show_default="this machine",
        rich_help_panel=WORKERS_PANEL,
    ),
]
ActorsOption = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Maximum number of actors; 0: as many as fit.",
        rich_help_panel=WORKERS_PANEL,
    ),
]
CpusOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="CPUs of an actor, its threads.", rich_help_panel=WORKERS_PANEL
    ),
]
GpusOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="X",
        help="GPUs of an actor; 0.5: two actors share one.",
        rich_help_panel=WORKERS_PANEL,
    ),
]
BatchOption = Annotated[
    int,
    typer.Option("--batch", min=1, metavar="N", help="Images at a time in an actor."),
]


def batch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Folder of images, .txt file of paths, Parquet file or folder, or what "
            "--reader reads.",
        ),
    ],
    *,
    to: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the results.")
    ],
    form: Annotated[
        Literal["parquet", "jsonl"], typer.Option("--format", help="Of the results.")
    ] = "parquet",
    batch_size: BatchOption = 64,
    engine: Annotated[EngineFlags, Without("threads", "kernels")],
    as_json: JsonOption = False,
    reader: ReaderOption = None,
    column: ColumnOption = None,
    key: IdOption = None,
    address: AddressOption = None,
    actors: ActorsOption = 0,
    cpus: CpusOption = 1,
    gpus: GpusOption = 0.0,
    score: ScoreOption = None,
    iou: OverlapOption = None,
    flags: ImageFlags,
) -> None:
    """Label images, or detect objects in them, on this machine or a Ray cluster.

    Writes a row per image; one that cannot be read has a row with its error.
    The same command again computes only what is missing.
    Exit code 0: all images have a row, 2: bad input, or not one image could be read.
    """
    from phonebit.batch.pipeline import Workers, run_batch
    from phonebit.cli.run import detection_limits
    from phonebit.network.tasks import check_detector

    with replace(engine, device="cpu", precision="exact").load(file, threads=1) as network:
        if score is not None or iou is not None:
            check_detector(network)
        rule = flags.rule_for(network, network.inputs[0])
    options = {
        "device": engine.device,
        "precision": engine.precision,
        "preprocessing": rule,
        "limits": detection_limits(score, iou),
        "max_memory_bytes": engine.max_memory_bytes,
        "max_work": engine.max_work,
    }
    with progress("starting Ray", None, quiet=as_json) as advance:
        done = 0

        def say(total: int | None, rows: int) -> None:
            nonlocal done
            done += rows
            advance(f"{done} images" if total is None else f"{done} of {total} images")

        summary = run_batch(
            source,
            to,
            file,
            options=options,
            workers=Workers(address, actors, cpus, gpus, batch_size),
            form=form,
            reader=reader,
            column=column,
            key=key,
            progress=say,
        )
    document = {"file": str(file), "source": source, "output": str(to), **summary.to_dict()}
    if as_json:
        print_json(document)
    else:
        output().print(
            f"{summary.images} images in {summary.seconds:.1f} s "
            f"({document['images_per_second']:.0f} per second), {summary.errors} errors, "
            f"{summary.done_before} done before; results in [bold]{escape(str(to))}[/]",
            soft_wrap=True,
        )
    if summary.images and summary.errors == summary.images and not summary.done_before:
        raise typer.Exit(EXIT_BAD_INPUT)
