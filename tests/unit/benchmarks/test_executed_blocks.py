"""What qemu says about executed blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.phones import count, misses
from benchmarks.phones.blocks import Block, joined, parse_log
from benchmarks.phones.cores import CACHES

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


def test_another_engines_waits_are_counted_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its command: three passes less one, halved, so that neither start nor end counts."""
    assert count.command_of("bench --num_runs={passes} 'a model'")(3) == [
        "bench", "--num_runs=3", "a model",
    ]  # fmt: skip

    def run(options: str, command: Sequence[str], cpu: str) -> None:
        passes, start = int(command[1].removeprefix("--num_runs=")), 1000
        assert (command[0], cpu) == ("bench", "cortex-a72")
        counts = " ".join(str(start + passes * each) for each in (400, 30, 6))
        [out] = [word for word in options.split(",") if word.startswith("out=")]
        Path(out.removeprefix("out=")).write_text(f"conv {counts}\n")

    monkeypatch.setattr(misses, "run_with_plugin", run)
    monkeypatch.setattr(misses, "plugin", lambda source: source)
    command = count.command_of("bench --num_runs={passes} model")
    caches = CACHES["a72"]
    latency = 400 * caches.l2_cycles + 30 * caches.memory_cycles
    expected = latency / caches.in_flight + 6 * caches.stream_cycles
    found = misses.waits_of_an_inference(command, "cortex-a72", ["a72"])
    assert found == {"conv": [pytest.approx(expected)]}
