"""``phonebit verify``: does a ``.pbit`` file compute what its checkpoint does?"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from phonebit.cli.console import EXIT_CHECK_FAILED, output, print_json, progress
from phonebit.cli.groups import Without
from phonebit.cli.image_options import RangeOption
from phonebit.cli.import_options import ImportFlags
from phonebit.cli.options import EngineFlags, ForceOption, JsonOption, ThreadsOption
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError

BOTH = ("cpu", "gpu")


DatasetOption = Annotated[
    Path | None,
    typer.Option(
        "--dataset",
        "--inputs",
        metavar="PATH",
        help="A folder of images, an .npz or .npy file.",
        show_default="random inputs",
    ),
]
LayoutOption = Annotated[
    Literal["nhwc", "nchw"] | None,
    typer.Option(help="Axis order of an .npz or .npy file.", show_default="by its shape"),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of inputs.", show_default="8 random, or the whole dataset"
    ),
]
InterpreterOption = Annotated[
    bool,
    typer.Option(
        "--interpreter", help="Use the reference interpreter's activations, not the framework's."
    ),
]
DevicesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="auto, cpu, cpu:ISA, gpu, gpu:N, or both (cpu and gpu). If repeated, the devices must "
        "be bit-identical.",
    ),
]
HtmlOption = Annotated[
    Path | None, typer.Option(metavar="OUT.html", help="Also write an HTML report.")
]


def verify(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC", help="The checkpoint: Keras or Larq, PyTorch, ONNX or TensorFlow Lite."
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .pbit file made from it.")],
    *,
    dataset: DatasetOption = None,
    layout: LayoutOption = None,
    samples: SamplesOption = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed of the inputs.")] = 0,
    input_range: RangeOption = None,
    interpreter: InterpreterOption = False,
    threads: ThreadsOption = 0,
    device: DevicesOption = None,
    engine: Annotated[EngineFlags, Without("threads", "device", "kernels")],
    html: HtmlOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    source_flags: ImportFlags,
) -> None:
    """Compare a .pbit file with its checkpoint, layer by layer, then end to end.

    Each layer receives the activations of the checkpoint, computed by TensorFlow
    or PyTorch if installed, or of an ONNX or TensorFlow Lite model, otherwise by
    the reference interpreter.
    Exit code 0: match, 1: mismatch, 2: bad input.
    """
    from phonebit.cli.verify_inputs import read_inputs
    from phonebit.cli.verify_text import print_report
    from phonebit.html_page import HTML_FILE
    from phonebit.output_files import check_output
    from phonebit.verification import steps
    from phonebit.verification import verify as verify_model
    from phonebit.verification.html import write_html

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow talks of its build otherwise
    if html is not None:
        if not html.parent.is_dir():
            raise InputError("no such folder", where=str(html.parent), hint="make it first")
        check_output(html, HTML_FILE, [source, file, dataset, source_flags.plugin], force)
    options = source_flags.options()
    engine = replace(engine, threads=threads)
    networks = [replace(engine, device=name).load(file) for name in _names(device or ["auto"])]
    arrays = read_inputs(networks[0], dataset, samples, seed, input_range)
    is_file = dataset is not None and not dataset.is_dir()
    count = max(len(array) for array in arrays.values())
    with progress("reading the checkpoint", 1 + steps(count), quiet=as_json) as advance:
        report = verify_model(
            source,
            networks,
            arrays,
            options=options,
            layout=layout if is_file else "nhwc",
            framework=not interpreter,
            precision=engine.precision,
            progress=advance,
        )
    if html is not None:
        write_html(report, html, replace_any=force)
    if as_json:
        print_json(report.to_dict())
    else:
        console = output()
        print_report(console, report)
        if html is not None:
            console.print(f"wrote [bold]{escape(str(html))}[/]", soft_wrap=True)
    if not report.passed:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _names(devices: list[str]) -> list[str]:
    """Each device once."""
    names = [name for one in devices for name in (BOTH if one == "both" else (one,))]
    return list(dict.fromkeys(names))
