"""What plans must know of the file's operators, from the runtime's own table."""

from __future__ import annotations

from typing import Final

from phonebit.compiled import load_runtime
from phonebit.format.records import OpKind

_TABLE: Final[list[tuple[int, str, str, str]]] = load_runtime().operators()

ROWS_READ: Final = {OpKind(number): rows for number, rows, _, _ in _TABLE}
"""Which rows of its operands an op reads: those under its "window", the "same", the same less its
padding on top ("padded"), or "all"."""
CHANNELS_READ: Final = {OpKind(number): channels for number, _, channels, _ in _TABLE}
"""Which channels of its operands: the "same", or "all"."""
CUTS: Final = {OpKind(number): cuts for number, _, _, cuts in _TABLE}
"""Between what its output may be cut: "none", "rows" or "rows_and_channels"; channels of
convolutions only without groups."""


def cuts_channels(kind: OpKind, groups: int) -> bool:
    """Whether an op's output may be cut between channels."""
    return CUTS[kind] == "rows_and_channels" and (CHANNELS_READ[kind] == "same" or groups == 1)
