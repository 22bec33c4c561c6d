"""What ``phonebit bench`` and ``phonebit android bench`` measured, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from phonebit.cli.bench_energy import print_energy
from phonebit.cli.run import device_text
from phonebit.display import count_text
from phonebit.display import escape_markup as escape
from phonebit.layer_info import OUTSIDE, outside_layers_ms


def print_bench(console: Console, document: dict[str, Any]) -> None:
    """Prints a document of either command.

    Args:
        console: where to.
        document: what --json prints.
    """
    device = device_text(document["device"], document["isa"], document["threads"])
    console.print(
        f"[bold]{escape(document['file'])}[/]  {escape(device)}, "
        f"batch {document['batch']}, {document['runs']} runs after {document['warmup']}",
        soft_wrap=True,
    )
    console.print(
        f"median [bold]{document['median_ms']:.3f} ms[/]   min {document['min_ms']:.3f} ms   "
        f"p90 {document['p90_ms']:.3f} ms   [bold]{document['fps']:,.0f} FPS[/]"
    )
    _print_auto_selection(console, document["coexec"])
    _print_noise_probe(console, document["canary"])
    if "thermal" in document:
        _print_heat(console, document["thermal"])
    if "energy" in document:
        print_energy(console, document["energy"])
    console.print(f"[dim]input: {escape(document['input'])}[/]", soft_wrap=True)
    if "layers" in document:
        console.print(_profile_table(document["layers"], outside_layers_ms(document)))


def _print_auto_selection(console: Console, coexec: dict[str, Any]) -> None:
    """Of a plan that the file brings; nothing elsewhere."""
    names = {"plan_ms": "the plan", "cpu_ms": "the CPU alone", "gpu_ms": "the GPU alone"}
    times = {name: coexec[key] for key, name in names.items() if coexec.get(key)}
    if not times:
        return
    runner = "the plan"
    if coexec["is_on_cpu_alone"]:
        runner = "the CPU alone"
    elif coexec["is_on_gpu_alone"]:
        runner = "the GPU alone"
    found = ", ".join(f"{name} {ms:.3f} ms" for name, ms in times.items())
    console.print(f"auto-selection: {found}; measured: [bold]{runner}[/]", soft_wrap=True)


def _print_noise_probe(console: Console, noise: dict[str, Any]) -> None:
    ratio = f"a fixed loop's p90 was {noise['p90_over_min']:.2f} x its minimum"
    if noise["disturbed"]:
        console.print(
            f"[yellow]noise probe: the machine was disturbed ({ratio}): "
            "trust min and ratios only[/]"
        )
    else:
        console.print(f"[dim]noise probe: the machine was steady ({ratio})[/]")


def _print_heat(console: Console, thermal: dict[str, Any]) -> None:
    """The zone that is hottest afterwards; phones have dozens."""
    before = {zone["zone"]: zone["celsius"] for zone in thermal["before"]}
    after = [zone for zone in thermal["after"] if zone["zone"] in before]
    if not after:
        console.print("[dim]heat: the system does not tell[/]")
        return
    hottest = max(after, key=lambda zone: float(zone["celsius"]))
    name, celsius = hottest["zone"], hottest["celsius"]
    console.print(f"[dim]heat: {escape(name)} {before[name]:.1f} -> {celsius:.1f} °C[/]")


def _profile_table(layers: Sequence[dict[str, Any]], outside_ms: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("layer", overflow="fold")
    table.add_column("kind", no_wrap=True)
    for title in ("ms", "share", "MACs", "GOPS"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for layer in layers:
        macs = layer["macs"]
        table.add_row(
            escape(layer["name"]),
            layer["kind"],
            f"{layer['latency_ms']:.4f}",
            f"{100 * layer['share']:.1f} %",
            count_text(macs) if macs else "",
            f"{layer['gops']:,.1f}" if macs else "",
            f"[cyan]{'█' * round(12 * layer['share'])}[/]",
        )
    table.add_row(f"[dim]{OUTSIDE}[/]", "", f"{outside_ms:.4f}")
    return table
