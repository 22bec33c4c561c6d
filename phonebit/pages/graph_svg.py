"""A network's graph as one SVG image: a card a layer, in the order of execution.

Lines to the next card are straight; those that skip cards run in lanes at the left, as few as
possible. So every network is one narrow column, which a phone shows as well as a screen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from phonebit.display import escape_html as escape
from phonebit.html_page import COLOURS
from phonebit.output_files import FileKind
from phonebit.pages.network_graph import Block, Card, Line, NetworkGraph

SVG_FILE: Final = FileKind("an SVG image", lambda head: head.startswith(b"<svg"))
WIDTH: Final = 358
"""Of the whole drawing in pixels: a phone's 390 without a page's margins."""
MAX_LANES_WIDTH: Final = 80
TITLE: Final = 20
ROW: Final = 16
GAP: Final = 30
"""Heights: of a card's first line, of another, and between cards."""
FOLD: Final = 26
"""Above and below folded blocks."""
LETTER: Final = 6.6
BOLD_LETTER: Final = 7.6
"""Typical widths of letters of 12 pixels."""
STYLE: Final = """
.network text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.network .name { font-weight: 600; } .network .soft { fill: var(--soft); }
.network .card { fill: var(--paper); stroke: var(--line); }
.network .binary { fill: var(--bitband); stroke: var(--bit); } .network .bits { fill: var(--bit); }
.network .end { fill: var(--band); stroke: var(--line); }
.network path { fill: none; stroke: var(--soft); stroke-width: 1.5; }
.network path.bit { stroke: var(--bit); stroke-width: 2; }
.network .fold { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; }
"""


@dataclass
class _Column:
    """Where the cards are; pixels from the top."""

    left: float
    tops: list[float] = field(default_factory=list)
    bottoms: list[float] = field(default_factory=list)
    lanes: dict[int, float] = field(default_factory=dict)
    """Horizontal place of the lane of each card with lines that skip others."""
    folds: set[int] = field(default_factory=set)
    """First cards of folded blocks."""


def network_svg(graph: NetworkGraph) -> str:
    """Draw a graph.

    Returns:
        An ``svg`` element whose colours are those of ``html_page.COLOURS``.
    """
    column = _arrange(graph)
    height = column.bottoms[-1] + 6
    parts = [_fold(block, column) for block in graph.blocks]
    parts += [_line(line, column) for line in graph.lines]
    parts += [_card(card, place, column) for place, card in enumerate(graph.cards)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="network" role="img" width="{WIDTH}" '
        f'height="{height:g}" viewBox="0 0 {WIDTH} {height:g}">\n' + "\n".join(parts) + "\n</svg>"
    )


def svg_file(graph: NetworkGraph) -> str:
    """The same as a file of its own, with its colours, light and dark."""
    drawing = network_svg(graph)
    head, rest = drawing.split("\n", 1)
    paper = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
    return f"{head}\n<style>{COLOURS}{STYLE}</style>\n{paper}\n{rest}\n"


def _arrange(graph: NetworkGraph) -> _Column:
    ends: dict[int, int] = {}
    for line in graph.lines:
        if line.end > line.begin + 1:
            ends[line.begin] = max(ends.get(line.begin, 0), line.end)
    lanes: list[int] = []  # where each lane becomes free
    numbers = {}
    for begin in sorted(ends):
        number = next((i for i, free in enumerate(lanes) if free <= begin), len(lanes))
        lanes[number : number + 1] = [ends[begin]]
        numbers[begin] = number
    step = min(12.0, MAX_LANES_WIDTH / max(len(lanes), 1))
    column = _Column(left=8 + step * len(lanes) + (10 if lanes else 0))
    column.lanes = {begin: column.left - 14 - step * n for begin, n in numbers.items()}
    column.folds = {block.begin for block in graph.blocks}
    closing = {block.end for block in graph.blocks}
    top = 4.0
    for place, card in enumerate(graph.cards):
        top += FOLD * (place in column.folds) + FOLD / 2 * (place in closing)
        column.tops.append(top)
        column.bottoms.append(top + TITLE + ROW * len(card.lines) + 8)
        top = column.bottoms[-1] + GAP
    return column


def _card(card: Card, place: int, column: _Column) -> str:
    left, top, width = column.left, column.tops[place], WIDTH - 8 - column.left
    height = column.bottoms[place] - top
    fits = int((width - 20) / LETTER)
    kind = "end" if card.kind in ("input", "output") else "binary" if card.is_binary else "card"
    title = _end(card.title, int((width - 30 - LETTER * len(card.kind)) / BOLD_LETTER))
    texts = [
        f'<text class="name" x="{left + 10:g}" y="{top + 18:g}">{title}</text>',
        f'<text class="{"bits" if kind == "binary" else "soft"}" text-anchor="end" '
        f'x="{left + width - 10:g}" y="{top + 18:g}">{escape(card.kind)}</text>',
    ]
    for number, line in enumerate(card.lines):
        y = top + 18 + ROW * (number + 1)
        shade = "" if number == 0 else ' class="soft"'
        texts.append(f'<text{shade} x="{left + 10:g}" y="{y:g}">{_cut(line, fits)}</text>')
    whole = escape("\n".join([f"{card.title}: {card.kind}", *card.lines]))
    return (
        f'<g><title>{whole}</title><rect class="{kind}" x="{left:g}" y="{top:g}" rx="6" '
        f'width="{width:g}" height="{height:g}"/>{"".join(texts)}</g>'
    )


def _cut(text: str, letters: int) -> str:
    return escape(text if len(text) <= letters else text[: max(letters - 1, 1)] + "…")


def _end(text: str, letters: int) -> str:
    """Names of layers are paths, whose ends tell them apart."""
    return escape(text if len(text) <= letters else "…" + text[-max(letters - 1, 1) :])


def _line(line: Line, column: _Column) -> str:
    style = ' class="bit"' if line.is_bit else ""
    if line.end == line.begin + 1:
        x = column.left + 24
        top, bottom = column.bottoms[line.begin], column.tops[line.end]
        path = f"M{x:g} {top:g}V{bottom:g}m-4 -6l4 6l4 -6"
        above = FOLD if line.end in column.folds else 0
        text = (
            f'<text class="{"bits" if line.is_bit else "soft"}" x="{x + 10:g}" '
            f'y="{bottom - 10 - above:g}">{escape(line.text)}</text>'
        )
        return f"<path{style} d='{path}'/>{text}"
    x, left = column.lanes[line.begin], column.left
    top, bottom = column.bottoms[line.begin] - 10, column.tops[line.end] + 12
    path = f"M{left:g} {top:g}H{x + 6:g}q-6 0 -6 6V{bottom - 6:g}q0 6 6 6H{left:g}m-6 -4l6 4l-6 4"
    return f"<g><title>{escape(line.text)}</title><path{style} d='{path}'/></g>"


def _fold(block: Block, column: _Column) -> str:
    left, top = column.left - 6, column.tops[block.begin] - FOLD + 2
    bottom = column.bottoms[block.end - 1] + 8
    width = WIDTH - 2 - left
    text = _cut(f"{block.repeats} times: {block.names}", int((width - 54) / LETTER))
    return (
        f'<g><title>{escape(block.names)}</title><rect class="fold" x="{left:g}" y="{top:g}" '
        f'rx="8" width="{width:g}" height="{bottom - top:g}"/>'
        f'<text class="soft" x="{left + 48:g}" y="{top + 16:g}">{text}</text></g>'
    )
