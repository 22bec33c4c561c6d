"""Charts of a profile, as HTML and SVG that need no script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from phonebit.display import bytes_text
from phonebit.display import escape_html as escape
from phonebit.html_page import figure

Layer = Mapping[str, Any]
WIDTH: Final = 358
"""Of drawings in pixels on a phone; a page may scale them up."""
LETTER: Final = 6.0
"""About the width of a letter in a drawing, in pixels."""
MAX_LETTERS: Final = 16
STYLE: Final = """
.lane { position: relative; height: 2rem; background: var(--band); margin: .2rem 0; }
.lane > span { position: absolute; top: 0; bottom: 0; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis;
  box-sizing: border-box; border-right: 1px solid var(--paper); font-size: .75rem;
  line-height: 2rem; padding-left: .2rem; color: var(--paper); }
.bar { display: flex; height: 1.2rem; background: var(--band); }
.bit { background: var(--bit); } .full { background: var(--mild); }
.none { background: var(--soft); } .arena { background: var(--line); }
.legend > span { white-space: nowrap; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; }
.shares { display: grid; grid-template-columns: fit-content(40%) 1fr auto; gap: .3rem .7rem;
  align-items: center; font-variant-numeric: tabular-nums; }
.shares > :first-child, .shares > span { overflow-wrap: anywhere; }
.shares, .lane, .axis { max-width: 60rem; }
.axis { display: flex; justify-content: space-between; }
.chart { width: 100%; max-width: 560px; height: auto; }
.chart text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.chart .axis { stroke: var(--soft); fill: none; } .chart .roof { stroke: var(--soft); fill: none;
  stroke-dasharray: 4 3; } .chart .bit { fill: var(--bit); } .chart .full { fill: var(--mild); }
.chart .none { fill: var(--soft); }
"""
LEGEND: Final = (
    '<p class="soft legend"><span><span class="key bit"></span>binary layers</span> '
    '<span><span class="key full"></span>full-precision layers</span> '
    '<span><span class="key none"></span>layers without multiply-accumulates</span></p>'
)


def shade(layer: Layer) -> str:
    """Class of a layer's colour, as in ``LEGEND``."""
    return ("bit" if layer["binary"] else "full") if layer["macs"] else "none"


def timeline(layers: Sequence[Layer], spans: Sequence[Mapping[str, Any]]) -> str:
    """A lane per processor: what it does when."""
    total = max((span["end_ms"] for span in spans), default=0.0)
    parts = []
    for processor in sorted({span["processor"] for span in spans}):
        of_lane = [span for span in spans if span["processor"] == processor]
        busy = sum(span["end_ms"] - span["begin_ms"] for span in of_lane)
        boxes = "".join(_span(span, layers[span["layer"]], total) for span in of_lane)
        share = f"{100 * busy / total:.0f} % busy" if total else ""
        parts.append(f'<p>{processor.upper()} <span class="soft">{share}</span></p>')
        parts.append(f'<div class="lane">{boxes}</div>')
    axis = f'<p class="axis soft"><span>0</span><span>{total:.3f} ms</span></p>'
    return "\n".join([*parts, axis])


def _span(span: Mapping[str, Any], layer: Layer, total: float) -> str:
    left, width = (
        100 * ms / total if total else 0.0
        for ms in (span["begin_ms"], span["end_ms"] - span["begin_ms"])
    )
    name = escape(layer["name"])
    what = f"{name} {span['part']}: {span['end_ms'] - span['begin_ms']:.4f} ms"
    return (
        f'<span class="{shade(layer)}" style="left:{left:.3f}%;width:{width:.3f}%" '
        f'title="{what}">{name if width > 4 else ""}</span>'
    )


def shares(layers: Sequence[Layer]) -> str:
    """Of time, multiply-accumulates and weights: how much is of binary layers."""
    rows = []
    for title, key in (("time", "latency_ms"), ("MACs", "macs"), ("weights", "weight_bytes")):
        sums = {"bit": 0.0, "full": 0.0, "none": 0.0}
        for layer in layers:
            sums[shade(layer)] += layer[key]
        total = sum(sums.values()) or 1.0
        bars = "".join(
            f'<span class="{kind}" style="width:{100 * value / total:.2f}%"></span>'
            for kind, value in sums.items()
            if value
        )
        percent = f"{100 * sums['bit'] / total:.1f} % binary"
        rows.append(f'<span>{title}</span><span class="bar">{bars}</span><span>{percent}</span>')
    return f'<div class="shares">{"".join(rows)}</div>'


def roofline(layers: Sequence[Layer]) -> str:
    """GOPS over operations per byte, and a caption; the roofs are what the best layers attain."""
    points = [
        (2 * layer["macs"] / layer["bytes"], layer["gops"], layer)
        for layer in layers
        if layer["macs"] and layer["bytes"] and layer["gops"] > 0
    ]
    if not points:
        return ""
    peak = max(gops for _, gops, _ in points)
    slope = max(gops / intensity for intensity, gops, _ in points)  # GB/s
    low_x, high_x = _decades([x for x, _, _ in points])
    low_y, high_y = _decades([y for _, y, _ in points])
    left, top, width, height = 48.0, 10.0, WIDTH - 66.0, 230.0

    def at(x: float, y: float) -> tuple[float, float]:
        right = math.log10(x / low_x) / math.log10(high_x / low_x)
        up = math.log10(y / low_y) / math.log10(high_y / low_y)
        return left + width * right, top + height * (1 - up)

    start = max(low_x, low_y / slope)
    corner = min(max(peak / slope, low_x), high_x)
    roof = [at(start, start * slope), at(corner, min(peak, corner * slope)), at(high_x, peak)]
    parts = [
        f'<path class="axis" d="M{left:g} {top:g}V{top + height:g}H{left + width:g}"/>',
        f'<path class="roof" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in roof)}"/>',
    ]
    parts += [_dot(at(x, y), x, y, layer) for x, y, layer in points]
    slowest = sorted(points, key=lambda point: -point[2]["latency_ms"])
    parts += _names([(*at(x, y), layer["name"]) for x, y, layer in slowest], left + width)
    parts += [_tick(*at(x, low_y), f"{x:g}", True) for x in _powers(low_x, high_x)]
    parts += [_tick(*at(low_x, y), f"{y:g}", False) for y in _powers(low_y, high_y)]
    drawing = (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {top + height + 36:g}">'
        f'{"".join(parts)}<text x="{left + 5:g}" y="{top + 8:g}">GOPS</text>'
        f'<text x="{left + width:g}" y="{top + height + 32:g}" text-anchor="end">'
        "operations per byte</text></svg>"
    )
    return figure(
        drawing,
        "A dot per layer, with the names of the slowest. Dashed: the highest speed "
        f"({peak:,.0f} GOPS) and the highest bandwidth ({slope:,.1f} GB/s) that a layer of this "
        "network attains here, not the limits of the machine. Bytes: inputs, weights and outputs, "
        "each once.",
    )


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around values, at least one apart."""
    low = math.floor(math.log10(min(values)))
    return 10.0**low, 10.0 ** max(math.ceil(math.log10(max(values))), low + 1)


def _powers(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def _dot(place: tuple[float, float], x: float, y: float, layer: Layer) -> str:
    what = f"{layer['name']}: {y:,.1f} GOPS, {x:,.1f} operations per byte"
    return (
        f'<circle class="{shade(layer)}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="4" '
        f'fill-opacity=".8"><title>{escape(what)}</title></circle>'
    )


def _names(dots: Sequence[tuple[float, float, str]], right: float) -> list[str]:
    """Names of dots, the first ones first, as far as they find room."""
    taken = [(x - 4, x + 4, y - 4, y + 4) for x, y, _ in dots]
    texts = []
    for x, y, name in dots:
        shown = name if len(name) <= MAX_LETTERS else f"…{name[1 - MAX_LETTERS :]}"
        wide = LETTER * len(shown)
        for begin in (x + 6, x - 6 - wide):
            box = (begin, begin + wide, y - 6, y + 6)
            is_inside = begin >= 48 and begin + wide <= right + 18
            if is_inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                texts.append(f'<text x="{begin:.1f}" y="{y + 4:.1f}">{escape(shown)}</text>')
                break
    return texts


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _tick(x: float, y: float, text: str, is_below: bool) -> str:
    if is_below:
        return f'<text x="{x:.1f}" y="{y + 14:.1f}" text-anchor="middle">{text}</text>'
    return f'<text x="{x - 5:.1f}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def live_memory(layers: Sequence[Layer], arena_bytes: int) -> str:
    """A bar per layer: bytes of the intermediate tensors that are live while it runs."""
    maximum = max([arena_bytes, *(layer["live_bytes"] for layer in layers)]) or 1
    rows = [("arena", "arena", arena_bytes)]
    rows += [(layer["name"], shade(layer), layer["live_bytes"]) for layer in layers]
    cells = "".join(
        f'<span>{escape(name)}</span><span class="bar"><span class="{kind}" '
        f'style="width:{100 * size / maximum:.2f}%"></span></span><span>{bytes_text(size)}</span>'
        for name, kind, size in rows
    )
    return f'<div class="shares">{cells}</div>'
