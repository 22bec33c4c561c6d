"""Times of parts of a network's layers: predicted, or measured on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.profile import LatencyPredictor
from phonebit.planner.search.stages import LayerParts


class PartTimes(Protocol):
    """Where the times of parts of layers come from."""

    def microseconds(self, parts: Sequence[LayerParts], /) -> list[tuple[float, float]]:
        """Times of the CPU and of the GPU for parts of one layer, without any exchange.

        Returns:
            For each entry (CPU's, GPU's) microseconds; 0 for a processor without a part, infinity
            for one that has no kernel for it.
        """


@dataclass
class PredictedTimes:
    """What a predictor says; layers of one shape are asked for once."""

    shapes: Sequence[LayerShape]
    predictor: LatencyPredictor
    known: dict[tuple[LayerShape, Processor, OutputPart], float] = field(default_factory=dict)

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """What ``PartTimes`` asks for, of processors that do not disturb each other."""
        shape = self.shapes[parts[0].layer]
        cpu = [entry.cpu and entry.cpu.whole_words(shape.out_c) for entry in parts]
        cpu_us = self._times(shape, Processor.CPU, cpu)
        gpu_us = self._times(shape, Processor.GPU, [entry.gpu for entry in parts])
        return list(zip(cpu_us, gpu_us, strict=True))

    def _times(
        self, shape: LayerShape, side: Processor, parts: Sequence[OutputPart | None]
    ) -> list[float]:
        keys = [None if part is None else (shape, side, part) for part in parts]
        new = [key for key in dict.fromkeys(keys) if key and key not in self.known]
        if new:
            times = self.predictor.microseconds_of(side, [(shape, part) for _, _, part in new])
            self.known |= zip(new, times.tolist(), strict=True)
        return [self.known[key] if key else 0.0 for key in keys]


@dataclass
class ProportionalTimes:
    """A part takes of its layer's time what it has of the output, beyond what a launch takes.

    A launch is taken for as long as the quickest whole layer of the network on that processor.
    """

    shapes: Sequence[LayerShape]
    whole: PartTimes

    @cached_property
    def _whole_us(self) -> list[tuple[float, float]]:
        """Of each layer, on the CPU and on the GPU."""
        times = []
        for layer, shape in enumerate(self.shapes):
            sides = LayerParts(layer, shape.whole, None), LayerParts(layer, None, shape.whole)
            (cpu_us, _), (_, gpu_us) = self.whole.microseconds(sides)
            times.append((cpu_us, gpu_us))
        return times

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Likewise."""
        shape = self.shapes[parts[0].layer]

        def part_us(side: Processor, part: OutputPart | None) -> float:
            whole_us = self._whole_us[parts[0].layer][side]
            if part in (None, shape.whole):
                return 0.0 if part is None else whole_us
            launch_us = min(us[side] for us in self._whole_us)
            share = shape.outputs_of(part) / shape.outputs_of(shape.whole)
            return launch_us + (whole_us - launch_us) * share

        sides = [(entry.cpu and entry.cpu.whole_words(shape.out_c), entry.gpu) for entry in parts]
        return [(part_us(Processor.CPU, cpu), part_us(Processor.GPU, gpu)) for cpu, gpu in sides]


@dataclass
class MeasuredTimes:
    """What the device says; layers of one shape are measured once.

    To measure is to run parts of the CPU and the GPU at the same time.
    """

    shapes: Sequence[LayerShape]
    measure: Callable[[LayerParts], tuple[float, float]]
    known: dict[object, tuple[float, float]] = field(default_factory=dict)

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Likewise; parts of an entry run side by side and disturb each other."""
        keys = [(self.shapes[entry.layer], entry.cpu, entry.gpu) for entry in parts]
        for key, entry in zip(keys, parts, strict=True):
            if key not in self.known:
                self.known[key] = self.measure(entry)
        return [self.known[key] for key in keys]
