"""``phonebit inspect --html``: a network's graph next to its facts and its layers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from phonebit.display import bytes_text, count_text, escape_html
from phonebit.html_page import data_table, facts_table, figure, html_page
from phonebit.layer_info import shape_text
from phonebit.pages.graph_svg import STYLE as GRAPH_STYLE
from phonebit.pages.graph_svg import network_svg
from phonebit.pages.network_graph import Document, network_graph

STYLE: Final = f"""{GRAPH_STYLE}
.network {{ max-width: 100%; height: auto; }}
.columns > * {{ min-width: 0; }}
@media (min-width: 60rem) {{ .columns {{ display: grid; gap: 2rem;
  grid-template-columns: 358px minmax(0, 1fr); }} section > h2:first-child {{ margin-top: 0; }} }}
"""
MAX_LABELS: Final = 12


def network_page(document: Document) -> str:
    """A page about a file.

    Args:
        document: as ``phonebit inspect --json`` prints it.
    """
    name = Path(document["file"]).name
    graph = network_graph(document)
    folded = sum(block.repeats > 1 for block in graph.blocks)
    caption = "A card per layer, in order of execution. Blue: bits."
    if folded:
        caption += " Dashed: layers that are repeated, drawn once."
    body = [
        f"<h1>{escape_html(name)}</h1>",
        '<div class="columns"><section>',
        figure(network_svg(graph), caption),
        "</section><section>",
        "<h2>File</h2>",
        facts_table(_facts(document)),
        "<h2>Layers</h2>",
        _layer_table(document),
        "</section></div>",
    ]
    return html_page(name, body, STYLE)


def _facts(document: Document) -> Iterable[tuple[str, str]]:
    memory = document["memory"]
    yield "file", f"{document['file']}, {bytes_text(memory['file_bytes'])}"
    yield "network", document["name"]
    for direction in ("input", "output"):
        for info in document[f"{direction}s"]:
            height, width, channels = info["shape"]
            text = f"{info['name']}, {shape_text((height, width, channels))} {info['dtype']}"
            yield direction, text
    for name, rule in document["preprocessing"].items():
        yield "images", f"for {name}: " + ", ".join(f"{key} {value}" for key, value in rule.items())
    yield (
        "operations",
        f"{count_text(document['macs'])} MACs, {100 * document['binary_mac_share']:.1f} % binary",
    )
    yield "weights", bytes_text(sum(layer["weight_bytes"] for layer in document["layers"]))
    yield (
        "activations",
        f"{bytes_text(memory['arena_bytes'])}, at least {bytes_text(memory['lower_bound_bytes'])}",
    )
    if labels := document["labels"]:
        more = ", …" if len(labels) > MAX_LABELS else ""
        yield "labels", f"{len(labels)}: {', '.join(labels[:MAX_LABELS])}{more}"
    for name, head in document["detection"].items():
        yield "boxes", f"{name}: {head['kind']}, {len(head['anchors'])} anchors"
    for plan in document["plans"]:
        yield "plan", f"for {plan['device']}, {plan['method']}: {'; '.join(plan['stages'])}"
    for key, value in document["metadata"].items():
        if key not in {"labels", "layers", "name", "input"}:
            yield (
                str(key),
                ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value),
            )


def _layer_table(document: Document) -> str:
    titles = ("#", "layer", "op", "output", "MACs", "weights", "kernel", "fused with")
    rows = []
    for index, layer in enumerate(document["layers"]):
        height, width, channels = layer["output_types"][0]["shape"]
        kinds = "+".join(kind["dtype"] for kind in layer["output_types"])
        rows.append(
            (
                str(index),
                layer["name"],
                layer["kind"],
                f"{shape_text((height, width, channels))} {kinds}",
                count_text(layer["macs"]) if layer["macs"] else "",
                bytes_text(layer["weight_bytes"]) if layer["weight_bytes"] else "",
                layer["kernel"],
                ", ".join(source for source in layer["sources"] if source != layer["name"]),
            )
        )
    return data_table(titles, rows, numbers={0, 4, 5})
