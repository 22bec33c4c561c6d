"""What a log of qemu's says about executed blocks."""

from __future__ import annotations

from benchmarks.phones.blocks import parse_log

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
