"""A network as a graph: what ``phonebit inspect`` found, made cards, lines and folded blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phonebit.display import bytes_text, count_text
from phonebit.layer_info import shape_text
from phonebit.pages.folding import Run, find_runs

Document = Mapping[str, Any]
"""What ``phonebit inspect --json`` prints."""


@dataclass(frozen=True)
class Card:
    """An input, a layer or an output.

    Attributes:
        title: its name.
        kind: what it computes.
        lines: more about it.
        is_binary: whether its multiply-accumulates are of +1/-1 by +1/-1.
    """

    title: str
    kind: str
    lines: tuple[str, ...] = ()
    is_binary: bool = False


@dataclass(frozen=True)
class Line:
    """What a card gives to a later one; numbers of cards."""

    begin: int
    end: int
    text: str
    is_bit: bool


@dataclass(frozen=True)
class Block:
    """Cards that stand for several repetitions; the last is ``end - 1``."""

    begin: int
    end: int
    repeats: int
    names: str


@dataclass
class NetworkGraph:
    """All cards in order of execution, the lines between them, and the folded blocks."""

    cards: list[Card] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def network_graph(document: Document) -> NetworkGraph:
    """Make a graph of an inspected file.

    Args:
        document: as ``phonebit inspect --json`` prints it.

    Returns:
        Blocks of the same layers in a row are there once.
    """
    layers = document["layers"]
    writers = {name: index for index, layer in enumerate(layers) for name in layer["outputs"]}
    runs = find_runs([_signature(index, layer, writers) for index, layer in enumerate(layers)])
    graph, lines = NetworkGraph(), dict[tuple[int, int], list[Document]]()
    places: dict[int, int] = {}
    tensors = {info["name"]: i for i, info in enumerate(document["inputs"])}
    graph.cards += [_end_card(info, "input") for info in document["inputs"]]
    for run in runs:
        begin = len(graph.cards)
        graph.cards += [_card(layer) for layer in layers[run.first : run.first + run.length]]
        places |= {i: begin + (i - run.first) % run.length for i in range(run.first, run.end)}
        if run.repeats > 1:
            block = Block(begin, len(graph.cards), run.repeats, _names(layers, run))
            graph.blocks.append(block)
    tensors |= {name: places[index] for name, index in writers.items()}
    for index, layer in enumerate(layers):
        for name, kind in zip(layer["inputs"], layer["input_types"], strict=True):
            _add_line(lines, tensors[name], places[index], kind)
    for info in document["outputs"]:
        graph.cards.append(_end_card(info, "output"))
        _add_line(lines, tensors[info["name"]], len(graph.cards) - 1, info)
    graph.lines = [Line(*ends, _kinds_text(k), _are_bits(k)) for ends, k in lines.items()]
    return graph


def _signature(index: int, layer: Document, writers: Mapping[str, int]) -> tuple[Any, ...]:
    """Equal of layers that do the same to what equally distant layers give."""
    distances = tuple(index - writers.get(name, -1) for name in layer["inputs"])
    kinds = str((layer["input_types"], layer["output_types"]))
    numbers = (layer["macs"], layer["weight_bytes"], len(layer["sources"]))
    return (layer["kind"], layer["kernel"], kinds, distances, *numbers)


def _add_line(
    lines: dict[tuple[int, int], list[Document]], begin: int, end: int, kind: Document
) -> None:
    """Between two cards there is one line, whatever runs along it."""
    if begin >= end:  # from one repetition to the next, which the fold says
        return
    kinds = lines.setdefault((begin, end), [])
    if not any(_type_text([kind]) == _type_text([known]) for known in kinds):
        kinds.append(kind)


def _kinds_text(kinds: Sequence[Document]) -> str:
    same_shape = len({tuple(kind["shape"]) for kind in kinds}) == 1
    return _type_text(kinds) if same_shape else ", ".join(_type_text([kind]) for kind in kinds)


def _are_bits(kinds: Sequence[Document]) -> bool:
    return all(kind["dtype"] == "bit" for kind in kinds)


def _end_card(info: Document, kind: str) -> Card:
    return Card(info["name"], kind, (_type_text([info]),), info["dtype"] == "bit")


def _card(layer: Document) -> Card:
    facts = [_type_text(layer["output_types"])]
    if layer["macs"]:
        facts.append(f"{count_text(layer['macs'])} MACs")
    if layer["weight_bytes"]:
        facts.append(bytes_text(layer["weight_bytes"]))
    lines = [" · ".join(facts), layer["kernel"]]
    if fused := [source for source in layer["sources"] if source != layer["name"]]:
        lines.append("with " + ", ".join(fused))
    return Card(layer["name"], layer["kind"], tuple(lines), layer["binary"])


def _names(layers: Sequence[Document], run: Run) -> str:
    """The first layer of each repetition."""
    return ", ".join(layers[i]["name"] for i in range(run.first, run.end, run.length))


def _type_text(types: Sequence[Document]) -> str:
    """``14x14x64 f32+bit``: the outputs of one op share their shape."""
    height, width, channels = types[0]["shape"]
    return f"{shape_text((height, width, channels))} {'+'.join(kind['dtype'] for kind in types)}"
