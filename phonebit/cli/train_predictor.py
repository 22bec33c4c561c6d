"""``phonebit train-predictor``: a device profile from samples, and how well it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.options import ForceOption, JsonOption
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit.planner.evaluation import Accuracy, Prediction
    from phonebit.planner.profile import DeviceProfile


@dataclass
class TrainingReport:
    """What a training gave.

    Attributes:
        device: keys of the device, one for each number of CPU threads.
        profiles: the files that were written.
        learnt_from: measured parts that the tested predictors have seen.
        tested_with: those that they have not.
        accuracies: errors over the latter.
        dispatch: samples whose launches Python reckoned as the runtime made them, and all others.
        refused: kernels that the runtime passes over on this device.
        refused_for_cuts: likewise, for parts of the channels.
        plots: pictures of predictions.
    """

    device: list[str]
    profiles: list[str]
    learnt_from: int
    tested_with: int
    accuracies: list[Accuracy]
    dispatch: tuple[int, int]
    refused: list[str]
    refused_for_cuts: list[str]
    plots: list[str]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**vars(self), "accuracies": [entry.to_dict() for entry in self.accuracies]}


def train_predictor(
    samples: Annotated[
        Path, typer.Argument(metavar="SAMPLES", help="What `phonebit collect` wrote.")
    ],
    output_path: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="PROFILE", help="A .json file; else it is kept in the cache."
        ),
    ] = None,
    report_folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Also draw predicted against measured times."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search for how to grow the trees; takes minutes.")
    ] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train the latency predictors of µLayer, CoDL and Fine-Grained Co-execution.

    A fifth of the layers is held out to tell how well they predict; the
    profile that is written has then learnt from all. Planning needs nothing
    but the profile.
    """
    report = _train(samples, output_path, report_folder, search, force, quiet=as_json)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(output(), report)


def _train(
    path: Path,
    output_path: Path | None,
    report_folder: Path | None,
    search: bool,
    force: bool,
    quiet: bool,
) -> TrainingReport:
    from phonebit.errors import InputError
    from phonebit.output_files import check_output
    from phonebit.planner.evaluation import evaluate, typical_errors
    from phonebit.planner.predictors.kernels import GpuDispatch
    from phonebit.planner.profile import PROFILE_FILE
    from phonebit.planner.samples import read_samples
    from phonebit.planner.training import Trainer, TreeSettings, split_by_layer
    from phonebit.planner.training_dispatch import dispatch_agreement

    if output_path is not None:
        output_path.parent.mkdir(parents=True, exist_ok=True)
        check_output(output_path, PROFILE_FILE, [path], force)
    if report_folder is not None:
        report_folder.mkdir(parents=True, exist_ok=True)
    samples = read_samples(path)
    learning, testing = split_by_layer(samples.parts)
    if not testing:
        raise InputError(
            "too few layers to hold a fifth of them out",
            where=str(path),
            got=f"{len(samples.parts)} measured parts",
            hint="collect more with `phonebit collect --resume --samples N`",
        )
    with progress("training", None, quiet=quiet) as advance:
        settings = TreeSettings()
        if search:
            from phonebit.planner.training_search import search_settings

            settings = search_settings(samples, learning, advance)
        trainer = Trainer(samples, settings, advance)
        predictions = evaluate(trainer.fit(learning, samples.handovers), testing)
        profile = replace(
            trainer.fit(samples.parts, samples.handovers), errors=typical_errors(predictions)
        )
    plots = _plots(report_folder, predictions, path, force)
    agreeing, differing = dispatch_agreement(samples, GpuDispatch(profile.device.gpu))
    return TrainingReport(
        list(profile.device.keys.values()),
        [str(written) for written in _write(profile, output_path, path, force)],
        len(learning),
        len(testing),
        [accuracy for prediction in predictions for accuracy in prediction.accuracies()],
        (agreeing, len(differing)),
        list(profile.device.gpu.refused),
        list(profile.device.gpu.refused_for_cuts),
        [str(plot) for plot in plots],
    )


def _plots(
    folder: Path | None, predictions: Sequence[Prediction], samples: Path, force: bool
) -> list[Path]:
    if folder is None:
        return []
    from phonebit.planner.evaluation_plots import plot_predictions

    return plot_predictions(folder, predictions, inputs=[samples], replace_any=force)


def _write(profile: DeviceProfile, path: Path | None, samples: Path, force: bool) -> list[Path]:
    """To the file that was asked for, or for each key to the cache folder."""
    from phonebit.errors import InputError
    from phonebit.planner.profile import profile_path, write_profile

    if path is not None:
        paths = [path]
    else:
        kept = [profile_path(key) for key in profile.device.keys.values()]
        paths = [place for place in kept if place is not None]
        if not paths:
            raise InputError("there is no cache folder", where="profile", hint="give a file to -o")
    for place in paths:
        write_profile(place, profile, inputs=[samples], replace_any=force or path is None)
    return paths


def _print(console: Console, report: TrainingReport) -> None:
    for device in report.device:
        console.print(f"[bold]{escape(device)}[/]", soft_wrap=True)
    console.print(
        f"learnt from {report.learnt_from} parts, tested with {report.tested_with} of other layers"
    )
    console.print(_accuracy_table(report.accuracies))
    agreeing, differing = report.dispatch
    if differing:
        console.print(
            f"[yellow]warning[/] the launches of {differing} of {agreeing + differing} parts were "
            "others than planning reckons with"
        )
    for what, refused in (("", report.refused), (" for cuts", report.refused_for_cuts)):
        for choice in refused:
            console.print(
                f"[yellow]passed over by the runtime{what}[/] {escape(choice)}", soft_wrap=True
            )
    for written in report.profiles + report.plots:
        console.print(f"written: {escape(written)}", soft_wrap=True)


def _accuracy_table(accuracies: Sequence[Accuracy]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("processor", "layers", "predictor"):
        table.add_column(title, no_wrap=True)
    for title in ("parts", "MAPE", "median error", "within 10 %"):
        table.add_column(title, justify="right", no_wrap=True)
    families = sorted(accuracies, key=lambda entry: (entry.processor, entry.threads, entry.family))
    known = ("", "")
    for entry in families:
        threads = f", {entry.threads} threads" if entry.threads else ""
        about = entry.processor + threads, entry.family
        shown = ("" if about[0] == known[0] else about[0], "" if about == known else about[1])
        known = about
        table.add_row(
            *shown,
            entry.predictor,
            f"{entry.samples}",
            f"{entry.mape:.1%}",
            f"{entry.median_error:.1%}",
            f"{entry.within_10:.0%}",
        )
    return table
