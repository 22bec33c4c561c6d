"""``phonebit selftest``: do the kernels compute the right thing on this device?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import EXIT_CHECK_FAILED, output, print_json, progress
from phonebit.cli.options import GpuDeviceOption, JsonOption
from phonebit.devices.gpus import gpu_runtime
from phonebit.devices.target import find_gpu_target
from phonebit.devices.tuning_store import cache_folder
from phonebit.display import escape_markup as escape


@dataclass(frozen=True)
class KernelTest:
    """One kernel variant, compared with the CPU backend on small random problems.

    Attributes:
        op: what it computes.
        choice: kernel and parameters.
        passed: whether its results are right.
        detail: what was wrong.
    """

    op: str
    choice: str
    passed: bool
    detail: str


def selftest(
    device: GpuDeviceOption = "gpu",
    again: Annotated[
        bool, typer.Option("--again", help="Repeat tests that have a stored result.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare every kernel variant with the CPU backend on an OpenCL device.

    A failing variant is not used; the next one runs in its place.
    Exit code 0: all passed, 1: one failed, 2: no such device.
    """
    target = find_gpu_target(device, "the self-test")
    with progress("testing kernels", None, quiet=as_json):
        rows = gpu_runtime().gpu_self_test(target.device, str(cache_folder() or ""), again)
    tests = [KernelTest(*row) for row in rows]
    failed = sum(not test.passed for test in tests)
    if as_json:
        document = {
            "device": target.device,
            "key": target.key,
            "failed": failed,
            "tests": [asdict(test) for test in tests],
        }
        print_json(document)
    else:
        _print(output(), target.key, tests)
    if failed:
        raise typer.Exit(EXIT_CHECK_FAILED)


def _print(console: Console, key: str, tests: list[KernelTest]) -> None:
    console.print(f"[bold]{escape(key)}[/]", soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("op", no_wrap=True)
    table.add_column("kernel", no_wrap=True)
    table.add_column("parameters", overflow="fold")
    table.add_column("")
    table.add_column("", overflow="fold")
    for test in tests:
        kernel, _, parameters = test.choice.partition(" ")
        verdict = "[green]passed[/]" if test.passed else "[bold red]failed[/]"
        detail = escape(test.detail)
        table.add_row(escape(test.op), escape(kernel), escape(parameters), verdict, detail)
    console.print(table)
    failed = sum(not test.passed for test in tests)
    if failed:
        console.print(f"[bold red]{failed} of {len(tests)} variants failed[/], they are not used")
    else:
        console.print(f"[bold green]all {len(tests)} variants passed[/]")
