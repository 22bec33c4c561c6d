"""What qemu says about executed blocks."""

from __future__ import annotations

from collections import Counter

from benchmarks.phones.blocks import Block, joined, parse_log

LOG = b"""\
----------------
IN: main
0x00400580:  d2800000  mov      x0, #0
0x00400584:  d65f03c0  ret

Trace 0: 0x7f00100 [80081009331/0000000000400580/00000001/00000200] main
Trace 0: 0x7f00100 [80081009331/0000000000400580/00000001/00000200] main
----------------
IN:
0x00400600:  d503201f  nop

Trace 0: 0x7f00240 [80081009331/0000000000400600/00000001/00000200]
----------------
IN: main
0x00400580:  d2800000  mov      x0, #0

Trace 0: 0x7f00580 [80081009332/0000000000400580/00000001/00000200] main
Trace 0: 0x7f00240 [80081009331/0000000000400600/00000001/00000200]
"""


def test_executions_by_block() -> None:
    """A block that is translated again, for other flags, is another one."""
    assert parse_log(LOG.splitlines(keepends=True)) == {
        ("main", ("d2800000", "d65f03c0")): 2,
        ("?", ("d503201f",)): 2,
        ("main", ("d2800000",)): 1,
    }


def test_blocks_that_qemu_cuts_are_joined() -> None:
    """Those that fall into the next one; the rest of its executions jump there."""
    head, loop, rest = (
        Block("f", ("0xaa", "0xd503201f")),
        Block("f", ("d503201f",)),
        Block("f", ("54ffffe1",)),
    )
    found = Counter({(0x1FF8, head): 1, (0x1FFC, loop): 5, (0x2000, rest): 7})
    assert joined(found) == {
        Block("f", head.code + rest.code): 1,
        Block("f", loop.code + rest.code): 5,
        rest: 1,
    }


def test_what_ends_by_a_branch_stays() -> None:
    """Jumps, calls, returns, and calls of the system."""
    for last in (
        "54ffffe1",
        "0xd65f03c0",
        "b4000040",
        "37000040",
        "94000000",
        "14000000",
        "d4000001",
    ):
        after = Block("f", ("d65f03c0",))
        found = Counter({(0x1FFC, Block("f", (last,))): 3, (0x2000, after): 3})
        assert joined(found) == {Block("f", (last,)): 3, after: 3}
