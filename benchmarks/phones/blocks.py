"""Executed instructions of an AArch64 program, block by block, counted under qemu-user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

PLUGIN_SOURCE = Path(__file__).with_name("count_blocks.c")
QEMU = "qemu-aarch64"
SHORT_PASSES, LONG_PASSES = 1, 3
MIN_EXECUTIONS = 0.4  # per inference; what is below is the start of the program
BRANCH = re.compile(r"(0x)?([13579b][4-7]|d[467])")  # or a call of the system: the word's beginning


class Block(NamedTuple):
    """Instructions that run one after the other."""

    function: str  # where they are, as the compiler calls it; "?": unknown
    code: tuple[str, ...]  # the instructions as hexadecimal words


Blocks = Counter[Block]
"""Executions by block."""

Placed = Counter[tuple[int, Block]]
"""Executions by address and block."""


def executed_blocks(command: Sequence[str], cpu: str, static_qemu: str = "") -> Blocks:
    """What a program for AArch64 Linux, of one thread, executes on a CPU of ``qemu-aarch64``.

    ``static_qemu`` is a qemu-aarch64 without plugins; "": the system's, which has them.
    """
    if static_qemu:
        return _logged(static_qemu, ["-cpu", cpu, *command])
    with tempfile.NamedTemporaryFile() as counts:
        run_with_plugin(f"{plugin(PLUGIN_SOURCE)},out={counts.name}", command, cpu)
        found: Placed = Counter()
        for line in Path(counts.name).read_text().splitlines():
            count, address, function, *code = line.split()
            found[int(address, 16), Block(function, tuple(code))] += int(count)
        return joined(found)


def joined(found: Placed) -> Blocks:
    """Whole blocks: qemu cuts long ones, and all at the ends of pages.

    What is executed up to an end without a branch goes on after it.
    """
    whole: Blocks = Counter()
    after: dict[int, list[tuple[Block, int]]] = defaultdict(list)  # by address, what is left
    for (address, block), count in sorted(found.items(), reverse=True):
        end = address + 4 * len(block.code)
        left = 0 if BRANCH.match(block.code[-1]) else count
        parts = after[end]
        for place, (rest, rest_count) in enumerate(parts):
            both = min(left, rest_count)
            if both > 0:
                parts[place] = (rest, rest_count - both)
                after[address].append((Block(block.function, block.code + rest.code), both))
                count, left = count - both, left - both
        after[address].append((block, count))
    for parts in after.values():
        for block, count in parts:
            whole[block] += count
    return +whole


def run_with_plugin(options: str, command: Sequence[str], cpu: str) -> None:
    """Runs a program under the system's qemu with a plugin: its file, and what it is told."""
    run = [_tool(QEMU, "qemu-user"), "-cpu", cpu, "-plugin", options, *command]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(run)} ended with {done.returncode}:\n{done.stderr}")


def _logged(qemu: str, run: Sequence[str]) -> Blocks:
    """By the log of a qemu that has no plugins, as Debian's static ones: a line a block executed.

    That takes ten times as long and more.
    """
    reading, writing = os.pipe()
    command = [qemu, "-d", "exec,nochain,in_asm", "-D", f"/dev/fd/{writing}", *run]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=[writing]) as process:
        os.close(writing)
        with os.fdopen(reading, "rb") as lines:
            found = parse_log(lines)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return found


def parse_log(lines: Iterable[bytes]) -> Blocks:
    """Executions by block.

    A block is described when it is translated ("IN: function", then a line an instruction), and
    named by its address when it runs ("Trace 0: HOST [FLAGS/ADDRESS/...] function").
    """
    executions: dict[bytes, int] = {}
    by_line: dict[bytes, Block] = {}
    by_address: dict[int, Block] = {}
    function, address, words = "?", 0, list[str]()
    for line in lines:
        if line in executions:
            executions[line] += 1
        elif line.startswith(b"Trace "):  # the block's first time
            executions[line] = 1
            by_address[address] = Block(function, tuple(words))
            by_line[line] = by_address[int(line.split(b"/", 2)[1], 16)]
        elif line.startswith(b"IN:"):
            by_address[address] = Block(function, tuple(words))
            function, address, words = line[3:].strip().decode() or "?", 0, []
        elif line.startswith(b"0x"):
            where, word, *_ = line.split()
            address = address or int(where.rstrip(b":"), 16)
            words.append(word.decode())
    found: Placed = Counter()
    for line, count in executions.items():
        found[int(line.split(b"/", 2)[1], 16), by_line[line]] += count
    return joined(found)


def blocks_of_an_inference(
    command: Callable[[int], Sequence[str]],
    cpu: str,
    static_qemu: str = "",
    long_passes: int = LONG_PASSES,
) -> Blocks:
    """What one pass executes: many passes less few, so that neither start nor end counts."""
    short, long = (
        executed_blocks(command(passes), cpu, static_qemu) for passes in (SHORT_PASSES, long_passes)
    )
    found: Blocks = Counter()
    for block, count in long.items():
        executions = (count - short[block]) / (long_passes - SHORT_PASSES)
        if executions > MIN_EXECUTIONS:
            found[block] = executions  # type: ignore[assignment]
    return found


@lru_cache
def plugin(source: Path) -> Path:
    """A compiled plugin of qemu."""
    library = Path(tempfile.mkdtemp(prefix=source.stem)) / f"{source.stem}.so"
    compiler = _tool("cc", "gcc")
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    return library


def _tool(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise RuntimeError(f"{name} not found; apt-get install {package}")
    return path


def readable(functions: Sequence[str]) -> list[str]:
    """Names of functions without namespaces and arguments."""
    filtered = subprocess.run(
        [_tool("c++filt", "binutils"), "-p"], input="\n".join(functions), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    noise = r"phonebit::(engine::)?|\bcpu::|\(anonymous namespace\)::|\(\.\w+\)|\[clone [^]]*\]"
    return [re.sub(noise, "", name).strip() for name in filtered.stdout.splitlines()]
