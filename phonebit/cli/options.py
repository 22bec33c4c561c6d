"""Options that several commands have in common."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Precision = Literal["exact", "f16", "fast"]
Kernels = Literal["tuned", "paper"]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace an existing file of another kind.")
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        "--threads",
        min=0,
        metavar="N",
        help="CPU threads.",
        show_default="the number in `phonebit devices`",
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="auto, cpu, cpu:ISA, gpu, gpu:N, or gpu+cpu (co-execution); see `devices`.",
    ),
]
OpenClDeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="gpu or gpu:N; see `devices`.")
]
PairOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Where to measure: gpu+cpu, gpu:1+cpu; see `devices`.",
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="Of full-precision layers. f16: half precision on a GPU; fast: also int8 on a CPU for "
        "layers with f16 or i8 weights.",
    ),
]
KernelsOption = Annotated[
    Kernels,
    typer.Option(
        "--kernels", help="Of an OpenCL device; paper: the forms of the PhoneBit paper, to compare."
    ),
]
MaxMemoryOption = Annotated[
    int,
    typer.Option(
        "--max-memory",
        min=0,
        metavar="BYTES",
        help="Maximum memory that the file may ask for.",
        show_default="half of this machine's, at most 4 GiB",
    ),
]
MaxWorkOption = Annotated[
    float,
    typer.Option(
        "--max-work",
        min=0,
        metavar="N",
        help="Maximum operations per image that the file may ask for.",
        show_default="1e12 per processor",
    ),
]
