"""Executed blocks from the log of a qemu-user that has no plugins, as Debian's static ones.

Slower than the plugin, by ten times and more: a line a block executed.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence

Code = tuple[str, tuple[str, ...]]
"""The function and the instructions of a block, as hexadecimal words."""


def logged_blocks(run: Sequence[str]) -> Counter[Code]:
    """What a program executes, which must not fail.

    Args:
        run: qemu-aarch64, its options, and the program with its arguments.

    Raises:
        RuntimeError: It failed.
    """
    reading, writing = os.pipe()
    log = ["-d", "exec,nochain,in_asm", "-D", f"/dev/fd/{writing}"]
    with subprocess.Popen(
        [run[0], *log, *run[1:]], stdout=subprocess.DEVNULL, pass_fds=[writing]
    ) as process:
        os.close(writing)
        with os.fdopen(reading, "rb") as lines:
            found = parse_log(lines)
    if process.returncode:
        raise RuntimeError(f"{' '.join(run)} ended with {process.returncode}")
    return found


def parse_log(lines: Iterable[bytes]) -> Counter[Code]:
    """Executions by block.

    A block is described when it is translated ("IN: function", then a line an instruction), and
    named by its address when it runs ("Trace 0: HOST [FLAGS/ADDRESS/...] function").
    """
    executions: dict[bytes, int] = {}
    by_line: dict[bytes, Code] = {}
    by_address: dict[int, Code] = {}
    function, address, words = "?", 0, list[str]()
    for line in lines:
        if line in executions:
            executions[line] += 1
        elif line.startswith(b"Trace "):  # the block's first time
            executions[line] = 1
            by_address[address] = function, tuple(words)
            by_line[line] = by_address[int(line.split(b"/", 2)[1], 16)]
        elif line.startswith(b"IN:"):
            by_address[address] = function, tuple(words)
            function, address, words = line[3:].strip().decode() or "?", 0, []
        elif line.startswith(b"0x"):
            where, word, *_ = line.split()
            address = address or int(where.rstrip(b":"), 16)
            words.append(word.decode())
    found: Counter[Code] = Counter()
    for line, count in executions.items():
        found[by_line[line]] += count
    return found
