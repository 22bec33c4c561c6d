"""Times of things that take turns, so that what else runs on the machine disturbs all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

WARM_UP: Final = 3


def times_ms(runs: list[Callable[[], Any]], turns: int) -> np.ndarray[Any, Any]:
    """Milliseconds (turns, runs), each run once a turn."""
    rows = []
    for turn in range(WARM_UP + turns):
        row = []
        for run in runs:
            begin = time.perf_counter()
            run()
            row.append(1e3 * (time.perf_counter() - begin))
        if turn >= WARM_UP:
            rows.append(row)
    return np.array(rows)
