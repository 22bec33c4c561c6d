"""What all latency predictors are: models by name, and what tells a part's name and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import OutputPart, Processor
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
        name: The method that it comes from: "ulayer", "codl" or "finegrained".
        describe: That method's.
        models: By name, of each processor that was measured; ``ALL`` is among the names.
    """

    name: str
    describe: Describe
    models: Mapping[Processor, Mapping[str, Model]]

    def microseconds(self, layer: LayerShape, processor: Processor, part: OutputPart) -> float:
        """The predicted time of one part."""
        return self.microseconds_of_parts(layer, processor, [part])[0]

    def microseconds_of_parts(
        self, layer: LayerShape, processor: Processor, parts: Sequence[OutputPart]
    ) -> list[float]:
        """Predicted times of parts of one layer.

        Args:
            layer: What is known of the layer.
            processor: Who computes the parts.
            parts: What of the layer's output, at least one element each.

        Raises:
            NoKernelError: The processor has no kernel for one of the parts.
            InputError: The processor was not measured.
        """
        if processor not in self.models:
            name = processor.name.lower()
            hint = f"collect samples with --device {name} or gpu+cpu"
            raise InputError(f"the profile knows nothing of the {name}", where="profile", hint=hint)
        models = self.models[processor]
        places: dict[str, list[int]] = {}
        found = [self.describe(layer, processor, part) for part in parts]
        for place, (name, _) in enumerate(found):
            places.setdefault(name if name in models else ALL, []).append(place)
        times = np.zeros(len(parts))
        for name, own in places.items():
            times[own] = models[name].microseconds([found[place][1] for place in own])
        return [float(time) for time in times]
