"""Bar charts of the results pages, as SVG with light and dark colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 760
LEFT: Final = 118.0
"""Of the bars; names of groups stand before it."""
RIGHT: Final = 120.0
"""Space for the text after the longest bar."""
BAR: Final = 13
GAP: Final = 14
STYLE: Final = """text{font:12px system-ui,sans-serif;fill:#5b6470}
.title,.name{fill:#1c2128;font-weight:600}
.paper{fill:#fff}.s0{fill:#b9c1ca}.s1{fill:#8a96a3}.s2{fill:#c28a2c}.ours{fill:#0b6e99}
@media (prefers-color-scheme: dark){text{fill:#9aa4b0}.title,.name{fill:#e4e8ed}
.paper{fill:#0d1117}.s0{fill:#4a535e}.s1{fill:#6b7683}.s2{fill:#e0b050}.ours{fill:#6cc4e8}}"""
"""s0 to s2: others, in the order of the legend."""


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        series: index into the legend.
        value: its length; 0 or more.
        text: stands after it.
    """

    series: int
    value: float
    text: str


def bar_chart(
    title: str, legend: Sequence[str], groups: Sequence[tuple[str, Sequence[Bar]]]
) -> str:
    """Groups of horizontal bars.

    Args:
        title: above the chart.
        legend: names of the series; the last one is PhoneBit.
        groups: names and bars.
    """
    kinds = [*(f"s{series}" for series in range(len(legend) - 1)), "ours"]
    longest = max(bar.value for _, bars in groups for bar in bars)
    parts = [f'<text x="0" y="15" class="title">{escape(title)}</text>']
    x = 0.0
    for name, kind in zip(legend, kinds, strict=True):
        parts.append(f'<rect x="{x:.0f}" y="26" width="11" height="11" class="{kind}"/>')
        parts.append(f'<text x="{x + 16:.0f}" y="36">{escape(name)}</text>')
        x += 34 + 6.6 * len(name)
    y = 54.0
    for name, bars in groups:
        middle = y + BAR * len(bars) / 2 + 4
        parts.append(f'<text x="0" y="{middle:.1f}" class="name">{escape(name)}</text>')
        for bar in bars:
            width = (WIDTH - LEFT - RIGHT) * bar.value / longest
            parts.append(
                f'<rect x="{LEFT}" y="{y:g}" width="{width:.1f}" height="{BAR - 2}" '
                f'class="{kinds[bar.series]}"/>'
            )
            parts.append(
                f'<text x="{LEFT + width + 5:.1f}" y="{y + 9:g}">{escape(bar.text)}</text>'
            )
            y += BAR
        y += GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y:.0f}" '
        f'viewBox="0 0 {WIDTH} {y:.0f}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{y:.0f}" class="paper"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
