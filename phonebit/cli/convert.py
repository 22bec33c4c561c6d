"""``phonebit convert``: a trained checkpoint to a ``.pbit`` file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from phonebit.cli.console import output, print_json, progress
from phonebit.cli.image_options import ImageFlags
from phonebit.cli.import_options import ImportFlags
from phonebit.cli.options import ForceOption, JsonOption, WeightType
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape
from phonebit.errors import ConversionError, InputError

SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SRC",
        help="Keras or Larq: .h5, .keras. PyTorch: .pt2, or a checkpoint with --model. "
        "ONNX and QONNX: .onnx. Larq Compute Engine: .tflite.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="The .pbit file to write.", show_default="next to SRC"
    ),
]
InputOption = Annotated[
    Literal["f32", "u8"],
    typer.Option("--input", help="f32: values as in training; u8: image levels 0..255."),
]
LabelsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Class names: one per line, or a JSON list.")
]
DetectionOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Anchors of a detector: TOML, see docs/detection.md."),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict", help="Fail if a layer trained as binary is not converted to a binary layer."
    ),
]
NoCheckOption = Annotated[
    bool, typer.Option("--no-check", help="Skip the comparison of the graph after every pass.")
]
ZerosOption = Annotated[
    Literal["auto", "exact", "plus"],
    typer.Option(
        help="Handling of PyTorch's sign(0) = 0. auto: exact where zeros are likely, otherwise +1 "
        "and reported; exact: always exact, at twice the cost; plus: always +1."
    ),
]
FloatWeightsOption = Annotated[
    WeightType,
    typer.Option(
        help="Storage of full-precision weights. f32: exact; f16, i8: rounded to 2 or 1 bytes."
    ),
]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Show the source lines of operators that are refused.")
]


def convert(
    source: SourceArgument,
    *,
    to: OutputOption = None,
    input_type: InputOption = "f32",
    labels: LabelsOption = None,
    detection: DetectionOption = None,
    strict: StrictOption = False,
    no_check: NoCheckOption = False,
    zeros: ZerosOption = "auto",
    float_weights: FloatWeightsOption = "f32",
    force: ForceOption = False,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
    source_flags: ImportFlags,
    flags: ImageFlags,
) -> None:
    """Convert a trained network to a .pbit file."""
    from phonebit.converter.convert import convert as convert_model
    from phonebit.converter.importers.sources import missing_options
    from phonebit.detection.head import read_head
    from phonebit.format.writer import PBIT_FILE
    from phonebit.images.labels import read_labels
    from phonebit.output_files import check_output

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Lambdas need TensorFlow, which talks a lot
    target = to or source.parent / f"{source.stem}.pbit"
    check_output(
        target, PBIT_FILE, [source, labels, detection, source_flags.plugin, *flags.inputs()], force
    )
    options = source_flags.options()
    try:
        rule, names = flags.for_conversion(is_needed=input_type == "u8")
    except InputError as error:
        # What else is missing, so that nobody learns of it after the next attempt.
        missing = missing_options(source, options) if source.exists() else []
        raise ConversionError([*missing, str(error)]) from None
    if labels is not None:
        names = read_labels(labels)
    with progress(f"converting {source.name}", None, quiet=as_json):
        report = convert_model(
            source,
            target,
            input_dtype=input_type,
            preprocessing=rule,
            labels=names,
            detection=read_head(detection) if detection is not None else None,
            strict=strict,
            check=not no_check,
            zeros=zeros,
            float_weights=float_weights,
            replace_any=force,
            **vars(options),
        )
    if as_json:
        print_json(json.loads(report.to_json()))
        return
    console = output()
    console.print(report.render())
    console.print(
        f"wrote [bold]{escape(str(target))}[/], {bytes_text(target.stat().st_size)}", soft_wrap=True
    )
