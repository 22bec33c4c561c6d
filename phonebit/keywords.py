"""Keywords that a typed dictionary declares once for several functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_keywords(given: Mapping[str, Any], declared: type[Any]) -> None:
    """Refuses a keyword that a typed dictionary does not declare, as Python itself does.

    Raises:
        TypeError: there is no keyword of a name.
    """
    known = declared.__annotations__
    if unknown := [name for name in given if name not in known]:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; known: {', '.join(known)}")
