"""The results page's section on SME2, from results/sme2.json."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown_table import markdown_table
from benchmarks.records import TITLES, read_results

Row = dict[str, Any]


def section() -> str:
    """A table of whole networks and one of layers."""
    document = read_results("sme2.json")
    networks, layers = document["networks"], document["layers"]
    variants = list(dict.fromkeys((row["isa"], row["vector_bits"]) for row in networks))
    columns = ["NEON" if isa.startswith("neon") else f"SME2, {bits} bits" for isa, bits in variants]

    def cells(rows: list[Row], key: str, name: str) -> dict[str, float]:
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
    return f"""## SME2: executed instructions

Counted under qemu-user {document["qemu"]}, one thread, commit {document["commit"]}:
`python -m benchmarks.phones.sme2`, `benchmarks/results/sme2.json`. Counted, not measured: how
long an instruction takes is not known. NEON is `neon_i8mm`. Lengths are those of
a vector in streaming mode.

Whole networks, million instructions a pass; what is not a binary convolution is the same code:

{markdown_table(["network", *columns], whole)}

Binary layers whose thresholds make bits, preparation of the input included: NEON's instructions,
and multiply-accumulates an instruction of each:

{markdown_table(["layer", "NEON, million instructions", *columns], single)}"""
