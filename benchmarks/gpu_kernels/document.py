"""The results page's section on OpenCL kernels, from results/gpu_kernels.json."""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean
from typing import Final

from benchmarks.markdown import filled, markdown_table
from benchmarks.peers.document import three_digits
from benchmarks.records import TITLES, Record, read_results

COMMAND: Final = "python -m benchmarks.gpu_kernels.bench_gpu_kernels"
PAGE: Final = Path(__file__).with_name("page.md")


def section() -> str:
    """Kernels of a GPU."""
    return kernels_section(read_results("gpu_kernels.json"))


def kernels_section(document: Record) -> str:
    """Whole networks and their layers by the tuned kernels and by the paper's."""
    context, networks = document["context"], document["networks"]
    rows = [_cells(row) for network in networks for row in network["rows"]]
    head = ("layer", "kernel", "us", "TOPS", "paper's kernel, us", "over")
    values = {
        "driver": context["opencl"],
        "cpu": context.get("cpu", "CPU not recorded"),
        "commit": context.get("commit") or "not recorded",
        "date": context["date"],
        "COMMAND": COMMAND,
        "networks": _networks_table(networks),
        "layers": markdown_table(head, rows, texts=2),
    }
    return filled(PAGE, values)


def _networks_table(networks: list[Record]) -> str:
    rows = []
    for network in networks:
        whole = [network["whole"][key]["median_ms"] for key in ("tuned", "paper")]
        sums = [sum(row["time_us"][key] for row in network["rows"]) for key in ("tuned", "paper")]
        ratios = [
            row["time_us"]["paper"] / row["time_us"]["tuned"]
            for row in network["rows"]
            if row["choice"]["paper"].startswith(("bconv2d_byte", "bconv2d_accumulate"))
        ]
        rows.append(
            (
                TITLES[network["network"]],
                *(f"{value:.3f}" for value in whole),
                f"**{whole[1] / whole[0]:.2f}x**",
                *(f"{value:.0f}" for value in sums),
                f"**{sums[1] / sums[0]:.1f}x**",
                f"**{geometric_mean(ratios):.1f}x**",
            )
        )
    head = ("network", "tuned, ms", "paper, ms", "paper over tuned", "kernels: tuned, us",
            "paper, us", "paper over tuned", "binary convolutions")  # fmt: skip
    return markdown_table(head, rows)


def _cells(row: Record) -> list[str]:
    choice, time_us = row["choice"], row["time_us"]
    tops = 2 * row["macs"] / (time_us["tuned"] * 1e6)
    cells = [row["layer"], choice["tuned"].split()[0], f"{time_us['tuned']:.1f}"]
    cells.append(three_digits(tops))
    if choice["paper"] == choice["tuned"]:
        return [*cells, "the same", ""]
    over = f"**{time_us['paper'] / time_us['tuned']:.1f}x**"
    return [*cells, f"`{choice['paper']}` {time_us['paper']:.1f}", over]
