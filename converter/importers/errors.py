"""What importers say of a source that they cannot import."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from phonebit.budget import account
from phonebit.errors import ConversionError, PhoneBitError

MAX_LISTED: Final = 8
"""Names in one message."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C inside stays one, where a framework fails while it cleans up after it.

    Raises:
        KeyboardInterrupt: What is raised inside comes of one.
    """
    handled = _causes(sys.exc_info()[1])  # who converts after a Ctrl-C is not interrupted
    try:
        yield
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in _causes(error) - handled):
            raise KeyboardInterrupt from error
        raise


def _causes(error: BaseException | None) -> set[BaseException]:
    """An exception and all that it was raised from, or in the handling of."""
    causes: set[BaseException] = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop()
        if cause is not None and cause not in causes:
            causes.add(cause)
            waiting += [cause.__cause__, cause.__context__]
    return causes


@contextmanager
def named(where: str, network: str | None = None) -> Iterator[None]:
    """Names the source in what is raised inside, and keeps its account (``phonebit.budget``).

    What is not PhoneBit's is a bug of PhoneBit.

    Args:
        where: The path of the source, or its type.
        network: Its name, if errors name parts of the network: they are then named in the text.
            None: an error that names a place keeps it.
    """
    try:
        with interruptible(), account(), np.errstate(all="ignore"):
            yield
    except ConversionError as error:
        if network is None and error.where is not None:
            raise
        inner = "" if error.where in (None, network) else f"{error.where}: "
        raise type(error)(
            [f"{inner}{problem}" for problem in error.problems],
            where=where,
            expected=error.expected,
            got=error.got,
            hint=error.hint,
        ) from error
    except PhoneBitError:
        raise
    except Exception as error:
        raise ConversionError(
            f"cannot be imported: {first_line(error)}",
            where=where,
            hint="this is a bug in PhoneBit: please report it",
        ) from error


def first_line(error: Exception) -> str:
    """The type of an exception and the first line of its message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def listed(problems: Iterable[tuple[str, str]]) -> list[str]:
    """One message for each kind of problem, after the names of all layers that have it.

    Args:
        problems: Names of layers, and what is wrong with them.
    """
    layers: dict[str, list[str]] = {}
    for layer, problem in dict.fromkeys(problems):
        layers.setdefault(problem, []).append(layer)
    messages = []
    for problem, names in layers.items():
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        messages.append(f"{', '.join(names[:MAX_LISTED])}{more}: {problem}")
    return messages
