"""Cores: which CPU is emulated, so that the runtime takes its kernels, and whose model counts."""

from __future__ import annotations

from typing import NamedTuple


class Core(NamedTuple):
    """A core.

    Args:
        model: llvm-mca's name. LLVM 19 describes Cortex-A76 to A78 by the model of Cortex-A57, so
            server cores of the same designs stand in for them.
        emulated: qemu's name of a CPU with the same instruction sets.
        isa: What the runtime takes there.
        has_fast_lookup: Whether a table lookup is one operation.
    """

    model: str
    emulated: str
    isa: str
    has_fast_lookup: bool = True


CORES = {
    "a53": Core("cortex-a53", "cortex-a53", "neon"),
    "a55": Core("cortex-a55", "cortex-a76", "neon_dotprod"),
    "a72": Core("cortex-a72", "cortex-a72", "neon", has_fast_lookup=False),
    "kryo": Core("kryo", "cortex-a53", "neon"),
    "n1": Core("neoverse-n1", "cortex-a76", "neon_dotprod"),  # Cortex-A76, A77, A78
    "x1": Core("neoverse-v1", "cortex-a76", "neon_dotprod"),
    "a510": Core("cortex-a510", "max", "neon_i8mm"),
    "a710": Core("neoverse-n2", "max", "neon_i8mm"),  # A710, A715, A720
    "x3": Core("neoverse-v2", "max", "neon_i8mm"),  # X2, X3, X4
}
