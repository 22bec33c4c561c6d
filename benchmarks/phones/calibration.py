#!/usr/bin/env python3
"""Modelled times beside published measurements: docs/estimate.md's table, in Markdown.

python -m benchmarks.phones.calibration --networks FOLDER
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.command_line import parser_of
from benchmarks.markdown_table import markdown_table
from benchmarks.records import TITLES
from phonebit.estimate.network_times import estimate
from phonebit.estimate.phones import known_phones

PAPER = "PhoneBit, table III"
LCE = "Larq Compute Engine"
PUBLISHED = (
    ("alexnet", "snapdragon-820", 0, PAPER, 22.9),
    ("yolov2_tiny", "snapdragon-820", 0, PAPER, 42.1),
    ("vgg16", "snapdragon-820", 0, PAPER, 152.3),
    ("alexnet", "snapdragon-855", 0, PAPER, 9.8),
    ("yolov2_tiny", "snapdragon-855", 0, PAPER, 22.6),
    ("vgg16", "snapdragon-855", 0, PAPER, 73.8),
    ("quicknet", "raspberry-pi-4", 0, LCE, 45.0),
    ("quicknet", "pixel-1", 1, LCE, 25.5),
    ("birealnet18", "pixel-1", 1, LCE, 47.7),
    ("birealnet18", "pixel-1", 1, "daBNN", 61.3),
)
"""Network, phone, its processor, whose measurement, milliseconds."""


def main() -> None:
    """Prints the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--networks", type=Path, required=True, help="folder of NETWORK.pbit")
    arguments = parser.parse_args()
    rows = []
    for network, name, processor, engine, published in PUBLISHED:
        phone = known_phones()[name]
        found = estimate(arguments.networks / f"{network}.pbit", phone).processors[processor]
        rows.append([TITLES[network], found.processor, engine, f"{published:.1f}",
                     f"{found.total_ms:.1f}", f"{found.total_ms / published:.2f}"])  # fmt: skip
    head = ["network", "processor", "engine", "published, ms", "modelled, ms", "ratio"]
    print(markdown_table(head, rows, texts=3))


if __name__ == "__main__":
    main()
