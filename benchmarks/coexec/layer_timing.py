"""A layer measured with any parts on both processors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.coexec.experiment import Bench
from phonebit.planner.measure.measuring import LayerTimes, measure_parts
from phonebit.planner.plan.execution_plan import OutputPart


class MeasuredLayer:
    """One layer of a network that is loaded on both processors.

    Args:
        bench: the testbed.
        path: a network.
        layer: the layer's place in it.
        threads: of the CPU; None: one on each of its cores.
        options: of ``Network.load``: sharing, synchronization.
    """

    def __init__(
        self, bench: Bench, path: Path, layer: int, threads: int | None = None, **options: Any
    ) -> None:
        self.engine = bench.measuring_engine(path, threads, **options)
        self.layer = layer
        info = self.engine.layers[layer]
        shapes = {tensor.name: tensor.shape for tensor in self.engine.outputs}
        height, _, channels = shapes[info.outputs[0]]
        self.height, self.channels = height, channels

    @property
    def whole(self) -> OutputPart:
        """All of the output."""
        return OutputPart(0, self.height, 0, self.channels)

    def measure(self, cpu: OutputPart | None, gpu: OutputPart | None, repeats: int) -> LayerTimes:
        """The least of some runs; None: the processor does nothing."""
        return measure_parts(self.engine, self.layer, cpu, gpu, repeats)

    def on_cpu(self, repeats: int) -> LayerTimes:
        """The whole layer on the CPU."""
        return self.measure(self.whole, None, repeats)

    def on_gpu(self, repeats: int) -> LayerTimes:
        """The whole layer on the GPU."""
        return self.measure(None, self.whole, repeats)

    def channels_split(self, gpu_channels: int, repeats: int) -> LayerTimes:
        """The GPU computes the first channels; 0 or all: one processor alone."""
        if gpu_channels == 0:
            return self.on_cpu(repeats)
        if gpu_channels == self.channels:
            return self.on_gpu(repeats)
        gpu = OutputPart(0, self.height, 0, gpu_channels)
        cpu = OutputPart(0, self.height, gpu_channels, self.channels)
        return self.measure(cpu, gpu, repeats)

    def rows_split(self, gpu_rows: int, repeats: int) -> LayerTimes:
        """The GPU computes the first rows, neither none nor all."""
        gpu = OutputPart(0, gpu_rows, 0, self.channels)
        cpu = OutputPart(gpu_rows, self.height, 0, self.channels)
        return self.measure(cpu, gpu, repeats)
