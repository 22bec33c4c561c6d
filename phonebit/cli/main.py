"""``phonebit``: the commands joined, and the entry point."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from phonebit.cli.android import android
from phonebit.cli.batch import batch
from phonebit.cli.bench import bench
from phonebit.cli.collect import collect
from phonebit.cli.compare import compare
from phonebit.cli.completion import completion
from phonebit.cli.console import CommandGroup
from phonebit.cli.convert import convert
from phonebit.cli.demo import demo
from phonebit.cli.devices import devices
from phonebit.cli.doctor import doctor
from phonebit.cli.estimate import estimate
from phonebit.cli.eval import evaluate
from phonebit.cli.export import export
from phonebit.cli.inspect import inspect
from phonebit.cli.kernels import kernels
from phonebit.cli.models import models
from phonebit.cli.pipes import end_with_reader, escape_unknown_characters
from phonebit.cli.plan import plan
from phonebit.cli.profile import profile
from phonebit.cli.run import run
from phonebit.cli.selftest import selftest
from phonebit.cli.train_predictor import train_predictor
from phonebit.cli.tune import tune
from phonebit.cli.verify import verify
from phonebit.cli.web import web

app = CommandGroup("phonebit", "Convert, run, check and measure binary neural networks.")
for command in (
    convert, inspect, export, run, verify, evaluate, batch, bench, profile, compare, estimate,
    devices, selftest, tune, collect, train_predictor, plan, demo, models, web, doctor, completion,
):  # fmt: skip
    app.add(command, "eval" if command is evaluate else None)  # a function eval would hide Python's
app.add_typer(android)
app.add_typer(kernels)


def _print_version(wanted: bool) -> None:
    if wanted:
        import phonebit

        print(f"phonebit {phonebit.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", hidden=True, help="Show the log, and tracebacks of errors.")
    ] = False,
) -> None:
    """Convert, run, check and measure binary neural networks."""
    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")


def main() -> None:
    """The command line.

    Ends the process with 0, 1 (verify found a mismatch, a kernel failed its self-test), 2 (error)
    or 130 (interrupted); by SIGPIPE if what reads its output ends first.
    """
    escape_unknown_characters()
    end_with_reader()
    if sys.argv[1:] in (["help"], ["version"]):
        sys.argv[1] = f"--{sys.argv[1]}"
    app()
