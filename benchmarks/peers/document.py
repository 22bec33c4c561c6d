"""What the results page and README say of whole networks on the CPU."""

from __future__ import annotations

from benchmarks.peers.harness import tables
from benchmarks.records import read_results


def section() -> str:
    """Tables of all engines for every network, and how PhoneBit's results compare with Keras's."""
    equality = tables.equality(read_results("larq_zoo.json"))
    return tables.section(read_results("peers_cpu.json")) + "\n" + equality


def readme_table() -> str:
    """README's first table."""
    return tables.readme_table(read_results("peers_cpu.json"))
