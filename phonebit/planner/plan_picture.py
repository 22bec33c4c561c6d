"""A planned network as a picture (SVG): which processor does what, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phonebit.display import escape_html as escape
from phonebit.planner.explain import LayerChoice
from phonebit.planner.plan import OutputPart, Processor
from phonebit.planner.stages import Placement

COLORS: Final = {Processor.GPU: "#2f7ebc", Processor.CPU: "#e2893b"}
BOTH_COLOR: Final = "#7a5195"
"""Rows that both compute: a chain's halos."""
ROW: Final = 18
NAME_WIDTH, BAR_WIDTH, TEXT_WIDTH = 190, 320, 300
MARGIN, HEADER = 12, 44
FONT: Final = "font-family='system-ui, sans-serif' font-size='11'"


def plan_svg(choices: Sequence[LayerChoice], title: str) -> str:
    """Draws a plan: a line a layer, a frame a stage of several layers.

    The bar is the layer's output, from its first row or channel on the left to the last one; the
    colour says who computes it.

    Args:
        choices: Of all layers.
        title: Of the picture.

    Returns:
        An SVG document.
    """
    width = 2 * MARGIN + NAME_WIDTH + BAR_WIDTH + TEXT_WIDTH
    height = HEADER + ROW * len(choices) + MARGIN
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' {FONT}>",
        f"<title>{escape(title)}</title>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        f"<text x='{MARGIN}' y='18' font-weight='bold'>{escape(title)}</text>",
        *_legend(width),
    ]
    for number, choice in enumerate(choices):
        lines += _layer(choice, HEADER + number * ROW)
    lines += _frames(choices)
    return "\n".join([*lines, "</svg>\n"])


def _legend(width: int) -> list[str]:
    entries = [
        (COLORS[Processor.GPU], "GPU"),
        (COLORS[Processor.CPU], "CPU"),
        (BOTH_COLOR, "both: halo"),
    ]
    left = width - MARGIN - 80 * len(entries)
    lines = []
    for number, (color, text) in enumerate(entries):
        at = left + 80 * number
        lines.append(f"<rect x='{at}' y='8' width='11' height='11' fill='{color}'/>")
        lines.append(f"<text x='{at + 15}' y='18'>{text}</text>")
    return lines


def _layer(choice: LayerChoice, top: int) -> list[str]:
    base = top + ROW - 6
    left = MARGIN + NAME_WIDTH
    lines = [f"<text x='{MARGIN + 8}' y='{base}'>{escape(_short(choice.name))}</text>"]
    spans = {side: _span(choice, side) for side in Processor}
    for side, (begin, end) in spans.items():
        lines.append(_bar(left, top, begin, end, COLORS[side]))
    shared = (
        max(begin for begin, _ in spans.values()),
        min(end for _, end in spans.values()),
    )
    lines.append(_bar(left, top, *shared, BOTH_COLOR))
    text_left = left + BAR_WIDTH + 10
    lines.append(f"<text x='{text_left}' y='{base}' fill='#444444'>{escape(choice.text)}</text>")
    return [line for line in lines if line]


def _short(name: str) -> str:
    return name if len(name) <= 28 else f"{name[:27]}…"


def _span(choice: LayerChoice, side: Processor) -> tuple[float, float]:
    """Share of the output that a processor computes, as begin and end of 0..1."""
    part: OutputPart | None = choice.parts.of(side)
    if part is None:
        return 0.0, 0.0
    height, _, channels = choice.shape
    if part.channel_end - part.channel_begin < channels:
        return part.channel_begin / channels, part.channel_end / channels
    return part.row_begin / height, part.row_end / height


def _bar(left: int, top: int, begin: float, end: float, color: str) -> str:
    if end <= begin:
        return ""
    x, width = left + begin * BAR_WIDTH, (end - begin) * BAR_WIDTH
    return (
        f"<rect x='{x:.1f}' y='{top + 3}' width='{width:.1f}' height='{ROW - 6}' fill='{color}'/>"
    )


def _frames(choices: Sequence[LayerChoice]) -> list[str]:
    """A bracket beside the layers of each stage that has several."""
    lines = []
    several = (Placement.CHAIN, Placement.BRANCHES)
    stages = sorted({choice.stage for choice in choices if choice.placement in several})
    for stage in stages:
        places = [number for number, choice in enumerate(choices) if choice.stage == stage]
        top, bottom = HEADER + places[0] * ROW + 3, HEADER + (places[-1] + 1) * ROW - 3
        x = MARGIN + 3
        lines.append(
            f"<path d='M{x + 3} {top}H{x}V{bottom}H{x + 3}' fill='none' stroke='#444444'/>"
        )
    return lines
