"""The results page's section on the networks, from the results files: nothing typed by hand."""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any, Final

from benchmarks.markdown_table import markdown_table
from benchmarks.networks.figure_layers import LAYERS
from benchmarks.records import TITLES, provenance, read_results

KINDS: Final = ("cpu", "gpu")
PAPER_SPEED_UP: Final = ("23x", *["45x on average, up to 62x"] * 7, "3x")
"""Of each layer over CNNdroid's GPU code on a Snapdragon 855, section VII."""


def section() -> str:
    """Tables of sizes and of single layers."""
    layers = [per_layer_section(read_results(f"per_layer_{kind}.json"), kind) for kind in KINDS]
    return "\n\n".join([sizes_section(read_results("sizes.json")), *layers]) + "\n"


# --- sizes ----------------------------------------------------------------------------------------


def sizes_section(document: dict[str, Any]) -> str:
    """Table II of the paper beside our files."""
    parameters = document["networks"]["yolov2_tiny"]["parameters"]
    return f"""## Model sizes

Table II of the paper, in MB (10^6 bytes), beside our files of the same networks: the float twin
with float32 weights (batch normalizations folded into them), and the binary network with its last
layer in float32 or, `--float-weights f16`, in half precision. The paper cuts digits off: its
YOLOv2-Tiny has {parameters:,} numbers, {4 * parameters / 1e6:.2f} MB.
{provenance(document["context"], "python -m benchmarks.networks.sizes")}.

{sizes_table(document)}"""


def sizes_table(document: dict[str, Any]) -> str:
    """Markdown; paper and ours side by side."""
    head = ("network", "float: paper", "PhoneBit", "binary: paper", "last layer f32",
            "last layer f16", "smaller than float")  # fmt: skip
    rows = []
    for name, row in document["networks"].items():
        sizes = {key: value / 1e6 for key, value in row["bytes"].items()}
        rows.append(
            (
                TITLES[name],
                f"{row['paper_mb']['float']:.1f}",
                f"{sizes['float']:.2f}",
                f"{row['paper_mb']['binary']:.1f}",
                f"{sizes['binary_f32']:.2f}",
                f"**{sizes['binary_f16']:.2f}**",
                f"{sizes['float'] / sizes['binary_f16']:.1f}x",
            )
        )
    return markdown_table(head, rows)


# --- figure 5 -------------------------------------------------------------------------------------


def per_layer_section(document: dict[str, Any], kind: str) -> str:
    """Figure 5 of the paper, measured on one device."""
    where = document["device"] if kind == "gpu" else _processor(document)
    base = float_title(document, baseline(document))
    rank = "the fastest float engine here" if len(float_engines(document)) > 1 else "the float twin"
    lines = [
        f"## YOLOv2-Tiny layer by layer: {where}",
        "",
        f"""Figure 5 of the paper. A layer is a convolution with the batch normalization, the sign
and the pool behind it; unfused, each of these is an op of its own that reads and writes memory. The
binary layers, conv2 to conv8, are {binary_speed_up(document):.0f} times as fast as in {base},
{rank} (geometric mean; the paper's speed-ups are over the GPU code of CNNdroid on a
Snapdragon 855). {document["equal_tensors"]} tensors of the unfused
network are equal to the fused one's to the last bit.""",
        "",
        _how(document, kind),
        "",
        per_layer_table(document),
    ]
    reasons = [f"{engine}: {reason}" for engine, reason in document["failures"].items()]
    if kind == "cpu" and reasons:
        lines += ["", *(f"- not measured: {reason}" for reason in reasons)]
    return "\n".join(lines)


def _processor(document: dict[str, Any]) -> str:
    plural = "" if document["threads"] == 1 else "s"
    return f"{document['context']['cpu']}, {document['threads']} thread{plural}"


def _how(document: dict[str, Any], kind: str) -> str:
    command = "python -m benchmarks.networks.per_layer" + ("" if kind == "cpu" else " --device gpu")
    clock = "Kernel times by events" if kind == "gpu" else "Times of single layers"
    rounds = f"medians of {document['counted']} of {document['rounds']} rounds"
    if document["steady"] < document["counted"]:
        which = "the machine was disturbed, so all count, and long layers look slower than they are"
    else:
        limit = document["canary_limit"]
        which = f"those around which a fixed loop took at most {limit} times its minimum"
    return f"""{clock}, {rounds} in which the engines are interleaved
({which}).
{provenance(document["context"], command, by_opencl=kind == "gpu")}."""


def medians(document: dict[str, Any], engine: str) -> dict[str, float]:
    """Milliseconds of each of the nine layers."""
    layers = document["engines"][engine]["layers"]
    return {layer: layers[layer]["median_ms"] for layer in LAYERS}


def total_ms(document: dict[str, Any], engine: str) -> float:
    """Milliseconds of all layers and of what belongs to none."""
    layers = document["engines"][engine]["layers"]
    return sum(float(entry["median_ms"]) for entry in layers.values())


def float_engines(document: dict[str, Any]) -> list[str]:
    """Who ran the float twin: PhoneBit, then the peers, the fastest first."""
    peers = [name for name in document["engines"] if name not in ("fused", "unfused", "float")]
    return ["float", *sorted(peers, key=lambda name: total_ms(document, name))]


def baseline(document: dict[str, Any]) -> str:
    """The fastest engine of the float twin."""
    return min(float_engines(document), key=lambda name: total_ms(document, name))


def float_title(document: dict[str, Any], engine: str) -> str:
    """How a float engine is called in tables."""
    return f"{document['engines'][engine]['title']} f32"


def per_layer_table(document: dict[str, Any]) -> str:
    """Markdown: milliseconds and speed-ups of each layer."""
    floats = float_engines(document)
    base = baseline(document)
    times = {engine: medians(document, engine) for engine in ("fused", "unfused", *floats)}
    head = ("layer, ms", "fused", "unfused", *(float_title(document, name) for name in floats),
            "fused over unfused", f"fused over {float_title(document, base)}",
            f"unfused over {float_title(document, base)}", "paper")  # fmt: skip
    rows = [
        _row(layer, {engine: times[engine][layer] for engine in times}, base, 3, paper)
        for layer, paper in zip(LAYERS, PAPER_SPEED_UP, strict=True)
    ]
    rows.append(_row("all", {engine: total_ms(document, engine) for engine in times}, base, 2, ""))
    return markdown_table(head, rows)


def _row(name: str, ms: dict[str, float], base: str, digits: int, paper: str) -> tuple[str, ...]:
    return (
        name,
        *(f"{time:.{digits}f}" for time in ms.values()),
        f"{ms['unfused'] / ms['fused']:.2f}x",
        f"**{ms[base] / ms['fused']:.1f}x**",
        f"{ms[base] / ms['unfused']:.1f}x",
        paper,
    )


def binary_speed_up(document: dict[str, Any]) -> float:
    """Geometric mean over conv2 to conv8, the binary layers, of fused over the fastest float."""
    fused, reference = medians(document, "fused"), medians(document, baseline(document))
    return geometric_mean([reference[layer] / fused[layer] for layer in LAYERS[1:8]])
