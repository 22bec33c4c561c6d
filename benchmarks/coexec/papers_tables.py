"""The tables of CoDL's and µLayer's figures, of CoDL's tables 3 and 4; the searched networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from benchmarks.coexec.tables import (
    CPU,
    GPU,
    METHODS,
    NAME,
    ms,
    ms_of,
    networks_of,
    share_of_gain,
    speed_up,
    speed_up_of,
)
from benchmarks.markdown import Columns, markdown_table, records_table
from benchmarks.records import Record

SIDES: Final = ("cpu", "gpu", "codl")
TIMES: Final[Columns] = (
    *(NAME, CPU, GPU),
    ("CoDL ms", ms_of("codl")),
    ("speed-up", speed_up_of("codl", "**")),
    ("rates added", "{rates_added:.2f}x"),
    ("without chains", speed_up_of("without_chains")),
    ("rows only", speed_up_of("rows")),
    ("channels only", speed_up_of("channels")),
)
"""CoDL, figures 15 and 18: speed-ups, rates added c g / (c + g), and one dimension only."""
SEARCH: Final[Columns] = (
    *(NAME, CPU, GPU),
    ("searched ms", ms_of("search")),
    ("speed-up", speed_up_of("search", "**")),
    ("Fine-Grained", speed_up_of("finegrained")),
    (
        "share of the searched gain",
        lambda of: share_of_gain(speed_up(of, "finegrained"), speed_up(of, "search")),
    ),
    ("rates added", "{rates_added:.2f}x"),
    ("plans tried", "{plans_tried}"),
)
"""Whole networks: what the planner reaches of what searching them reaches."""


def _layers(*placements: str) -> Any:
    """A cell: how many layers CoDL's plan has there."""
    return lambda of: str(sum(of["plans"]["codl"]["layers"].get(each, 0) for each in placements))


def _exchange(way: str) -> Callable[[Record], str]:
    """A cell: what an inference takes beyond its stages, of that same inference's time."""

    def cell(network: Record) -> str:
        plan = network["plans"][way]
        if "pass_ms" not in plan:  # measured in other inferences than those of the table
            return "not recorded"
        return f"{plan['exchange_ms']:.2f} of {plan['pass_ms']:.2f}"

    return cell


def energies(network: Record) -> list[str]:
    """Millijoules of an image by candidate, where the machine has a source for them."""
    found = network["energy"].values()
    return [f"{of['energy_mj']:.2f}" if "energy_mj" in of else "not measured" for of in found]


PLANS: Final[Columns] = (
    NAME,
    ("cut by rows", _layers("rows")),
    ("by channels", _layers("channels")),
    ("in chains", _layers("chain")),
    ("longest", lambda of: str(max(of["plans"]["codl"]["chains"], default=0))),
    ("whole", _layers("cpu", "gpu")),
    ("exchange ms", _exchange("codl")),
    ("without chains", _exchange("without_chains")),
    ("energy mJ: CPU, GPU, CoDL", lambda of: ", ".join(energies(of))),
    (
        "activations MB: CPU, GPU, CoDL",
        lambda of: ", ".join(f"{of['arena_bytes'][side] / 1e6:.1f}" for side in SIDES),
    ),
)
"""CoDL, figures 17 and 19 to 22: cuts, chains, exchanges, energy and memory."""


def accuracy_table(testbeds: Mapping[str, Record]) -> str:
    """CoDL, table 3: convolutions predicted within 10 %, and the sizes of the models."""
    head = ("testbed", "predictor", "GPU within ±10 %", "CPU within ±10 %", "models, bytes")
    rows = []
    for testbed, results in testbeds.items():
        found = results["predictors"]
        for method, size in found.get("model_bytes", {}).items():
            shares = (_within(found["groups"], side, method) for side in ("gpu", "cpu"))
            rows.append((testbed, METHODS[method], *shares, f"{size:,}"))
    return markdown_table(head, rows, texts=2)


def _within(groups: list[Record], processor: str, method: str) -> str:
    """Of the parts of convolutions, linear ones among them."""
    own = [
        (group["parts"], group["errors"][method]["within_10"])
        for group in groups
        if group["processor"].startswith(processor)
        and group["layers"] != "others"
        and method in group["errors"]
    ]
    parts = sum(count for count, _ in own)
    return f"{sum(count * share for count, share in own) / parts:.1%}" if parts else "-"


def implementations_table(testbeds: Mapping[str, Record]) -> str:
    """CoDL, table 4: its predictor by kernel of convolutions."""
    columns = (
        ("testbed", "{testbed}"),
        ("processor", "{processor}"),
        ("kernel", "`{kernel}`"),
        ("parts", "{parts}"),
        ("MAPE", "{mape:.1%}"),
        ("within ±10 %", "{within_10:.1%}"),
    )
    records = (
        {"testbed": testbed, **row}
        for testbed, results in testbeds.items()
        for row in results["predictors"].get("implementations", [])
    )
    return records_table(records, columns, texts=3)


# --- µLayer ---------------------------------------------------------------------------------------

SHOWN: Final = "vgg16"
"""Whose layers figure 5 shows."""


def _over_whole_layers(way: str) -> Callable[[Record], str]:
    return lambda network: f"{ms(network, 'layer_to_processor') / ms(network, way):.2f}x"


ULAYER_TYPES: Final[Columns] = (
    NAME,
    ("CPU f32 ms", ms_of("cpu")),
    ("CPU 8-bit ms", ms_of("cpu_fast")),
    ("GPU f32 ms", ms_of("gpu")),
    ("GPU f16 ms", ms_of("gpu_fast")),
)
"""Figures 6 and 8: the network on either processor, and in the types that suit it."""
ULAYER_STEPS: Final[Columns] = (
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


def ulayer_layers_table(results: Record) -> str:
    """Figure 5: a network's layers on either processor."""
    network = networks_of(results, "ulayer").get(SHOWN)
    if network is None:
        return ""
    name = f"layer of {network['title']}"
    columns = ((name, "{name}"), ("CPU ms", "{cpu:.3f}"), ("GPU ms", "{gpu:.3f}"))
    return records_table(network["layers"], columns)
