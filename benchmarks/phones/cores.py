"""Cores: which CPU is emulated, so that the runtime takes its kernels, and whose model counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Core(NamedTuple):
    """A core."""

    model: str  # llvm-mca's name
    emulated: str  # qemu's name of a CPU with the same instruction sets
    isa: str  # what the runtime takes there


class Caches(NamedTuple):
    """First and second cache of a core, with lines of 64 bytes, and what a load waits for them."""

    l1_kb: int
    l1_ways: int
    l2_kb: int
    l2_ways: int
    l2_cycles: float  # of a load that L1 misses and L2 has, beyond one that L1 has
    memory_cycles: float  # of one that L2 misses, too
    in_flight: int  # misses that wait at the same time: 1 where instructions begin in order
    stream_cycles: float  # for a line that is prefetched from memory: by bandwidth


KNOWN = json.loads(Path(__file__).with_suffix(".json").read_text())
CORES = {name: Core(**facts) for name, facts in KNOWN["cores"].items()}
CACHES = {name: Caches(**facts) for name, facts in KNOWN["caches"].items()}
"""Sizes and ways are those of the cores' manuals (Kryo: Snapdragon 855's large core); cycles are
typical of published measurements."""
ALIKE: dict[str, str] = KNOWN["alike"]
"""Cores that another one stands in for. LLVM 19 describes Cortex-A76 to A78 by the model of
Cortex-A57 and Cortex-X1 not at all; server cores of the same designs are described."""
