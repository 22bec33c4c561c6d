"""Cycles of executed blocks by llvm-mca: all loads in L1, no overlap between blocks."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence

from benchmarks.cpu_kernels.neon_mca import find_llvm_mca
from benchmarks.phones.blocks import Block, Blocks

FEATURES = "+v8.6a,+dotprod,+i8mm,+sve"
ITERATIONS = 50
WEIGHED_SHARE = 0.998
"""Of the instructions; the blocks that run the fewest times count as the others do on average."""
UNKNOWN = re.compile(
    r"svc|mrs|msr|dmb|dsb|isb|ld\w*xr|st\w*xr|brk|hint|clrex|prfm|dc\b|cas|swp|ldadd"
)
"""What models of cores do not describe."""

Code = tuple[str, ...]


class Weigher:
    """Cycles of blocks; those that were weighed before are remembered."""

    def __init__(self, models: Iterable[str], is_bound: bool = False) -> None:
        """Takes llvm-mca's names of the cores, which may share one.

        Args:
            models: The names.
            is_bound: Weigh the vector operations alone, as fast as the core begins them.
        """
        self.is_bound = is_bound
        self.mca = find_llvm_mca()
        self.models = list(models)
        self.known: dict[str, dict[Code, float]] = {model: {} for model in self.models}

    def by_function(self, blocks: Blocks) -> dict[str, list[float]]:
        """An inference's instructions, those of the vector units, cycles per core, by function."""
        hot = _hottest(blocks)
        for model, cycles in self.known.items():
            codes = list({block.code for block in hot} - cycles.keys())
            if codes:
                cycles |= zip(codes, self._predict(model, codes), strict=True)
        total = sum(len(block.code) * count for block, count in blocks.items())
        weighed = sum(len(block.code) * count for block, count in hot.items())
        found: dict[str, list[float]] = defaultdict(lambda: [0.0] * (2 + len(self.models)))
        for block, count in hot.items():
            row = found[block.function]
            row[0] += count * len(block.code) * total / weighed
            row[1] += count * len(_vector_operations(block.code)) * total / weighed
            for place, model in enumerate(self.models):
                row[2 + place] += count * self.known[model][block.code] * total / weighed
        return dict(found)

    def _predict(self, model: str, codes: Sequence[Code]) -> list[float]:
        kept = [_vector_operations(code) for code in codes] if self.is_bound else codes
        regions = [
            f"# LLVM-MCA-BEGIN b{place}\n{text}\n# LLVM-MCA-END\n"
            for place, text in enumerate(self._assembly(kept))
            if text
        ]
        command = [self.mca, "-mtriple=aarch64", f"-mcpu={model}", f"-mattr={FEATURES}",
                   f"-iterations={ITERATIONS}"]  # fmt: skip
        done = subprocess.run(command, input="".join(regions), capture_output=True, text=True)
        kind, divisor = ("Block RThroughput", 1) if self.is_bound else ("Total Cycles", ITERATIONS)
        pattern = rf"\[\d+\] Code Region - b(\d+)\n.*?{kind}:\s+([\d.]+)"
        found = {int(place): float(total) / divisor
                 for place, total in re.findall(pattern, done.stdout, re.DOTALL)}  # fmt: skip
        if not found:
            raise RuntimeError(f"{self.mca} -mcpu={model} printed no cycles:\n{done.stderr[:2000]}")
        return [found.get(place, len(code) / 2) for place, code in enumerate(kept)]

    def _assembly(self, codes: Sequence[Code]) -> list[str]:
        """A text a block."""
        hexadecimal = "\n".join(
            " ".join(
                f"0x{byte:02x}" for word in code for byte in int(word, 16).to_bytes(4, "little")
            )
            for code in codes
        )
        command = [self.mca.replace("llvm-mca", "llvm-mc"), "--disassemble", "-triple=aarch64",
                   f"-mattr={FEATURES}"]  # fmt: skip
        done = subprocess.run(
            command, input=hexadecimal, capture_output=True, text=True, check=True
        )
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith(".")]
        if len(lines) != sum(map(len, codes)):
            raise RuntimeError(f"{command[0]} disassembled {len(lines)} of {sum(map(len, codes))}")
        texts, begin = [], 0
        for code in codes:
            own = lines[begin : begin + len(code)]
            begin += len(code)
            texts.append("\n".join(line for line in own if not UNKNOWN.match(line)))
        return texts


def _vector_operations(code: Code) -> Code:
    """Those of the group "data processing, SIMD and floating point": bits 25 to 27 are set."""
    return tuple(word for word in code if int(word, 16) >> 25 & 7 == 7)


def _hottest(blocks: Blocks) -> dict[Block, float]:
    """The blocks that together execute nearly all instructions."""
    left = (1 - WEIGHED_SHARE) * sum(len(block.code) * count for block, count in blocks.items())
    found: dict[Block, float] = dict(blocks)
    for block, count in sorted(blocks.items(), key=lambda item: item[1] * len(item[0].code)):
        left -= len(block.code) * count
        if left < 0:
            break
        del found[block]
    return found
