"""Times of parts of a network's layers: predicted, or measured on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class PredictedTimes:
    """What a predictor says; layers of one shape are asked for once."""

    def __init__(self, shapes: Sequence[LayerShape], predictor: LatencyPredictor) -> None:
        self._shapes = shapes
        self._predictor = predictor
        self._known: dict[tuple[LayerShape, Processor, OutputPart], float] = {}

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """What ``PartTimes`` asks for, of processors that do not disturb each other."""
        shape = self._shapes[parts[0].layer]
        cpu = [entry.cpu and entry.cpu.whole_words(shape.out_c) for entry in parts]
        cpu_us = self._times(shape, Processor.CPU, cpu)
        gpu_us = self._times(shape, Processor.GPU, [entry.gpu for entry in parts])
        return list(zip(cpu_us, gpu_us, strict=True))

    def _times(
        self, shape: LayerShape, side: Processor, parts: Sequence[OutputPart | None]
    ) -> list[float]:
        keys = [None if part is None else (shape, side, part) for part in parts]
        new = [key for key in dict.fromkeys(keys) if key and key not in self._known]
        if new:
            times = self._predictor.microseconds_of(side, [(shape, part) for _, _, part in new])
            self._known |= zip(new, times.tolist(), strict=True)
        return [self._known[key] if key else 0.0 for key in keys]


class ProportionalTimes:
    """A part takes of its layer's time what it has of the output, beyond what a launch takes.

    A launch is taken for as long as the quickest whole layer of the network on that processor.
    """

    def __init__(self, shapes: Sequence[LayerShape], whole: PartTimes) -> None:
        self._shapes = shapes
        self._whole = whole

    @cached_property
    def _whole_us(self) -> list[tuple[float, float]]:
        """Of each layer, on the CPU and on the GPU."""
        times = []
        for layer, shape in enumerate(self._shapes):
            sides = LayerParts(layer, shape.whole, None), LayerParts(layer, None, shape.whole)
            (cpu_us, _), (_, gpu_us) = self._whole.microseconds(sides)
            times.append((cpu_us, gpu_us))
        return times

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Likewise."""
        shape = self._shapes[parts[0].layer]

        def part_us(side: Processor, part: OutputPart | None) -> float:
            whole_us = self._whole_us[parts[0].layer][side]
            if part in (None, shape.whole):
                return 0.0 if part is None else whole_us
            launch_us = min(us[side] for us in self._whole_us)
            share = shape.outputs_of(part) / shape.outputs_of(shape.whole)
            return launch_us + (whole_us - launch_us) * share

        return [
            (
                part_us(Processor.CPU, entry.cpu and entry.cpu.whole_words(shape.out_c)),
                part_us(Processor.GPU, entry.gpu),
            )
            for entry in parts
        ]


class MeasuredTimes:
    """What the device says; layers of one shape are measured once.

    To measure is to run parts of the CPU and the GPU at the same time.
    """

    def __init__(
        self, shapes: Sequence[LayerShape], measure: Callable[[LayerParts], tuple[float, float]]
    ) -> None:
        self._shapes = shapes
        self._measure = measure
        self._known: dict[object, tuple[float, float]] = {}

    @property
    def measurements(self) -> int:
        """How many pairs of parts were measured."""
        return len(self._known)

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        """Likewise; parts of an entry run side by side and disturb each other."""
        keys = [(self._shapes[entry.layer], entry.cpu, entry.gpu) for entry in parts]
        for key, entry in zip(keys, parts, strict=True):
            if key not in self._known:
                self._known[key] = self._measure(entry)
        return [self._known[key] for key in keys]
