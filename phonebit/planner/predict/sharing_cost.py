"""What it costs that one processor reads what the other one wrote."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class SharingCost:
    """Waiting for each other, and bringing data over; the first line of CoDL's eq. 2.

    Where both processors work in the same memory (fine-grained SVM) the bytes cost nothing, and
    what is left is a constant: Fine-Grained Co-execution, section 2.

    Args:
        sync_us: Microseconds of one meeting, whatever is handed over.
        us_per_byte_to_cpu: Of what the GPU wrote and the CPU reads: copied, or mapped.
        us_per_byte_to_gpu: The other way.
        bound_us: Of one meeting likewise, the longest that was measured; CoDL reckons with that.
    """

    sync_us: float
    us_per_byte_to_cpu: float = 0.0
    us_per_byte_to_gpu: float = 0.0
    bound_us: float = 0.0

    def microseconds(self, bytes_to_cpu: int, bytes_to_gpu: int) -> float:
        """Cost of one meeting.

        Args:
            bytes_to_cpu: That the GPU wrote and the CPU reads for the first time.
            bytes_to_gpu: The other way.
        """
        moved = bytes_to_cpu * self.us_per_byte_to_cpu + bytes_to_gpu * self.us_per_byte_to_gpu
        return self.sync_us + moved

    @classmethod
    def fit(cls, handovers: ArrayLike) -> SharingCost:
        """Least squares with no negative term.

        Args:
            handovers: (N, 3) bytes to the CPU, to the GPU, measured microseconds; N is not 0.
        """
        table = np.array(handovers, np.float64)
        columns = np.column_stack([np.ones(len(table)), table[:, :2]])
        best = (np.inf, np.zeros(3))
        for count in range(1, 4):
            for chosen in map(list, combinations(range(3), count)):
                weights = np.zeros(3)
                weights[chosen] = np.linalg.lstsq(columns[:, chosen], table[:, 2], rcond=None)[0]
                error = float(np.sum((columns @ weights - table[:, 2]) ** 2))
                if (weights >= 0).all() and error < best[0] * (1 - 1e-9):
                    best = (error, weights)
        return cls(*(float(weight) for weight in best[1]))
