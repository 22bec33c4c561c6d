"""The results page's section on CPU kernels, from results/cpu_kernels*.json."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.markdown import filled, markdown_table
from benchmarks.records import RESULTS, read_results

MACHINE: Final = Path(__file__).with_name("machine.md")
KERNELS: Final = {
    "bconv2d_shared_sums__avx512gfni": "shared sums",
    "bconv2d_shared_windows__avx512gfni": "shared windows",
    "bconv2d_3x3_carry_save__avx512vpopcnt": "carry-save",
    "bconv2d_b32__avx512vpopcnt": "popcount",
    "bgemv_b32__avx512vpopcnt": "dense",
    "bconv2d_b32__avx2pairtable": "AVX2",
    "bgemv_b32__avx2": "AVX2 dense",
}
"""Columns: kernels by the names that the benchmark writes."""


def section() -> str:
    """One table per machine."""
    machines = [_machine(path.name) for path in sorted(RESULTS.glob("cpu_kernels*.json"))]
    return "\n\n".join(["## Binary convolutions on the CPU", *machines]) + "\n"


def _machine(file: str) -> str:
    document = read_results(file)
    bounds = document["bounds_mac_per_cycle"].items()
    layers: dict[str, dict[str, str]] = {}
    for row in document["results"]:
        share = f" ({row['share_of_bound']:.0%})" if row["share_of_bound"] else ""
        cells = layers.setdefault(row["layer"], {})
        cells.setdefault(row["kernel"], f"{row['mac_per_cycle']:.0f}{share}")
    shown = [name for name in KERNELS if any(name in cells for cells in layers.values())]
    table = markdown_table(
        ("layer", *(KERNELS[name] for name in shown)),
        [(layer, *(cells.get(name, "") for name in shown)) for layer, cells in layers.items()],
    )
    values = {
        "commit": document["commit"] or "not recorded",
        "file": file,
        "bounds": ", ".join(f"{of:.0f} ({name.replace('_', '-')})" for name, of in bounds if of),
        "table": table,
    }
    return filled(MACHINE, document | values)
