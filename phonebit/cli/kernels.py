"""``phonebit kernels``: the OpenCL kernels, and the programs that compute a layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from phonebit.cli.console import CommandGroup, output, print_json
from phonebit.cli.options import GpuDeviceOption, JsonOption, KernelsOption, PrecisionOption
from phonebit.display import escape_markup as escape
from phonebit.errors import InputError

kernels = CommandGroup("kernels", "Show the OpenCL kernels and the programs that compute a layer.")


def list_kernels(as_json: JsonOption = False) -> None:
    """List the OpenCL kernels with their parameters; brackets mark the default."""
    from phonebit.bnn_kernels.sources import description, kernel_paths, tunables

    document = [
        {
            "kernel": kernel,
            "description": description(kernel),
            "parameters": {
                tunable.name: {"values": tunable.values, "default": tunable.default}
                for tunable in tunables(kernel)
            },
        }
        for kernel in kernel_paths()
    ]
    if as_json:
        print_json(document)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("kernel", no_wrap=True)
    table.add_column("what it is, parameters")
    for kernel in kernel_paths():
        table.add_row(kernel, escape(description(kernel)))
        for tunable in tunables(kernel):
            values = " ".join(
                f"[{value}]" if value == tunable.default else str(value) for value in tunable.values
            )
            table.add_row("", escape(f"  {tunable.name} {values}"))
    output().print(table)


kernels.add(list_kernels, "list")


@kernels.add
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    layer: Annotated[str, typer.Argument(metavar="LAYER", help="A layer's name or number.")],
    device: GpuDeviceOption = "gpu",
    precision: PrecisionOption = "exact",
    kernels: KernelsOption = "tuned",
    as_json: JsonOption = False,
) -> None:
    """Print the OpenCL programs that compute a layer, as the driver compiles them.

    Includes are replaced by their text, and everything that is known about the
    layer is defined. `| cpp -P` also resolves conditions and macros.
    """
    from phonebit.bnn_kernels.sources import with_comments
    from phonebit.devices.target import find_gpu_target
    from phonebit.network import Network

    find_gpu_target(device, "showing a layer's kernels")
    network = Network.load(file, device=device, precision=precision, kernels=kernels)
    index = _index([info.name for info in network.layers], layer)
    programs = [
        {"kernel": kernel, "source": with_comments(kernel, text)}
        for kernel, text in network.programs(index)
    ]
    info = network.layers[index]
    if as_json:
        print_json({"layer": info.name, "choice": info.kernel, "programs": programs})
        return
    print(f"// Layer {info.name} on {network.device}: {info.kernel or 'no kernel'}")
    for program in programs:
        print(f"\n{program['source']}", end="")


def _index(names: list[str], layer: str) -> int:
    """The place of a layer that is given by its name or number."""
    if layer in names:
        return names.index(layer)
    if layer.isdecimal() and int(layer) < len(names):
        return int(layer)
    raise InputError(
        "there is no such layer",
        where="LAYER",
        got=repr(layer),
        expected=f"a number below {len(names)} or one of {', '.join(names)}",
    )
