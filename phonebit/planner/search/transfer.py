"""Which rows of a tensor one processor wrote and the other one has got of them."""

from __future__ import annotations

from typing import NamedTuple

from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.search.network_graph import GraphTensor, RowRange


class Transfer(NamedTuple):
    """One processor's part of a tensor, on its way to the other processor.

    What is handed over is the part's share of all rows from the first to the last that the other
    one reads. So the rows that were read are kept as one range, cut to those of the part: cutting
    first and spanning then gives the same rows as the other way round.

    Args:
        begin: The part's first row.
        end: The row behind its last.
        row_bytes: Of one of its rows; 0 when all of them are handed over.
        read_begin: First row that was read; ``end`` before the first reader.
        read_end: Row behind the last that was read; ``begin`` before the first reader.
    """

    begin: int
    end: int
    row_bytes: int
    read_begin: int
    read_end: int

    @classmethod
    def of(cls, tensor: GraphTensor, part: OutputPart) -> Transfer:
        """A part of which nothing is handed over yet."""
        rows = part.row_end - part.row_begin
        row_bytes = tensor.part_bytes(part) // rows
        return cls(part.row_begin, part.row_end, row_bytes, part.row_end, part.row_begin)

    @property
    def bytes_left(self) -> int:
        """Bytes that are not handed over."""
        got = max(self.read_end - self.read_begin, 0)
        return (self.end - self.begin - got) * self.row_bytes

    def has(self, rows: RowRange) -> bool:
        """Whether some of these rows, which are one at least, are in the part."""
        return max(rows[0], self.begin) < min(rows[1], self.end)

    def read(self, rows: RowRange) -> Transfer:
        """What it is when the other processor has read these rows, too."""
        begin, end, row_bytes, _, _ = self
        read_begin = min(self.read_begin, max(rows[0], begin))
        read_end = max(self.read_end, min(rows[1], end))
        if (read_begin, read_end) == (begin, end):
            row_bytes = 0
        return Transfer(begin, end, row_bytes, read_begin, read_end)
