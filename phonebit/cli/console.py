"""What all commands share: where text goes, JSON output, progress, turning errors into one line."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
)
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType

from phonebit.cli.groups import with_groups
from phonebit.display import escape_markup as escape
from phonebit.display import printable_lines
from phonebit.errors import InputError, PhoneBitError, PhoneBitWarning
from phonebit.missing_files import missing_file

FIRST_LINE_SECONDS = 5.0
NEXT_LINE_SECONDS = 30.0
EXIT_CHECK_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, text: str, pieces: int = 1) -> None:
        """Say what comes next, and that so many pieces of work are finished."""


def output() -> Console:
    """Console for results: standard output, no line cut to hide text when it is not a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(console.width, 120))
    return console


def messages() -> Console:
    """Console for errors, warnings and progress: standard error."""
    return Console(stderr=True, highlight=False)


def print_json(document: object) -> None:
    """Print one JSON document; numbers that JSON lacks (NaN, infinity) become null."""
    in_ascii = "utf" not in (sys.stdout.encoding or "").lower()
    text = json.dumps(_jsonable(document), indent=2, ensure_ascii=in_ascii, allow_nan=False)
    print(text.encode(errors="backslashreplace").decode())  # bytes that are no UTF-8 in paths


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def progress(first: str, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """Show a progress bar on standard error while a block runs.

    Args:
        first: what is being done at the start.
        total: pieces of work, or None if unknown.
        quiet: show nothing. Where standard error is not a terminal, a line after some seconds says
            what is being done.

    Yields:
        Function that moves the bar, by one piece unless told otherwise, and names the next.
    """
    console = messages()
    if quiet:
        yield lambda text, pieces=1: None
        return
    if not console.is_terminal:
        with _lines_of_progress(first, total) as advance:
            yield advance
        return
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}")]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(first), total=total)
        yield lambda text, pieces=1: bar.update(task, advance=pieces, description=escape(text))


@contextmanager
def _lines_of_progress(first: str, total: int | None) -> Iterator[Advance]:
    """For logs and pipes: a line if the block takes long, then one from time to time."""
    done, doing, begin, ended = 0, first, time.monotonic(), threading.Event()

    def advance(text: str, pieces: int = 1) -> None:
        nonlocal done, doing
        done, doing = done + pieces, text

    def say() -> None:
        pause = FIRST_LINE_SECONDS
        while not ended.wait(pause):
            count = "" if total is None else f", {done} of {total}"
            seconds = time.monotonic() - begin
            sys.stderr.write(printable_lines(f"{doing}{count} ({seconds:.0f} s)") + "\n")
            sys.stderr.flush()
            pause = NEXT_LINE_SECONDS

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        ended.set()
        thread.join()


class CommandGroup(typer.Typer):
    """Commands that report errors alike; ``phonebit`` itself and its groups."""

    def __init__(self, name: str, text: str) -> None:
        """An empty group with its name and help."""
        super().__init__(
            name=name,
            help=text,
            cls=ErrorReportingGroup,
            no_args_is_help=True,
            add_completion=False,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def add(self, function: CommandFunctionType, name: str | None = None) -> CommandFunctionType:
        """Make a function a command, also as a decorator."""
        self.command(name, cls=JsonErrorsCommand)(with_groups(function))
        return function


class PlainHelp:
    """Commands whose help shows FILE, not {FILE} <path>, and a|b, not <a|b> or <bool>."""

    def get_params(self, ctx: Any) -> Any:
        """Options and arguments, for click's help."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.param_type_name == "argument":
                _plain_argument(param)
            elif getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.metavar is None and hasattr(param, "display_type"):  # else an older Typer
                param.metavar = param.display_type(ctx).strip("<>")
        return params


def _plain_argument(param: Any) -> None:
    name = param.metavar or param.name.upper()
    shown = name if param.required else f"[{name}]"
    param.get_usage_pieces = lambda _ctx: [shown if param.nargs == 1 else f"{shown}..."]
    param.display_type_rich = lambda ctx: ""


class JsonErrorsCommand(PlainHelp, TyperCommand):
    """Command whose error is a JSON document, too, if ``--json`` was given."""

    def make_context(self, info_name: Any, args: Any, *more: Any, **others: Any) -> Any:
        """Parse the arguments; a usage error goes on to the group."""
        wants_json = "--json" in args
        try:
            return super().make_context(info_name, args, *more, **others)
        except Exception as error:
            if wants_json and hasattr(error, "format_message"):  # click's, of whichever copy
                message = error.format_message()
                print_json({"error": {"kind": "UsageError", "message": message}})
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error goes on to the group."""
        try:
            return super().invoke(ctx)
        except (PhoneBitError, OSError, KeyboardInterrupt) as error:
            if not ctx.params.get("verbose"):
                vars(error).pop("__notes__", None)
            if ctx.params.get("as_json"):
                print_json({"error": _error_record(error)})
            raise


class ErrorReportingGroup(PlainHelp, TyperGroup):
    """Command group that ends with one clear line: code 2 for errors, 130 after Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see the class.

        Args:
            ctx: a click context (Typer ships its own copy of click, so the class has no one name).

        Returns:
            What the command returns.

        Raises:
            typer.Exit: with code 2 or 130, after the error has been reported.
        """
        try:
            with warnings_as_lines():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            report_error("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except (PhoneBitError, OSError) as error:
            if ctx.find_root().params.get("debug"):
                raise
            report_error(error_text(error))
            raise typer.Exit(EXIT_BAD_INPUT) from None


def report_error(text: str) -> None:
    """Print an error to standard error: plain text, so that names in it never act."""
    _report("error:", "bold red", text)


def _report(heading: str, style: str, text: str) -> None:
    messages().print(heading, style=style, end=" ")
    sys.stderr.write(printable_lines(text) + "\n")
    sys.stderr.flush()


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print PhoneBit's warnings as one line each on standard error, without a line of code."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PhoneBitWarning):
            _report("warning:", "yellow", str(message))
        else:
            usual(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", PhoneBitWarning)
        usual = warnings.showwarning
        warnings.showwarning = show
        yield


def _error_record(error: BaseException) -> dict[str, Any]:
    """What a program may want to know of an error."""
    if isinstance(error, KeyboardInterrupt):
        return {"kind": "Interrupted", "message": "interrupted"}
    parts = ("what", "where", "expected", "got", "hint", "problems")
    known = {part: getattr(error, part) for part in parts if getattr(error, part, None)}
    texts = {part: value if part == "problems" else str(value) for part, value in known.items()}
    return {"kind": type(error).__name__, "message": error_text(error), **texts}


def error_text(error: BaseException) -> str:
    """What a user is told of an error."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return str(missing_file(error.filename, InputError))
    if isinstance(error, OSError) and not isinstance(error, PhoneBitError):
        reason = error.strerror or str(error)
        return f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason
    return "\n".join([str(error), *getattr(error, "__notes__", ())])
