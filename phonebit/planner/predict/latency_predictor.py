"""What every latency predictor offers the planner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.layer_shape import LayerShape


class LatencyPredictor(Protocol):
    """How long a processor computes a part of a layer, handing over and waiting not included."""

    @property
    def name(self) -> str:
        """The method that it comes from: "ulayer", "codl" or "finegrained"."""

    def microseconds(self, layer: LayerShape, processor: Processor, part: OutputPart) -> float:
        """The predicted time of one part.

        Args:
            layer: What is known of the layer.
            processor: Who computes the part.
            part: What of the layer's output, at least one element.

        Returns:
            Microseconds, above 0.

        Raises:
            NoKernelError: The processor has no kernel for the part.
        """

    def microseconds_of_parts(
        self, layer: LayerShape, processor: Processor, parts: Sequence[OutputPart]
    ) -> list[float]:
        """The same for several parts of one layer, at once and therefore faster."""
