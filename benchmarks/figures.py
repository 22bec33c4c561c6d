"""Plots for the documents; needs Matplotlib."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def subplots(rows: int, columns: int, width: float, height: float, **options: Any) -> Any:
    """A figure, in inches, and its panels (rows, columns); equal input draws equal files."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "phonebit", "font.size": 9}
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)


def save(figure: Figure, path: Path) -> None:
    """Writes a small SVG: tenths of a point, a line an element."""
    from matplotlib import pyplot as plt

    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    path.write_text(re.sub(r"<[^>]+>", lambda tag: _shorter(tag[0]), file.getvalue()))


def _shorter(tag: str) -> str:
    rounded = re.sub(r"\d+\.\d\d+", lambda number: f"{float(number[0]):.1f}", tag)
    return re.sub(r"\s*\n\s*", " ", rounded)
