"""Cores: which CPU is emulated, so that the runtime takes its kernels, and whose model counts."""

from __future__ import annotations

from typing import NamedTuple


class Core(NamedTuple):
    """A core."""

    model: str  # llvm-mca's name
    emulated: str  # qemu's name of a CPU with the same instruction sets
    isa: str  # what the runtime takes there
    has_fast_lookup: bool = True  # whether a table lookup is one operation


CORES = {
    "a53": Core("cortex-a53", "cortex-a53", "neon"),
    "a55": Core("cortex-a55", "cortex-a76", "neon_dotprod"),
    "a72": Core("cortex-a72", "cortex-a72", "neon", has_fast_lookup=False),
    "kryo": Core("kryo", "cortex-a53", "neon"),
    "n1": Core("neoverse-n1", "cortex-a76", "neon_dotprod"),
    "x1": Core("neoverse-v1", "cortex-a76", "neon_dotprod"),
    "a510": Core("cortex-a510", "max", "neon_i8mm"),
    "a710": Core("neoverse-n2", "max", "neon_i8mm"),
    "x3": Core("neoverse-v2", "max", "neon_i8mm"),
}
ALIKE = {
    "a76": "n1", "a77": "n1", "a78": "n1", "a715": "a710", "a720": "a710", "x2": "x3", "x4": "x3"
}  # fmt: skip
"""Cores that another one stands in for. LLVM 19 describes Cortex-A76 to A78 by the model of
Cortex-A57 and Cortex-X1 not at all; server cores of the same designs are described."""


def core_of(name: str) -> Core:
    """A core of ``CORES`` or ``ALIKE``."""
    return CORES[ALIKE.get(name, name)]
