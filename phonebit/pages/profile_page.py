"""``phonebit profile --html``: where the time goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from phonebit.display import bytes_text, count_text, escape_html
from phonebit.html_page import data_table, environment_facts, facts_table, figure, html_page
from phonebit.layer_info import OUTSIDE, outside_layers_ms
from phonebit.pages.charts import LEGEND, STYLE, live_memory, roofline, shares, timeline


def profile_page(document: Mapping[str, Any]) -> str:
    """A page about a measurement.

    Args:
        document: as ``phonebit profile --json`` prints it.
    """
    name = Path(document["file"]).name
    layers, memory, here = document["layers"], document["memory"], document["environment"]
    where = (
        f"{here['cpu']}, {document['threads']} of {here['cores']} cores, "
        f"batch {document['batch']}, PhoneBit {here['phonebit']}"
    )
    of_layers = sum(layer["latency_ms"] for layer in layers)
    body = [
        f"<h1>{escape_html(name)}</h1>",
        f"<p><b>{document['median_ms']:.3f} ms</b>, {document['fps']:,.0f} FPS on "
        f"{escape_html(document['device'])}</p>",
        f'<p class="soft">{escape_html(where)}</p>',
        "<h2>Timeline</h2>",
        timeline(layers, document["spans"]),
        f'<p class="soft">The layers, measured one by one, take {of_layers:.3f} ms of the '
        f"{document['median_ms']:.3f} ms. The rest is outside of them: the call, waking the "
        "threads, and what processors wait for each other.</p>",
        LEGEND,
        "<h2>Binary share</h2>",
        shares(layers),
        "<h2>Roofline</h2>",
        roofline(layers),
        "<h2>Memory</h2>",
        figure(
            live_memory(layers, memory["arena_bytes"]),
            "Intermediate tensors of one image that are live in each layer, in order of "
            f"execution; at least {bytes_text(memory['lower_bound_bytes'])} are needed. A "
            "bar is longer than the arena where a sum is stored in place of its operand: both are "
            "counted.",
        ),
        "<h2>Layers</h2>",
        _layer_table(document),
        "<h2>Measurement</h2>",
        facts_table(_facts(document)),
    ]
    return html_page(name, body, STYLE)


def _layer_table(document: Mapping[str, Any]) -> str:
    titles = ("#", "layer", "kind", "ms", "share", "MACs", "GOPS", "GB/s", "kernel")
    rows = [
        (
            str(index),
            layer["name"],
            layer["kind"],
            f"{layer['latency_ms']:.4f}",
            f"{100 * layer['share']:.1f} %",
            count_text(layer["macs"]) if layer["macs"] else "",
            f"{layer['gops']:,.1f}" if layer["macs"] else "",
            f"{layer['bytes'] / layer['latency_ms'] / 1e6:,.1f}" if layer["latency_ms"] else "",
            layer["kernel"],
        )
        for index, layer in enumerate(document["layers"])
    ]
    outside = outside_layers_ms(document)
    rows.append(("", OUTSIDE, "", f"{outside:.4f}", "", "", "", "", ""))
    return data_table(titles, rows, numbers={0, 3, 4, 5, 6, 7})


def _facts(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "file", document["file"]
    yield "input", f"{document['input']}, batch {document['batch']}"
    yield "threads", str(document["threads"])
    yield "precision", document["precision"]
    yield (
        "latency",
        f"median {document['median_ms']:.3f} ms, min {document['min_ms']:.3f} ms, "
        f"p90 {document['p90_ms']:.3f} ms of {document['runs']} runs",
    )
    noise = document["canary"]
    state = "disturbed: compare minima only" if noise["disturbed"] else "steady"
    yield "machine", f"{state} (a fixed loop's p90 was {noise['p90_over_min']:.2f} x its minimum)"
    yield from environment_facts(document["environment"])
