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

    def counts(rows: list[Record], key: str) -> dict[str, list[float]]:
        """Instructions by name, in the order of the columns."""
        found = {(row[key], row["isa"], row["vector_bits"]): row["instructions"] for row in rows}
        names = dict.fromkeys(row[key] for row in rows)
        return {name: [found[name, *variant] for variant in variants] for name in names}

    whole = [
        [TITLES[name], *(f"{count / 1e6:.1f}" for count in of)]
        for name, of in counts(networks, "network").items()
    ]
    macs = {row["layer"]: row["mac"] for row in layers}
    single = [
        [name, f"{of[0] / 1e6:.2f}", *(f"{macs[name] / count:.0f}" for count in of)]
        for name, of in counts(layers, "layer").items()
    ]
    tables = {
        "whole": markdown_table(["network", *columns], whole),
        "single": markdown_table(["layer", "NEON, million instructions", *columns], single),
    }
    return filled(Path(__file__).with_name("sme2.md"), document | tables)
