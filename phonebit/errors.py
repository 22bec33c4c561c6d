"""Every exception that PhoneBit raises on purpose, and its warning.

Callers catch ``PhoneBitError`` to handle all of them; the command line turns it into one line of
text and exit code 2. A message says what failed, where, what was expected, what was found and what
to do about it: the constructor takes these parts one by one so that none is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from phonebit.display import printable_lines

MAX_CHARACTERS: Final = 500
"""Of what was found, in a message."""


class PhoneBitError(Exception):
    """Base of the hierarchy.

    Args:
        what: What failed, in one clause.
        where: Layer, file or argument in which it failed.
        expected: What would have been right.
        got: What was found instead.
        hint: What the user can do about it.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: object | None = None,
        got: object | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(printable_lines(self._message()))

    def _message(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        sides = []
        if self.expected is not None:
            sides.append(f"expected {self.expected}")
        if self.got is not None:
            sides.append(f"got {_shortened(str(self.got))}")
        if sides:
            text += f" ({', '.join(sides)})"
        if not self.hint:
            return text
        return f"{text}{self.hint}" if text.endswith("\n") else f"{text}; {self.hint}"


def _shortened(text: str) -> str:
    """What was found may be a whole damaged file."""
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


class ModelFormatError(PhoneBitError):
    """A ``.pbit`` file (or a checkpoint) is truncated, damaged, too new or otherwise malformed."""


class ConversionError(PhoneBitError):
    """A network cannot be converted; ``problems`` lists everything that is wrong with it.

    Args:
        problems: One message, or the messages of all problems found.
        where: Layer or file.
        hint: What the user can do about it.
    """

    def __init__(
        self,
        problems: str | Sequence[str],
        *,
        where: str | None = None,
        expected: object | None = None,
        got: object | None = None,
        hint: str | None = None,
    ) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        if len(self.problems) == 1:
            what = self.problems[0]
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            what = f"{len(self.problems)} problems:{lines}\n"
        super().__init__(what, where=where, expected=expected, got=got, hint=hint)


class UnsupportedLayerError(ConversionError):
    """The network has layers (all of them in ``problems``) that PhoneBit does not know.

    Attributes:
        reasons: What is wrong, by the names of layers.
    """

    reasons: Mapping[str, str] = MappingProxyType({})


class InputError(PhoneBitError):
    """An array or an image does not fit the network's input."""


class DeviceError(PhoneBitError):
    """A compute device is absent, cannot run the network, or failed while running it."""


class CancelledError(PhoneBitError):
    """An inference was ended by ``Network.cancel``."""


class VerificationError(PhoneBitError):
    """A converted network does not compute what its source computes."""


class PhoneBitWarning(RuntimeWarning):
    """Something works, but not as well as it could: a kernel was disabled, a cache entry ignored.

    Turn it into an error with ``warnings.simplefilter("error", phonebit.PhoneBitWarning)``.
    """
