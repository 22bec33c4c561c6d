"""``phonebit eval``: how good a network is on a data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from phonebit.cli.console import EXIT_BAD_INPUT, output, print_json, progress
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.import_options import ImportFlags
from phonebit.cli.options import JsonOption, UsualEngineFlags
from phonebit.cli.run import DETECTION_PANEL, OverlapOption, detection_limits

SourceOption = Annotated[
    Path | None,
    typer.Option(
        "--source",
        metavar="SRC",
        help="Also evaluate the checkpoint that the file was converted from.",
    ),
]
ImagesOption = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="DIR",
        help="Folder of the images of a COCO file.",
        show_default="the file's folder",
        rich_help_panel=DETECTION_PANEL,
    ),
]
ScoreOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="X",
        help="Minimum score of a box.",
        show_default="0.005",
        rich_help_panel=DETECTION_PANEL,
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of images, evenly spaced.", show_default="the whole set"
    ),
]
WorkersOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Threads that read images; 0: one per usable core."),
]


def evaluate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="Classifiers: a folder with a folder per class, a CSV file of lines image,class, "
            "or an .npz file. Detectors: annotations of PASCAL VOC (XML) or COCO (JSON).",
        ),
    ],
    *,
    source: SourceOption = None,
    samples: SamplesOption = None,
    workers: WorkersOption = 0,
    engine: UsualEngineFlags,
    as_json: JsonOption = False,
    images: ImagesOption = None,
    score: ScoreOption = None,
    iou: OverlapOption = None,
    flags: ImageFlags,
    source_flags: ImportFlags,
) -> None:
    """Measure accuracy, or a detector's mean average precision, on a data set.

    Images that cannot be read are listed and not counted.
    Exit code 0: evaluated, 2: bad input, or not one image could be read.
    """
    from phonebit.cli.eval_text import print_evaluation
    from phonebit.devices.environment import environment
    from phonebit.evaluation import evaluate as evaluate_network
    from phonebit.evaluation.evaluate import LIMITS
    from phonebit.network.tasks import check_detector

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow talks of its build otherwise
    options = source_flags.options()
    network = engine.load(file)
    if (images, score, iou) != (None, None, None):
        check_detector(network)
    with progress("reading the data set", None, quiet=as_json) as advance:
        found = evaluate_network(
            network,
            data,
            source=source,
            options=options,
            images=images,
            preprocessing=flags.rule_for(network, network.inputs[0]),
            limits=detection_limits(score, iou, LIMITS),
            samples=samples,
            workers=workers,
            progress=advance,
        )
    if as_json:
        device = {"device": network.device, "isa": network.isa, "threads": network.threads}
        more = {**device, "precision": engine.precision, "environment": environment(engine.device)}
        print_json({**found.to_dict(), **more})
    else:
        print_evaluation(output(), found, network)
    if len(found.errors) == len(found.images):
        raise typer.Exit(EXIT_BAD_INPUT)
