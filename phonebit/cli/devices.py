"""``phonebit devices``: what a network would run on here."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import JsonOption
from phonebit.compiled import load_runtime
from phonebit.devices.gpus import device_name, gpu_devices, gpu_error, real_gpu
from phonebit.devices.runtime import (
    forced_isa,
    instruction_sets,
    isa_in_use,
    usable_cores,
)
from phonebit.devices.thread_count import default_threads
from phonebit.devices.tuning_store import cache_folder
from phonebit.display import bytes_text
from phonebit.display import escape_markup as escape

if TYPE_CHECKING:
    from phonebit import _runtime

_FACTS = (
    "name", "platform", "vendor", "family", "version", "driver_version", "is_gpu", "compute_units",
    "clock_mhz", "global_bytes", "local_bytes", "capabilities", "kernels",
)  # fmt: skip


def devices(as_json: JsonOption = False) -> None:
    """List devices, their capabilities, the selected kernels and energy sources."""
    document = machine()
    if as_json:
        print_json(document)
    else:
        _print(output(), document)


def machine() -> dict[str, Any]:
    """Processors, GPUs and energy sources here, JSON-ready.

    Raises:
        DeviceError: if the compiled runtime cannot be loaded.
    """
    from phonebit.energy import discover

    known = instruction_sets()
    gpu = real_gpu()
    apis = load_runtime().gpu_apis()
    folder = cache_folder()
    return {
        "machine": platform.machine(),
        "cores": usable_cores(),
        "default_threads": asdict(default_threads()),
        "isas": [asdict(isa) for isa in known],
        "serving": isa_in_use(known),
        "forced_by_environment": forced_isa(),
        "auto": "cpu" if gpu is None else device_name(gpu),
        "apis": apis,
        **{api: [_describe(device) for device in gpu_devices(api)] for api in apis},
        **{f"{api}_error": gpu_error(api) for api in apis},
        "energy": [finding.to_dict() for finding in discover()],
        "cache_folder": None if folder is None else str(folder),
        "runtime_version": load_runtime().version(),
    }


def _describe(device: _runtime.GpuDevice) -> dict[str, Any]:
    facts = {name: getattr(device, name) for name in _FACTS}
    return {"device": device_name(device), **facts}


def _print(console: Console, document: dict[str, Any]) -> None:
    console.print(f"[bold]cpu[/]  {document['machine']}, {document['cores']} usable cores")
    default = document["default_threads"]
    console.print(f"  threads by default: {default['threads']} ({escape(default['reason'])})")
    console.print(_isa_table(document))
    for api in document["apis"]:
        for line in document[f"{api}_error"].splitlines():
            console.print(f"[bold]{api}[/]  {escape(line.strip())}", soft_wrap=True)
        for device in document[api]:
            console.print()
            _print_device(console, device, is_in_use=device["device"] == document["auto"])
    console.print()
    _print_energy_sources(console, document["energy"])


def _isa_table(document: dict[str, Any]) -> Table:
    forced = document["forced_by_environment"]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("device", "needs", "here", ""):
        table.add_column(title)
    for isa in document["isas"]:
        note = ""
        if isa["name"] == document["serving"]:
            note = "[bold green]in use[/]"
            if document["auto"] != "cpu":
                note += " device cpu"
            note += f" (forced by PHONEBIT_CPU={forced})" if forced else ""
        here = "[green]yes[/]" if isa["supported"] else "[dim]no[/]"
        table.add_row(f"cpu:{isa['name']}", isa["features"], here, note)
    return table


def _print_device(console: Console, device: dict[str, Any], is_in_use: bool) -> None:
    kind = "GPU" if device["is_gpu"] else "no GPU"
    console.print(
        f"[bold]{device['device']}[/]  {escape(device['name'])}"
        + ("  [bold green]in use[/]" if is_in_use else ""),
        soft_wrap=True,
    )
    console.print(
        f"  {kind}, {escape(device['vendor'])}/{escape(device['family'])}, "
        f"{device['compute_units']} compute units at {device['clock_mhz']} MHz, "
        f"{bytes_text(device['global_bytes'])} global, {bytes_text(device['local_bytes'])} local"
    )
    console.print(
        f"  {escape(device['version'])}, driver {escape(device['driver_version'])}, "
        f"{escape(device['platform'])}",
        soft_wrap=True,
    )
    can = [name.replace("_", " ") for name, there in device["capabilities"].items() if there]
    cannot = [name.replace("_", " ") for name, there in device["capabilities"].items() if not there]
    console.print(f"  has {escape(', '.join(can) or 'nothing optional')}", soft_wrap=True)
    if cannot:
        console.print(f"  [dim]lacks {escape(', '.join(cannot))}[/]", soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for shape, kernel in device["kernels"].items():
        table.add_row(escape(shape), escape(kernel))
    console.print(table)


def _print_energy_sources(console: Console, findings: list[dict[str, Any]]) -> None:
    there = any(finding["sources"] for finding in findings)
    console.print("[bold]energy[/]  " + ("measured by" if there else "no source here"))
    for finding in findings:
        for source in finding["sources"]:
            rails = ", ".join(source["rails"])
            text = f"  {source['name']}  {source['description']} ({rails})"
            console.print(escape(text), soft_wrap=True)
        if finding["absent"]:
            text = f"  {finding['kind']}  {finding['absent']}"
            console.print(f"[dim]{escape(text)}[/]", soft_wrap=True)
