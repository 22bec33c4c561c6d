"""The results page's section on CPU kernels, from results/cpu_kernels*.json."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.records import RESULTS, read_results

KERNELS: Final = {
    "bconv2d_u8_tiles__avx512amx": "AMX tiles",
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
    commit = document["commit"]
    bounds = ", ".join(
        f"{value:.0f} ({name.replace('_', '-')})"
        for name, value in document["bounds_mac_per_cycle"].items()
        if value
    )
    text = (
        f"{document['device']}, {document['threads']} thread, {document['clock_ghz']:.2f} GHz"
        f", commit {commit or 'not recorded'}: `bench_cpu_kernels`, "
        f"`benchmarks/results/{file}`. MAC/cycle, input preparation included. In brackets: the "
        "share of the bound that the same run measured, of the instruction mix in registers or, "
        f"for dense layers, of the read bandwidth. Bounds in registers, MAC/cycle: {bounds}."
    )
    rows = document["results"]
    shown = [name for name in KERNELS if any(row["kernel"] == name for row in rows)]
    layers = dict.fromkeys(row["layer"] for row in rows)
    table = markdown_table(
        ("layer", *(KERNELS[name] for name in shown)),
        [(layer, *(_cell(rows, layer, name) for name in shown)) for layer in layers],
    )
    return f"### {document['device']}, {document['clock_ghz']:.2f} GHz\n\n{text}\n\n{table}"


def _cell(rows: list[dict[str, Any]], layer: str, kernel: str) -> str:
    for row in rows:
        if (row["layer"], row["kernel"]) == (layer, kernel):
            share = f" ({row['share_of_bound']:.0%})" if row["share_of_bound"] else ""
            return f"{row['mac_per_cycle']:.0f}{share}"
    return ""
