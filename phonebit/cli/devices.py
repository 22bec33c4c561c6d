"""``phonebit devices``: what a network would run on here."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import JsonOption
from phonebit.device import forced_isa, instruction_sets, load_runtime, serving_isa


def devices(as_json: JsonOption = False) -> None:
    """Show which processors and instruction sets can serve, and which one does."""
    known = instruction_sets()
    document: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": usable_cores(),
        "isas": [asdict(isa) for isa in known],
        "serving": serving_isa(known),
        "forced_by_environment": forced_isa(),
        "opencl": False,
        "runtime_version": load_runtime().version(),
    }
    if as_json:
        print_json(document)
    else:
        _print(output(), document)


def usable_cores() -> int:
    """Logical CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print(console: Console, document: dict[str, Any]) -> None:
    forced = document["forced_by_environment"]
    console.print(f"[bold]cpu[/]  {document['machine']}, {document['cores']} usable cores")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("device", "needs", "here", ""):
        table.add_column(title)
    for isa in document["isas"]:
        note = ""
        if isa["name"] == document["serving"]:
            note = "[bold green]serves[/]"
            note += f" (forced by PHONEBIT_CPU={forced})" if forced else ""
        here = "[green]yes[/]" if isa["supported"] else "[dim]no[/]"
        table.add_row(f"cpu:{isa['name']}", isa["features"], here, note)
    console.print(table)
    console.print("[bold]gpu[/]  the OpenCL engine is not part of this version")
