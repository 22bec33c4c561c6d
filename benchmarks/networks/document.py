"""The results page's section on the networks, from the results files: nothing typed by hand."""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean
from typing import Final

from benchmarks.markdown import Columns, filled, markdown_table, records_table
from benchmarks.records import PAPER, TITLES, Record, provenance, read_results

FOLDER: Final = Path(__file__).parent
KINDS: Final = ("cpu", "gpu")
LAYERS: Final = tuple(f"conv{number}" for number in range(1, 10))
"""Of figure 5."""


def section() -> str:
    """Tables of sizes and of single layers."""
    layers = (per_layer_section(read_results(f"per_layer_{kind}.json"), kind) for kind in KINDS)
    return "\n\n".join([sizes_section(read_results("sizes.json")), *layers])


# --- sizes ----------------------------------------------------------------------------------------


def sizes_section(document: Record) -> str:
    """Table II of the paper next to our files."""
    parameters = document["networks"]["yolov2_tiny"]["parameters"]
    values = {
        "parameters": parameters,
        "megabytes": 4 * parameters / 1e6,
        "source": provenance(document["context"], "python -m benchmarks.networks.sizes"),
        "table": sizes_table(document),
    }
    return filled(FOLDER / "sizes.md", values)


def sizes_table(document: Record) -> str:
    """Markdown; paper and ours side by side."""
    columns: Columns = (
        ("network", "{title}"),
        ("float: paper", "{paper_mb[float]:.1f}"),
        ("PhoneBit", "{mb[float]:.2f}"),
        ("binary: paper", "{paper_mb[binary]:.1f}"),
        ("last layer f32", "{mb[binary_f32]:.2f}"),
        ("last layer f16", "**{mb[binary_f16]:.2f}**"),
        ("smaller than float", lambda row: f"{row['mb']['float'] / row['mb']['binary_f16']:.1f}x"),
    )
    records = []
    for name, row in document["networks"].items():
        mb = {key: value / 1e6 for key, value in row["bytes"].items()}
        records.append({**row, "title": TITLES[name], "mb": mb})
    return records_table(records, columns)


# --- figure 5 -------------------------------------------------------------------------------------


def per_layer_section(document: Record, kind: str) -> str:
    """Figure 5 of the paper, measured on one device."""
    is_gpu = kind == "gpu"
    plural = "" if document["threads"] == 1 else "s"
    processor = f"{document['context']['cpu']}, {document['threads']} thread{plural}"
    many = len(float_engines(document)) > 1
    if document["steady"] < document["counted"]:
        which = "the machine was disturbed, so all count, and long layers look slower than they are"
    else:
        limit = document["canary_limit"]
        which = f"those around which a fixed loop took at most {limit} times its minimum"
    command = "python -m benchmarks.networks.per_layer" + (" --device gpu" if is_gpu else "")
    failures = [] if is_gpu else document["failures"].items()
    values = document | {
        "where": document["device"] if is_gpu else processor,
        "speed_up": binary_speed_up(document),
        "base": float_title(document, baseline(document)),
        "rank": "the fastest float engine here" if many else "the float twin",
        "clock": "Kernel times by events" if is_gpu else "Times of single layers",
        "which": which,
        "source": provenance(document["context"], command, by_opencl=is_gpu),
        "table": per_layer_table(document),
        "failures": "\n".join(f"- not measured: {name}: {why}" for name, why in failures),
    }
    return filled(FOLDER / "per_layer.md", values)


def medians(document: Record, engine: str) -> dict[str, float]:
    """Milliseconds of each of the nine layers, and of all with what belongs to none."""
    of_ops = document["engines"][engine]["layers"]
    times = {name: float(entry["median_ms"]) for name, entry in of_ops.items()}
    return {layer: times[layer] for layer in LAYERS} | {"all": sum(times.values())}


def float_engines(document: Record) -> list[str]:
    """Who ran the float twin: PhoneBit, then the peers, the fastest first."""
    peers = [name for name in document["engines"] if name not in ("fused", "unfused", "float")]
    return ["float", *sorted(peers, key=lambda name: medians(document, name)["all"])]


def baseline(document: Record) -> str:
    """The fastest engine of the float twin."""
    return min(float_engines(document), key=lambda name: medians(document, name)["all"])


def float_title(document: Record, engine: str) -> str:
    """How a float engine is called in tables."""
    return f"{document['engines'][engine]['title']} f32"


def per_layer_table(document: Record) -> str:
    """Markdown: milliseconds and speed-ups of each layer."""
    floats = float_engines(document)
    base = baseline(document)
    times = {engine: medians(document, engine) for engine in ("fused", "unfused", *floats)}
    head = ("layer, ms", "fused", "unfused", *(float_title(document, name) for name in floats),
            "fused over unfused", f"fused over {float_title(document, base)}",
            f"unfused over {float_title(document, base)}", "paper")  # fmt: skip
    rows = []
    for layer, paper in zip((*LAYERS, "all"), PAPER["speed_ups"], strict=True):
        ms = {engine: times[engine][layer] for engine in times}
        digits = 2 if layer == "all" else 3
        rows.append(
            (
                layer,
                *(f"{time:.{digits}f}" for time in ms.values()),
                f"{ms['unfused'] / ms['fused']:.2f}x",
                f"**{ms[base] / ms['fused']:.1f}x**",
                f"{ms[base] / ms['unfused']:.1f}x",
                paper,
            )
        )
    return markdown_table(head, rows)


def binary_speed_up(document: Record) -> float:
    """Geometric mean over conv2 to conv8, the binary layers, of fused over the fastest float."""
    fused, reference = medians(document, "fused"), medians(document, baseline(document))
    return geometric_mean([reference[layer] / fused[layer] for layer in LAYERS[1:8]])
