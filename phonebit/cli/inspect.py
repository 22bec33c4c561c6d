"""``phonebit inspect``: what is inside a ``.pbit`` file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from phonebit.cli.console import output, print_json
from phonebit.cli.options import ForceOption, JsonOption
from phonebit.display import bytes_text, count_text
from phonebit.display import escape_markup as escape
from phonebit.layer_info import TensorInfo, binary_mac_share, shape_text

if TYPE_CHECKING:
    from phonebit.converter.ir import Graph
    from phonebit.format.contents import FileContents
    from phonebit.images.preprocessing import Preprocessing
    from phonebit.network import Network


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pbit file.")],
    html: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Write a page that shows the network.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the network's graph as an image.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a .pbit file's inputs, outputs, layers, sizes and metadata.

    With --html or --svg the network is drawn as a graph.
    """
    from phonebit.converter.reader import graph_from_contents
    from phonebit.format.reader import read_contents
    from phonebit.html_page import HTML_FILE
    from phonebit.network import Network
    from phonebit.output_files import check_output, write_output
    from phonebit.pages.graph_svg import SVG_FILE, svg_file
    from phonebit.pages.network_graph import network_graph
    from phonebit.pages.network_page import network_page

    if html is not None:
        check_output(html, HTML_FILE, [file, svg], force)
    if svg is not None:
        check_output(svg, SVG_FILE, [file], force)

    network = Network.load(file, device="cpu", threads=1)
    contents = read_contents(file)
    document = describe(network, graph_from_contents(contents, str(file)))
    document["plans"] = describe_plans(contents)
    if html is not None:
        write_output(html, network_page(document).encode(), HTML_FILE, [file], force)
    if svg is not None:
        write_output(svg, svg_file(network_graph(document)).encode(), SVG_FILE, [file], force)
    if as_json:
        print_json(document)
        return
    console = output()
    if html is None and svg is None:
        _print(console, document, network.preprocessing)
    for path in (html, svg):
        if path is not None:
            console.print(f"wrote [bold]{escape(str(path))}[/]", soft_wrap=True)


def describe(network: Network, graph: Graph) -> dict[str, Any]:
    """Everything that ``inspect`` shows, JSON-ready.

    Args:
        network: the loaded file.
        graph: the same file as an engine graph, for the tensors between the layers.

    Returns:
        Sizes in bytes, shapes as (height, width, channels), those of arrays in their own axes.
    """
    from phonebit.images.rule_text import as_settings

    types = {name: (kind.dtype.name.lower(), kind.shape) for name, kind in graph.types.items()}
    fused = fused_layers(network.metadata)
    return {
        "file": str(network.path),
        "name": graph.name,
        "inputs": [asdict(info) for info in network.inputs],
        "outputs": [asdict(info) for info in network.outputs],
        "preprocessing": {name: as_settings(rule) for name, rule in network.preprocessing.items()},
        "labels": network.labels,
        "detection": {
            name: {"kind": head.kind.name.lower(), "anchors": head.anchors}
            for name, head in network.detection.items()
        },
        "macs": sum(layer.macs for layer in network.layers),
        "binary_mac_share": binary_mac_share(network.layers),
        "layers": [
            {
                **asdict(layer),
                "input_types": [_type(types[name]) for name in layer.inputs],
                "output_types": [_type(types[name]) for name in layer.outputs],
                "sources": fused.get(layer.name, []),
            }
            for layer in network.layers
        ],
        "memory": network.memory,
        "metadata": network.metadata,
    }


def describe_plans(contents: FileContents) -> list[dict[str, Any]]:
    """The file's execution plans, JSON-ready: for which device, by which method, each stage's text.

    Args:
        contents: the file's sections.
    """
    from phonebit.planner import layer_outputs, stored_plans

    layers = layer_outputs(contents)
    return [
        {
            "device": plan.device,
            "method": plan.method,
            "predicted_ms": plan.predicted_ms,
            "stages": plan.stage_texts(layers),
            "parts": [
                {
                    "stage": planned.stage,
                    "processor": planned.processor.name.lower(),
                    "layer": planned.layer,
                    "part": planned.part._asdict(),
                }
                for planned in plan.parts
            ],
        }
        for plan in stored_plans(contents)
    ]


def fused_layers(metadata: dict[str, Any]) -> dict[str, list[str]]:
    """The framework's layers that became one op, by op name, where the file tells."""
    layers = metadata.get("layers")
    entries = layers if isinstance(layers, list) else []
    return {
        str(entry.get("name")): [str(source) for source in entry["sources"]]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("sources"), list)
    }


def _type(kind: tuple[str, tuple[int, int, int]]) -> dict[str, Any]:
    return {"dtype": kind[0], "shape": list(kind[1])}


def _type_text(types: list[dict[str, Any]]) -> str:
    """``14x14x64 f32+bit``: the outputs of one op share their shape."""
    shape = tuple(types[0]["shape"])
    return f"{shape_text(shape)} {'+'.join(kind['dtype'] for kind in types)}"


def _head_text(head: dict[str, Any]) -> str:
    """``yolov2, anchors of width x height cells: 1.08x1.19 3.42x4.41``."""
    anchors = " ".join(f"{width:.4g}x{height:.4g}" for width, height in head["anchors"])
    return f"{head['kind']}, anchors of width x height cells: {anchors}"


def _print(console: Console, document: dict[str, Any], rules: Mapping[str, Preprocessing]) -> None:
    from phonebit.images.rule_text import rule_text

    memory = document["memory"]
    console.print(
        f"[bold]{escape(document['file'])}[/]  {escape(document['name'])}, "
        f"{bytes_text(memory['file_bytes'])}"
    )
    for direction in ("inputs", "outputs"):
        for info in document[direction]:
            text = f"{info['name']}  {info['dtype']}  {TensorInfo(**info).axes_text}"
            console.print(f"[dim]{direction[:-1]:<8}[/] {escape(text)}")
            if info["name"] in rules:
                console.print(f"[dim]image [/] {rule_text(rules[info['name']])}")
            if info["name"] in document["detection"]:
                console.print(f"[dim]boxes   [/] {_head_text(document['detection'][info['name']])}")
    _print_labels(console, document["labels"])
    _print_metadata(console, document["metadata"])
    console.print()
    console.print(_layer_table(document["layers"]))
    console.print()
    for plan in document["plans"]:
        _print_plan(console, plan)
    console.print(
        f"{count_text(document['macs'])} MACs, "
        f"{100 * document['binary_mac_share']:.1f} % of them binary; "
        f"weights {bytes_text(sum(layer['weight_bytes'] for layer in document['layers']))}; "
        f"arena {bytes_text(memory['arena_bytes'])} "
        f"(lower bound {bytes_text(memory['lower_bound_bytes'])})"
    )


def _print_plan(console: Console, plan: dict[str, Any]) -> None:
    """Device, method, predicted time, then one line a stage."""
    predicted = f", {plan['predicted_ms']:.3f} ms predicted" if plan["predicted_ms"] else ""
    stages = plan["stages"]
    console.print(
        f"[bold]plan[/] for {escape(plan['device'])}: {escape(plan['method'])}, "
        f"{len(stages)} stage{'s' if len(stages) != 1 else ''}{predicted}"
    )
    for number, text in enumerate(stages):
        console.print(f"[dim]{number:>3}[/]  {escape(text)}")
    console.print()


def _print_labels(console: Console, labels: list[str]) -> None:
    if labels:
        shown = ", ".join(labels[:12]) + (", …" if len(labels) > 12 else "")
        console.print(f"[dim]labels  [/] {len(labels)}: {escape(shown)}")


def _print_metadata(console: Console, metadata: dict[str, Any]) -> None:
    for key, value in metadata.items():
        if key not in {"labels", "layers", "name", "input", "arrays"}:
            text = ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)
            console.print(f"[dim]{escape(str(key)):<8}[/] {escape(text)}")


def _layer_table(layers: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim")
    longest = max((len(layer["name"]) for layer in layers), default=0)
    table.add_column("layer", overflow="fold", min_width=min(longest, 20))
    table.add_column("op", no_wrap=True)
    table.add_column("output")
    table.add_column("MACs", justify="right", no_wrap=True)
    table.add_column("weights", justify="right", no_wrap=True)
    with_sources = any(layer["sources"] for layer in layers)
    if with_sources:
        table.add_column("fused with", overflow="fold", style="dim")
    for index, layer in enumerate(layers):
        row = [
            str(index),
            escape(layer["name"]),
            f"[cyan]{layer['kind']}[/]" if layer["binary"] else layer["kind"],
            _type_text(layer["output_types"]),
            count_text(layer["macs"]) if layer["macs"] else "",
            bytes_text(layer["weight_bytes"]) if layer["weight_bytes"] else "",
        ]
        if with_sources:
            others = [source for source in layer["sources"] if source != layer["name"]]
            row.append(escape(" ".join(others)))
        table.add_row(*row)
    return table
