"""``phonebit collect``: times of random layers on a device, for the training of predictors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from phonebit.cli.console import output, progress
from phonebit.cli.devices import usable_cores

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.planner.collect import CollectionPlan, CollectionReport
    from phonebit.planner.collect_handovers import Way
    from phonebit.planner.predictors.kernel_rules import GpuFacts
    from phonebit.planner.samples import DeviceFacts

Processors = Literal["gpu", "cpu", "gpu+cpu"]


def collect(
    output_path: Annotated[
        Path, typer.Option("-o", "--output", metavar="SAMPLES", help="A .jsonl file.")
    ],
    device: Annotated[
        Processors,
        typer.Option(
            help="Whose times; gpu+cpu also measures both at once and what sharing costs."
        ),
    ] = "gpu+cpu",
    opencl: Annotated[
        str, typer.Option("--opencl", metavar="DEVICE", help="Which GPU: gpu or gpu:N.")
    ] = "gpu",
    samples: Annotated[
        int, typer.Option("--samples", min=1, metavar="N", help="Random layers.")
    ] = 400,
    threads: Annotated[
        str, typer.Option("--threads", metavar="N,N", help="Numbers of CPU threads.")
    ] = "1",
    cuts: Annotated[
        int, typer.Option(min=0, metavar="N", help="Parts of a layer in each direction.")
    ] = 3,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs, of which the median counts.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of layers and weights.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a file that is there already.")
    ] = False,
) -> None:
    """Measure random layers, whole and cut, on a GPU and a CPU.

    Results are appended layer by layer, so an interrupted run loses one at
    most; --resume goes on where it stopped, or adds layers where --samples is
    larger. Let nothing else run meanwhile.
    """
    from phonebit.errors import InputError
    from phonebit.planner.collect import CollectionPlan
    from phonebit.planner.plan import Processor

    if output_path.exists() and not resume:
        raise InputError(
            "the file is there already",
            where=str(output_path),
            hint="add --resume to go on with it, or give another file to -o",
        )
    sides = tuple(side for side in Processor if side.name.lower() in device.split("+"))
    plan = CollectionPlan(sides, samples, _thread_counts(threads), cuts, repeats, seed=seed)
    report = _collect(output_path, opencl, plan)
    _print(output_path, report)


def _collect(samples: Path, opencl: str, plan: CollectionPlan) -> CollectionReport:
    from phonebit.opencl import device_key, opencl_device
    from phonebit.planner.collect import collect as collect_samples
    from phonebit.planner.device_facts import gpu_facts
    from phonebit.tuning_store import stored_tuning

    def open_engine(path: Path, threads: int, way: Way) -> _runtime.Network:
        return _open(path, f"{opencl}+cpu", threads, way.sharing, way.synchronization)

    device = opencl_device(opencl)
    facts = _facts(opencl, gpu_facts(device, stored_tuning(device_key(device))), plan.threads)
    with progress("measuring", plan.layers * len(plan.threads)) as advance:
        return collect_samples(samples, facts, plan, open_engine, advance)


def _open(
    path: Path, device: str, threads: int, sharing: Any = "auto", synchronization: Any = "auto"
) -> _runtime.Network:
    from phonebit.cli.measuring_engine import open_measuring_engine
    from phonebit.loading import EngineOptions

    options = EngineOptions(threads, sharing=sharing, synchronization=synchronization)
    return open_measuring_engine(path, device, options)


def _facts(opencl: str, gpu: GpuFacts, threads: tuple[int, ...]) -> DeviceFacts:
    """What a network that holds one small layer says of the processors."""
    from phonebit.format.writer import file_bytes
    from phonebit.planner.device_facts import PROBE, device_facts
    from phonebit.planner.sampled_files import layer_file

    contents, index = layer_file(PROBE)
    with tempfile.TemporaryDirectory(prefix="phonebit-collect-") as folder:
        file = Path(folder) / "probe.pbit"
        file.write_bytes(file_bytes(contents))
        alone = _open(file, "cpu", 1)
        keys = {count: _open(file, f"{opencl}+cpu", count).plan_key for count in threads}
        return device_facts(gpu, alone.isa, usable_cores(), alone.layers[index].kernel, keys)


def _thread_counts(text: str) -> tuple[int, ...]:
    from phonebit.errors import InputError

    try:
        counts = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise InputError("--threads", expected="numbers from 1 on, as 1,2", got=repr(text))
    return counts


def _print(path: Path, report: CollectionReport) -> None:
    console = output()
    console.print(
        f"{report.measured} layers measured, {report.known} known before: {escape(str(path))}",
        soft_wrap=True,
    )
    for layer, reason in report.failed.items():
        console.print(f"[yellow]failed[/] {escape(layer)}: {escape(reason)}", soft_wrap=True)
