"""Options that several commands have in common."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, metavar="N", help="CPU threads; 0: all usable cores.")
]
DeviceOption = Annotated[
    str,
    typer.Option("--device", metavar="DEVICE", help="auto, cpu, or cpu:ISA as `devices` lists."),
]
RangeOption = Annotated[
    str | None,
    typer.Option(
        "--input-range",
        metavar="LOW,HIGH",
        help="Real values that the levels 0 and 255 stand for, e.g. --input-range=-1,1.",
    ),
]
