"""``phonebit run``: classify images, or find what is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from phonebit.cli.classify import classify, print_classification
from phonebit.cli.console import EXIT_BAD_INPUT, error_text, output, print_json, report_error
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.options import ForceOption, JsonOption, UsualEngineFlags
from phonebit.devices.gpus import APIS
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.detection import Limits
    from phonebit.images.image_files import ImageInput
    from phonebit.network import Network

DETECTION_PANEL = "Detectors"


Task = Literal["classify", "detect"]
TaskOption = Annotated[
    Task | None, typer.Option("--task", help="Task.", show_default="as stored in the file")
]
TopOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Number of classes shown.", show_default="5"),
]
ImagesArgument = Annotated[
    list[str],
    typer.Argument(metavar="IMAGE", help="Image files, folders, patterns, or - for stdin."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Image to write with the boxes drawn; a folder for several images.",
        rich_help_panel=DETECTION_PANEL,
    ),
]
ScoreOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="X",
        help="Minimum score (objectness times class probability).",
        show_default="0.3",
        rich_help_panel=DETECTION_PANEL,
    ),
]
OverlapOption = Annotated[
    float | None,
    typer.Option(
        "--iou",
        min=0.0,
        max=1.0,
        metavar="X",
        help="Overlap threshold of non-maximum suppression.",
        show_default="0.45",
        rich_help_panel=DETECTION_PANEL,
    ),
]


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    images: ImagesArgument,
    *,
    task: TaskOption = None,
    top: TopOption = None,
    to: OutputOption = None,
    force: ForceOption = False,
    score: ScoreOption = None,
    iou: OverlapOption = None,
    engine: UsualEngineFlags,
    as_json: JsonOption = False,
    flags: ImageFlags,
) -> None:
    """Classify images, or detect objects in them.

    Images are preprocessed as stored in the file; options override that. With
    -o the boxes of a detector are drawn into copies of the images.
    """
    from phonebit.images.image_files import load_image, named_images, rule_for_levels
    from phonebit.images.rule_text import as_settings
    from phonebit.network.tasks import check_classifier, check_detector

    if "" in images:
        raise InputError("an image without a name", hint="an unset variable of the shell?")
    paths = named_images(map(Path, images))
    network = engine.load(file)
    chosen = task or ("detect" if network.detection else "classify")
    _refuse_unused(network, chosen, {"--top": top}, {"-o": to, "--score": score, "--iou": iou})
    targets: Sequence[Path | None] = [None] * len(paths)
    if chosen == "detect":
        from phonebit.cli.detect import drawing_targets

        check_detector(network)
        if to is not None:
            targets = drawing_targets(paths, to, [file, *flags.inputs()], force)
    else:
        check_classifier(network)
    info = network.inputs[0]
    rule = flags.rule_for(network, info)
    rule_for_levels(rule, info)  # says that there is none before any image is read
    one: Callable[..., dict[str, Any]] = partial(_classified, network, top=top or 5, quiet=as_json)
    if chosen == "detect":
        limits = detection_limits(score, iou)
        one = partial(_detected, network, limits=limits, force=force, quiet=as_json)
    documents = _each(paths, targets, lambda path, to: one(load_image(path, info, rule), to))
    if as_json:
        document = {
            "file": str(file),
            "task": chosen,
            "device": network.device,
            "isa": network.isa,
            "threads": network.threads,
            "preprocessing": as_settings(rule.for_input(info)) if rule else None,
            "results": documents,
        }
        print_json(document)
    else:
        runner = device_text(network.device, network.isa, network.threads)
        output().print(f"[dim]{escape(runner)}[/]")
    if failed := sum("error" in document for document in documents):
        report_error(f"{failed} of {len(documents)} images failed")
        raise typer.Exit(EXIT_BAD_INPUT)


def _each(
    paths: Sequence[Path],
    targets: Sequence[Path | None],
    compute: Callable[[Path, Path | None], dict[str, Any]],
) -> list[dict[str, Any]]:
    """The result of each image, or its error, which ends nothing unless the image is the only one.

    Raises:
        InputError: for the only image.
        OSError: for the only image.
    """
    documents = []
    for path, target in zip(paths, targets, strict=True):
        try:
            documents.append(compute(path, target))
        except (InputError, OSError) as error:
            if len(paths) == 1:
                raise
            report_error(error_text(error))
            documents.append({"picture": str(path), "error": error_text(error)})
    return documents


def _refuse_unused(
    network: Network, task: Task, classify: dict[str, object], detect: dict[str, object]
) -> None:
    """Refuse flags that would change nothing.

    Raises:
        InputError: if a flag of the other task was given.
    """
    flags = classify if task == "detect" else detect
    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        kinds = {"classify": "classifiers", "detect": "detectors"}
        other = "classify" if task == "detect" else "detect"
        raise InputError(
            f"{', '.join(given)} is for {kinds[other]}",
            where=str(network.path),
            got=f"one of the {kinds[task]}",
            hint="leave it out",
        )


def _classified(
    network: Network, image: ImageInput, _target: None, *, top: int, quiet: bool
) -> dict[str, Any]:
    result = classify(network, image, top)
    if not quiet:
        print_classification(output(), result)
    return result.to_dict()


def _detected(
    network: Network,
    image: ImageInput,
    target: Path | None,
    *,
    limits: Limits,
    force: bool,
    quiet: bool,
) -> dict[str, Any]:
    from phonebit.cli.detect import detect_in, draw_into, print_detections

    result = detect_in(network, image, limits)
    if target is not None:
        result.drawn = draw_into(target, result, force)
    if not quiet:
        print_detections(output(), result)
    return result.to_dict()


def detection_limits(score: float | None, iou: float | None, usual: Limits | None = None) -> Limits:
    """What the flags say, or the usual."""
    from phonebit.detection import Limits

    usual = usual or Limits()
    return Limits(usual.score if score is None else score, usual.overlap if iou is None else iou)


def threads_text(count: int) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{count} thread" if count == 1 else f"{count} threads"


def device_text(device: str, isa: str, threads: int) -> str:
    """``cpu:avx512, 2 threads``, or the OpenCL device's name; of a network's properties."""
    return device if isa in APIS else f"{device}, {threads_text(threads)}"
