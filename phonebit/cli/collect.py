"""``phonebit collect``: times of random layers on a device, for the training of predictors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phonebit.cli.collect_options import CollectFlags, print_collection
from phonebit.cli.console import output, progress
from phonebit.cli.options import PairOption
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError

if TYPE_CHECKING:
    from phonebit.planner.measure.collect import CollectionReport
    from phonebit.planner.measure.orders import CollectionPlan


def collect(
    context: typer.Context,
    *,
    output_path: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="SAMPLES", help="A .jsonl file.")
    ] = None,
    device: PairOption = "gpu+cpu",
    wanted: CollectFlags,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an existing file.")] = False,
    orders: Annotated[
        Path | None,
        typer.Option(
            "--orders", metavar="FOLDER", help="Write a measurement job for another device."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FILE", help="Read its results."),
    ] = None,
) -> None:
    """Profile random layers, whole and split, on a GPU and a CPU.

    Results are appended per layer; --resume continues an interrupted run, or
    adds layers if --samples is larger. Run nothing else meanwhile.

    For a device without Python: --orders FOLDER writes a measurement job,
    `phonebit_bench --collect FOLDER` runs it there, and --orders FOLDER
    --results FOLDER/results.jsonl -o SAMPLES reads its results.
    """
    asked = (orders is not None, results is not None, output_path is not None)
    if results is not None and orders is not None and output_path is not None:
        _refuse_given(context, ("device", *vars(CollectFlags())))
        _check_new(output_path, resume)
        return print_collection(output_path, _read_back(orders, results, output_path))
    if asked not in ((True, False, False), (False, False, True)):
        raise InputError(
            "what to do is not clear",
            expected="-o SAMPLES, or --orders FOLDER, or --orders FOLDER --results FILE -o SAMPLES",
        )
    plan = wanted.plan()
    if orders is not None:
        _refuse_given(context, ("device", "resume"))
        return _write_orders(orders, plan)
    assert output_path is not None
    _check_new(output_path, resume)
    print_collection(output_path, _collect(output_path, device, plan))


def _refuse_given(context: typer.Context, names: tuple[str, ...]) -> None:
    """Options that would have no effect are errors."""
    given = [
        name
        for name in names
        if (source := context.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    ]
    if given:
        raise InputError(
            f"--{given[0]} has no effect here",
            hint="the job says what is measured, phonebit_bench on the device measures it",
        )


def _check_new(samples: Path, resume: bool) -> None:
    from phonebit.output_files import check_output
    from phonebit.planner.predict.samples import SAMPLES_FILE

    if samples.exists() and not resume:
        raise InputError(
            "the file is there already",
            where=str(samples),
            hint="add --resume to go on with it, or give another file to -o",
        )
    check_output(samples, SAMPLES_FILE)


def _write_orders(folder: Path, plan: CollectionPlan) -> None:
    from phonebit.planner.measure.measurement_job import write_measurement_job

    with progress("writing layers", plan.layers) as advance:
        files = write_measurement_job(folder, plan, advance)
    size = bytes_text(sum(file.stat().st_size for file in files))
    output().print(f"{len(files)} files, {size}: {escape(str(folder))}", soft_wrap=True)


def _read_back(folder: Path, results: Path, samples: Path) -> CollectionReport:
    from phonebit.planner.measure.measurement_job import collect_results

    with progress("reading results", None) as advance:
        return collect_results(folder, results, samples, advance)


def _collect(samples: Path, device: str, plan: CollectionPlan) -> CollectionReport:
    from phonebit.planner.cost_models import collect as collect_samples

    with progress("measuring", plan.rounds * plan.layers * len(plan.threads)) as advance:
        return collect_samples(samples, plan, device=device, progress=advance)
