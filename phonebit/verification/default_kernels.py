"""Where a framework's default kernels do not give what its reference kernels give.

Larq Compute Engine has both for binary convolutions. A file is compared with the reference kernels,
which are the definition; who deploys the other ones should know where these differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from phonebit.verification.source_trace import Array


@dataclass
class DefaultKernels:
    """Differences of a framework's default kernels from its reference kernels.

    Attributes:
        differing: elements that differ, by value, in the source's order; after the first value with
            some, all may differ because of it.
        compared: how many there are, likewise.
        outputs: names of the network's outputs.
        class_changes: inputs for which the best class differs in some output.
        samples: inputs compared.
    """

    outputs: Sequence[str]
    differing: dict[str, int] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)
    class_changes: int = 0
    samples: int = 0

    def add(self, values: Mapping[str, Array], default: Mapping[str, Array]) -> None:
        """Compare one batch.

        Args:
            values: the source's, by the reference kernels, (N, height, width, channels) by name in
                the source's order.
            default: those of the default kernels, likewise.
        """
        samples = len(next(iter(values.values())))
        changed = np.zeros(samples, np.bool_)
        for name in (name for name in values if name in default):
            reference, other = (x[name].reshape(samples, -1) for x in (values, default))
            differs = int(np.count_nonzero(reference != other))
            self.differing[name] = self.differing.get(name, 0) + differs
            self.compared[name] = self.compared.get(name, 0) + reference.size
            if name in self.outputs:
                changed |= reference.argmax(axis=1) != other.argmax(axis=1)
        self.samples += samples
        self.class_changes += int(np.count_nonzero(changed))

    @property
    def text(self) -> str:
        """The differences in a sentence, or ""."""
        first = next((name for name, count in self.differing.items() if count), None)
        if first is None:
            return ""
        made, all_of_them = (
            sum(counts.get(name, 0) for name in self.outputs)
            for counts in (self.differing, self.compared)
        )
        return (
            "Larq Compute Engine's default kernels differ from its reference kernels, with which "
            f"the file is compared: first at {first} ({self.differing[first]:,} of "
            f"{self.compared[first]:,} elements), in {made:,} of {all_of_them:,} elements of the "
            f"outputs and in the class of {self.class_changes:,} of {self.samples:,} inputs"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**asdict(self), "equal": not self.text}
