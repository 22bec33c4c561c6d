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


KNOWN = json.loads(Path(__file__).with_suffix(".json").read_text())
CORES = {name: Core(**facts) for name, facts in KNOWN["cores"].items()}
ALIKE: dict[str, str] = KNOWN["alike"]
"""Cores that another one stands in for. LLVM 19 describes Cortex-A76 to A78 by the model of
Cortex-A57 and Cortex-X1 not at all; server cores of the same designs are described."""
