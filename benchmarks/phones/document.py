"""The results page's section on SME2, from results/sme2.json."""

from __future__ import annotations

from pathlib import Path

from benchmarks.markdown import filled, markdown_table
from benchmarks.records import TITLES, Record, read_results


def section() -> str:
    """A table of whole networks and one of layers."""
    document = read_results("sme2.json")
    networks, layers = document["networks"], document["layers"]
    variants = list(dict.fromkeys((row["isa"], row["vector_bits"]) for row in networks))
    columns = ["NEON" if isa.startswith("neon") else f"SME2, {bits} bits" for isa, bits in variants]

    def cells(rows: list[Record], key: str, name: str) -> dict[str, float]:
        found = {(row["isa"], row["vector_bits"]): row for row in rows if row[key] == name}
        return {
            column: found[variant]["instructions"]
            for column, variant in zip(columns, variants, strict=True)
        }

    whole = []
    for name in dict.fromkeys(row["network"] for row in networks):
        counts = cells(networks, "network", name)
        whole.append([TITLES[name], *(f"{counts[column] / 1e6:.1f}" for column in columns)])
    single = []
    for name, mac in {row["layer"]: row["mac"] for row in layers}.items():
        counts = cells(layers, "layer", name)
        rates = [f"{mac / counts[column]:.0f}" for column in columns]
        single.append([name, f"{counts['NEON'] / 1e6:.2f}", *rates])
    tables = {
        "whole": markdown_table(["network", *columns], whole),
        "single": markdown_table(["layer", "NEON, million instructions", *columns], single),
    }
    return filled(Path(__file__).with_name("sme2.md"), document | tables)
