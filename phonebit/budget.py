"""What one file may ask for: an account of work and memory, kept before anything is computed.

A few bytes of a file can ask for any number of operations or bytes. Code that computes for a file
says first how much it will take. What is over a limit is an error, in a moment and with nothing
spent; and since no step is large, Ctrl-C is seen between two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from phonebit.errors import ConversionError, PhoneBitError


class Kind(Enum):
    """What is counted."""

    OPERATIONS = "operations"
    BYTES = "bytes of arrays"
    TEXT = "bytes of text"


AT_ONCE: Final = {Kind.OPERATIONS: 1 << 28, Kind.BYTES: 1 << 30, Kind.TEXT: 1 << 26}
"""Of one step: about 0.3 s."""
IN_ALL: Final = {
    Kind.OPERATIONS: 1 << 34,
    Kind.BYTES: 8 << 30,
    Kind.TEXT: 1 << 28,
}
"""Of one file."""


@dataclass
class Account:
    """What one file has taken so far.

    Attributes:
        error: What is raised over a limit.
        spent: By kind.
    """

    error: type[PhoneBitError] = ConversionError
    spent: Counter[Kind] = field(default_factory=Counter)

    def spend(self, kind: Kind, amount: int, where: str | None = None) -> None:
        """Counts what is about to be computed, read or made.

        Raises:
            PhoneBitError: It is over a limit, alone or with what was counted before.
        """
        self.spent[kind] += amount
        if amount > AT_ONCE[kind] or self.spent[kind] > IN_ALL[kind]:
            alone = amount > AT_ONCE[kind]
            raise self.error(
                f"asks for too many {kind.value}{' at once' if alone else ''}",
                where=where,
                expected=f"at most {AT_ONCE[kind] if alone else IN_ALL[kind]}",
                got=amount if alone else self.spent[kind],
            )


_open: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def account() -> Iterator[None]:
    """One account for all that is read inside: of one source of a conversion."""
    token = _open.set(_open.get() or Account())
    try:
        yield
    finally:
        _open.reset(token)


def spend(kind: Kind, amount: int, where: str | None = None) -> None:
    """As ``Account.spend``, of the open account; without one each step is judged alone.

    Raises:
        ConversionError: It is over a limit.
    """
    (_open.get() or Account()).spend(kind, amount, where)
