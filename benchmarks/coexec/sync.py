"""Costs of synchronization: polling, events, user events, and sharing by SVM, mapping and copying.

    python -m benchmarks.coexec.sync --testbed g1c1-avx2

Every way to share memory is combined with every way to wait. A layer that only moves values is cut
in two, for maps from 4 KB to 4 MB; what it takes inside a network, less the slower processor's own
time, is the overhead of a synchronization: the terms of CoDL's eq. 2, and section 4 of
Fine-Grained, which has 162 us by events and 7 us by polling on a Moto 2022.

Besides, the GPU alone computes the whole layer: what that takes more than its kernels is the
driver's time from one kernel to the next, which is in every other number, too.
"""

from __future__ import annotations

import sys
from itertools import product
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.layer_files import MeasuredLayer
from benchmarks.coexec.tables import ALONE
from benchmarks.layer_shapes import layer_shape
from phonebit import DeviceError

SHARING: Final = ("svm", "map", "copy")
SYNCHRONIZATION: Final = ("polling", "user_events", "events")
WIDTH: Final = 16
CHANNELS: Final = 16
ROW_BYTES: Final = WIDTH * CHANNELS * 4
ROWS: Final = (4, 16, 64, 256, 1024, 4096)
REPEATS: Final = 5
ROUNDS: Final = 9


def ways(bench: Bench, rows: int) -> tuple[dict[str, MeasuredLayer], dict[str, str]]:
    """The layer, loaded in each combination, and why some are not possible on the device."""
    size = (rows, WIDTH)
    moving = layer_shape("max_pool2d", size, CHANNELS, CHANNELS, dtype="f32", values=True)
    possible, impossible = {}, {}
    for sharing, waiting in product(SHARING, SYNCHRONIZATION):
        name = f"{sharing}, {waiting}"
        try:
            possible[name] = MeasuredLayer(bench, moving, sharing=sharing, synchronization=waiting)
        except DeviceError as error:
            impossible[name] = str(error)
    return possible, impossible


def overheads(layers: dict[str, MeasuredLayer], rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds of a synchronization by combination, which take turns: median, p10, p90."""
    seen: dict[str, list[float]] = {ALONE: [], **{name: [] for name in layers}}
    for _ in range(rounds):
        for name, layer in layers.items():
            seen[name].append(layer.rows_split(layer.height // 2, REPEATS).sharing_us)
        for layer in list(layers.values())[:1]:
            seen[ALONE].append(layer.channels_split(layer.channels, REPEATS).sharing_us)
    return {
        name: {
            "median_us": median(values),
            "p10_us": float(np.percentile(values, 10)),
            "p90_us": float(np.percentile(values, 90)),
        }
        for name, values in seen.items()
        if values
    }


def measure(bench: Bench) -> dict[str, Any]:
    """All sizes, the smallest first, until the budget is used up."""
    sizes = {}
    failures: dict[str, str] = {}
    for number, rows in enumerate(ROWS):
        if number == (2 if bench.smoke else len(ROWS)) or (number and not bench.budget.left_s):
            break
        layers, impossible = ways(bench, rows)
        failures |= impossible
        sizes[str(rows * ROW_BYTES)] = overheads(layers, 3 if bench.smoke else ROUNDS)
    return {"bytes": sizes, "impossible": failures}


if __name__ == "__main__":
    sys.exit(main({"sync": measure}, __doc__, budget_s=120))
