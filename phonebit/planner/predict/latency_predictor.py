"""What all latency predictors are: models by name, and what tells a part's name and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.kernels import NoKernelError
from phonebit.planner.predict.layer_shape import LayerShape

ALL: Final = "*"
"""Name of the model of all of a processor's samples: it serves what has too few of its own."""

Describe = Callable[[LayerShape, Processor, OutputPart], tuple[str, Any]]
"""Tells which model knows a part, a kernel's or a family's, and what that model looks at."""


class Model(Protocol):
    """What was learnt of a kernel, or a family of layers."""

    def microseconds(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """Predicted times of parts, each above 0, from what ``Describe`` tells of them."""


@dataclass(frozen=True)
class LatencyPredictor:
    """How long a processor computes parts of layers, handing over and waiting not included.

    Args:
        describe: That of a method.
        models: By name, of each processor; ``ALL`` is among the names.
    """

    describe: Describe
    models: Mapping[Processor, Mapping[str, Model]]

    def microseconds_of(
        self, processor: Processor, parts: Sequence[tuple[LayerShape, OutputPart]]
    ) -> NDArray[np.float64]:
        """Predicted times of parts of layers, each of one element at least.

        Infinity where the processor has no kernel for a part.
        """
        models = self.models[processor]
        groups: dict[str, dict[int, Any]] = {}
        for place, (layer, part) in enumerate(parts):
            try:
                name, inputs = self.describe(layer, processor, part)
            except NoKernelError:
                continue
            groups.setdefault(name if name in models else ALL, {})[place] = inputs
        times = np.full(len(parts), np.inf)
        for name, of in groups.items():
            times[list(of)] = models[name].microseconds(list(of.values()))
        return times
