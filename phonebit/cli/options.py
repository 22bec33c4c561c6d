"""Options that several commands have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import typer

from phonebit.cli.groups import Without

if TYPE_CHECKING:
    from phonebit.devices.loading import EngineOptions
    from phonebit.network import Network

Precision = Literal["exact", "f16", "fast"]
WeightType = Literal["f32", "f16", "i8"]
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
        help="auto, cpu, cpu:ISA, gpu, gpu:N, vulkan:N, or gpu+cpu (co-execution); see `devices`.",
    ),
]
GpuDeviceOption = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="gpu, gpu:N or vulkan:N; see `devices`.")
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
        "--kernels",
        help="Of an OpenCL device; paper: the forms of the PhoneBit paper, to compare.",
    ),
]


@dataclass(frozen=True)
class EngineFlags:
    """How a network is to run: a device, and options by their names in ``EngineOptions``."""

    threads: ThreadsOption = 0
    device: DeviceOption = "auto"
    precision: PrecisionOption = "exact"
    kernels: KernelsOption = "tuned"
    max_memory_bytes: Annotated[
        int,
        typer.Option(
            "--max-memory",
            min=0,
            metavar="BYTES",
            help="Maximum memory that the file may ask for.",
            show_default="half of this machine's, at most 4 GiB",
        ),
    ] = 0
    max_work: Annotated[
        float,
        typer.Option(
            "--max-work",
            min=0,
            metavar="N",
            help="Maximum operations per image that the file may ask for.",
            show_default="1e12 per processor",
        ),
    ] = 0.0

    def load(self, file: Path, **others: Unpack[EngineOptions]) -> Network:
        """The file on the device.

        Args:
            file: a .pbit file.
            **others: options in place of those that were typed.
        """
        from phonebit.network import Network

        options: Any = {**vars(self), **others}
        return Network.load(file, **options)


UsualEngineFlags = Annotated[EngineFlags, Without("kernels")]
