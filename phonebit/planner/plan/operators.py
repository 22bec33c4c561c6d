"""What plans must know of the file's operators, from the runtime's own table."""

from __future__ import annotations

from typing import Final

from phonebit.compiled import load_runtime
from phonebit.format.records import OpKind

_TABLE: Final = load_runtime().operators()

ROWS_READ: Final = {OpKind(number): rows for number, rows, _ in _TABLE}
"""Which rows of its operands an op reads: those under its "window", the "same", the same less its
padding on top ("padded"), or "all"."""
CUTS: Final = {OpKind(number): cuts for number, _, cuts in _TABLE}
"""Between what its output may be cut: "none", "rows" or "rows_and_channels"; channels only of
convolutions without groups."""
