"""Options that several commands have in common."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Precision = Literal["exact", "f16", "fast"]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also replace a file of another kind than is written.")
]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, metavar="N", help="CPU threads; 0: all usable cores.")
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="auto, cpu, cpu:ISA, gpu or gpu:N as `devices` lists."
    ),
]
OpenClDeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="gpu or gpu:N as `devices` lists.")
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="f16: a GPU keeps real values in half precision; fast: also, a CPU computes layers "
        "with f16 or i8 weights in 8-bit integers.",
    ),
]
MaxMemoryOption = Annotated[
    int,
    typer.Option(
        "--max-memory",
        min=0,
        metavar="BYTES",
        help="Most memory that the file may ask for; 0: half of this machine's, at most 4 GiB.",
    ),
]
MaxWorkOption = Annotated[
    float,
    typer.Option(
        "--max-work",
        min=0,
        metavar="N",
        help="Most operations per image that the file may ask for; 0: 1e12 per processor.",
    ),
]
