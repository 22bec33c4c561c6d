"""The tables of µLayer's figures."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.coexec.codl_tables import energy_text
from benchmarks.coexec.paper_networks import TITLES
from benchmarks.coexec.tables import ms, networks_of
from benchmarks.markdown_table import markdown_table

Record = dict[str, Any]
SHOWN: Final = "vgg16"
"""Whose layers figure 5 shows."""


def types_table(results: Record) -> str:
    """Figures 6 and 8: the network on either processor, and in the types that suit it."""
    head = ("network", "CPU f32 ms", "CPU 8-bit ms", "GPU f32 ms", "GPU f16 ms")
    sides = ("cpu", "cpu_fast", "gpu", "gpu_fast")
    rows = [
        (TITLES[name], *(f"{ms(network, side):.2f}" for side in sides))
        for name, network in networks_of(results, "ulayer").items()
    ]
    return markdown_table(head, rows)


def steps_table(results: Record) -> str:
    """Figures 16 to 18: speed-ups over whole layers on either processor, and energy."""
    head = ("network", "layer to processor ms", "CPU", "GPU", "by channels, f32",
            "and types", "and branches: µLayer",
            "energy mJ: CPU, GPU, layer to processor, µLayer")  # fmt: skip
    ways = ("cpu_fast", "gpu_fast", "channels", "channels_fast", "ulayer")
    rows = []
    for name, network in networks_of(results, "ulayer").items():
        whole_ms = ms(network, "layer_to_processor")
        ups = (f"{whole_ms / ms(network, way):.2f}x" for way in ways)
        energy = dict.fromkeys(map(energy_text, network["energy"].values()))  # none: once
        rows.append((TITLES[name], f"{whole_ms:.2f}", *ups, ", ".join(energy)))
    return markdown_table(head, rows)


def layers_table(results: Record) -> str:
    """Figure 5: a network's layers on either processor."""
    network = networks_of(results, "ulayer").get(SHOWN)
    if network is None:
        return ""
    rows = [
        (layer["name"], *(f"{layer[side]:.3f}" for side in ("cpu", "gpu")))
        for layer in network["layers"]
    ]
    return markdown_table((f"layer of {TITLES[SHOWN]}", "CPU ms", "GPU ms"), rows)
