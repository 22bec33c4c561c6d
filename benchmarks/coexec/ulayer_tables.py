"""The tables of µLayer's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from benchmarks.coexec.codl_tables import energies
from benchmarks.coexec.tables import NAME, ms, ms_of, networks_of
from benchmarks.markdown_table import Columns, records_table

Record = dict[str, Any]
SHOWN: Final = "vgg16"
"""Whose layers figure 5 shows."""


def _over_whole_layers(way: str) -> Callable[[Record], str]:
    return lambda network: f"{ms(network, 'layer_to_processor') / ms(network, way):.2f}x"


TYPES: Final[Columns] = (
    NAME,
    ("CPU f32 ms", ms_of("cpu")),
    ("CPU 8-bit ms", ms_of("cpu_fast")),
    ("GPU f32 ms", ms_of("gpu")),
    ("GPU f16 ms", ms_of("gpu_fast")),
)
"""Figures 6 and 8: the network on either processor, and in the types that suit it."""
STEPS: Final[Columns] = (
    NAME,
    ("layer to processor ms", ms_of("layer_to_processor")),
    ("CPU", _over_whole_layers("cpu_fast")),
    ("GPU", _over_whole_layers("gpu_fast")),
    ("by channels, f32", _over_whole_layers("channels")),
    ("and types", _over_whole_layers("channels_fast")),
    ("and branches: µLayer", _over_whole_layers("ulayer")),
    (
        "energy mJ: CPU, GPU, layer to processor, µLayer",
        lambda network: ", ".join(dict.fromkeys(energies(network))),  # none: once
    ),
)
"""Figures 16 to 18: speed-ups over whole layers on either processor, and energy."""


def layers_table(results: Record) -> str:
    """Figure 5: a network's layers on either processor."""
    network = networks_of(results, "ulayer").get(SHOWN)
    if network is None:
        return ""
    name = f"layer of {network['title']}"
    columns = ((name, "{name}"), ("CPU ms", "{cpu:.3f}"), ("GPU ms", "{gpu:.3f}"))
    return records_table(network["layers"], columns)
