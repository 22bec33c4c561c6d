"""What it costs that one processor reads what the other one wrote."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class SharingCost:
    """Waiting for each other, and bringing data over; the first line of CoDL's eq. 2.

    Where both processors work in the same memory (fine-grained SVM) the bytes cost nothing, and
    what is left is a constant: Fine-Grained Co-execution, section 2.

    Args:
        sync_us: Microseconds of one synchronization, whatever is transferred.
        us_per_byte_to_cpu: Of what the GPU wrote and the CPU reads: copied, or mapped.
        us_per_byte_to_gpu: The other way.
        bound_us: Of one synchronization likewise, the longest that was measured; CoDL reckons with
        that.
    """

    sync_us: float
    us_per_byte_to_cpu: float = 0.0
    us_per_byte_to_gpu: float = 0.0
    bound_us: float = 0.0

    def microseconds(self, bytes_to_cpu: int, bytes_to_gpu: int) -> float:
        """Cost of one synchronization."""
        moved = bytes_to_cpu * self.us_per_byte_to_cpu + bytes_to_gpu * self.us_per_byte_to_gpu
        return self.sync_us + moved

    def scaled(self, times: float) -> SharingCost:
        """The cost where everything takes so many times as long."""
        return SharingCost(*(times * us for us in astuple(self)))

    @classmethod
    def fit(cls, moved: ArrayLike, times_us: ArrayLike) -> SharingCost:
        """Least squares with no negative term, of (N, 2) bytes to the CPU and to the GPU."""
        from scipy.optimize import nnls

        columns = np.insert(np.asarray(moved, np.float64), 0, 1, axis=1)
        scale = np.maximum(columns.max(axis=0), 1)
        weights, _norm = nnls(columns / scale, np.asarray(times_us, np.float64))
        return cls(*(float(weight) for weight in weights / scale))
