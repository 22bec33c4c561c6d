"""Writes bnn_kernels/vulkan.modules: all kernels as one SPIR-V module, which the library embeds.

    python3.11 packaging/vulkan/modules.py [--check]

Needs pyclspv, whose version is part of the result, and spirv-tools. ``--check`` compares with the
file that is there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import module_text
from merge import Merger, with_small_words
from rewrite import Rewriter

FILE = Path(__file__).parents[2] / "bnn_kernels" / "vulkan.modules"
LIMIT_BYTES = 300_000
COMPILE = """
import pyclspv, pathlib, sys
text, binary = map(pathlib.Path, sys.argv[1:])
binary.write_bytes(pyclspv.compile(text.read_text(encoding="utf-8")))
"""
OPTIMIZE = [
    "--eliminate-dead-code-aggressive",
    "--simplify-instructions",
    "--eliminate-dead-branches",
]


def main() -> int:
    """Returns 1 where the file is not what the sources make."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file that is there")
    is_check = parser.parse_args().check
    modules = list(module_text.modules())
    merger = Merger()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        paths = [Path(folder) / str(number) for number in range(len(modules))]
        made = list(pool.map(compiled, modules, paths))
        for module, (binary, lists) in zip(modules, made, strict=True):
            merger.add(
                binary,
                module.key(),
                module.sink_buffers(),
                dict.fromkeys(lists, "steps"),
            )
        whole = Path(folder) / "whole.spv"
        whole.write_bytes(merger.binary(made[0][0]))
        run("spirv-val", "--target-env", "vulkan1.1", whole)
        header = " ".join(module_text.CONSTANTS) + "\n" + ",".join(module_text.step_names()) + "\n"
        text = header.encode() + with_small_words(whole.read_bytes())
    if is_check:
        old = FILE.read_bytes()
        if zlib.decompress(old[4:], -15) == text:
            return 0
        print(
            f"{FILE} is not what the sources make: python3.11 packaging/vulkan/modules.py",
            file=sys.stderr,
        )
        return 1
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    data = len(text).to_bytes(4, "little") + compressor.compress(text) + compressor.flush()
    print(f"{len(modules)} kernels, {len(text)} bytes, {len(data)} compressed")
    if len(data) > LIMIT_BYTES:
        sys.exit(f"more than {LIMIT_BYTES} bytes")
    FILE.write_bytes(data)
    return 0


def compiled(module: module_text.Module, path: Path) -> tuple[bytes, list[int]]:
    """One kernel's module, and its functions that are lists of steps."""
    text, binary, small = (path.with_suffix(suffix) for suffix in (".cl", ".spv", ".small"))
    text.write_text(module_text.text_of(module), encoding="utf-8")
    try:
        run(sys.executable, "-c", COMPILE, text, binary)
    except RuntimeError as error:
        raise RuntimeError(f"{module.key()}: {error}") from None
    counts = (len(module_text.CONSTANTS), len(module_text.step_functions()))
    rewriter = Rewriter(binary.read_bytes(), module_text.FIRST_MARK, *counts)
    binary.write_bytes(rewriter.module())
    if rewriter.listed not in (0, len(module_text.step_names())):
        raise RuntimeError(f"{module.key()}: {rewriter.listed} steps are called")
    run("spirv-opt", "--target-env=vulkan1.1", *OPTIMIZE, binary, "-o", small)
    return small.read_bytes(), rewriter.lists


def run(*command: str | Path) -> None:
    """Raises RuntimeError with what a failing command said."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"{command[0]}: {(done.stderr + done.stdout).strip()[-2000:] or done.returncode}"
        )


if __name__ == "__main__":
    sys.exit(main())
