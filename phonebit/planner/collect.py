"""Collecting samples: random layers are written, loaded on both processors and measured."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Final, Protocol

from phonebit.errors import DeviceError
from phonebit.format.writer import file_bytes
from phonebit.planner.collect_handovers import (
    ROWS,
    SHARES,
    WAYS,
    Way,
    handover,
    handover_layers,
    measure_handovers,
)
from phonebit.planner.measuring import MeasuringEngine, dispatch_of, measure_parts
from phonebit.planner.plan import OutputPart, Processor
from phonebit.planner.predictors.cpu_kernels import cpu_kernel
from phonebit.planner.predictors.layer_shape import LayerShape
from phonebit.planner.sampled_files import layer_file
from phonebit.planner.samples import (
    DeviceFacts,
    HandoverSample,
    PartSample,
    Samples,
    append_samples,
    begin_samples,
)
from phonebit.planner.sampling import sample_cuts, sample_layers

LEAST_US: Final = 0.01
"""Stands for a time that clocks do not resolve, as that of a reshape without a copy."""


class OpenEngine(Protocol):
    """Loads a file on both processors."""

    def __call__(self, path: Path, threads: int, way: Way) -> MeasuringEngine:
        """The engine of a network on "gpu+cpu".

        Args:
            path: The file.
            threads: CPU threads.
            way: How the processors share.

        Raises:
            DeviceError: The device cannot run it, or not in this way.
        """


@dataclass(frozen=True)
class CollectionPlan:
    """What is to be measured.

    Args:
        processors: Whose times.
        layers: How many random layers.
        threads: Numbers of CPU threads.
        cuts: Most parts of a layer in each direction.
        repeats: Runs of a round.
        rounds: Medians, of which the median counts.
        seed: Of layers, cuts and weights.
    """

    processors: tuple[Processor, ...]
    layers: int
    threads: tuple[int, ...]
    cuts: int = 3
    repeats: int = 20
    rounds: int = 3
    seed: int = 0


@dataclass
class CollectionReport:
    """What a collection did.

    Args:
        measured: Layers that were measured now, once for each number of threads.
        known: Those that the file had already.
        failed: Layers that the device could not run, with the reason.
    """

    measured: int
    known: int
    failed: dict[str, str]


def collect(
    path: Path,
    device: DeviceFacts,
    plan: CollectionPlan,
    open_engine: OpenEngine,
    progress: Callable[[str], None] = lambda _text: None,
) -> CollectionReport:
    """Measures layers and appends what it finds to a file, layer by layer.

    Layers that the file has already are not measured again, so that an interrupted collection goes
    on where it stopped.

    Args:
        path: The file of samples; it is begun if there is none.
        device: What is measured.
        plan: What of it.
        open_engine: Loads a file on both processors.
        progress: Called with a text before each layer.

    Raises:
        InputError: The file is of another device, or damaged.
        DeviceError: No layer could be measured.
        OSError: The file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="phonebit-collect-") as folder:
        collection = _Collection(path, device, plan, open_engine, Path(folder) / "layer.pbit")
        collection.collect_parts(progress)
        if len(plan.processors) == len(Processor):
            collection.collect_handovers(progress)
    report = collection.report
    if report.failed and not report.measured and not report.known:
        reason = next(iter(report.failed.values()))
        raise DeviceError(f"no layer could be measured: {reason}", where=device.gpu.name)
    return report


class _Collection:
    """A collection while it runs."""

    def __init__(
        self,
        path: Path,
        device: DeviceFacts,
        plan: CollectionPlan,
        open_engine: OpenEngine,
        file: Path,
    ) -> None:
        self.report = CollectionReport(0, 0, {})
        self._path = path
        self._device = device
        self._plan = plan
        self._open_engine = open_engine
        self._file = file
        self._samples = begin_samples(path, device)
        self._ways = self._available_ways()

    def collect_parts(self, progress: Callable[[str], None]) -> None:
        """Random layers, each as a whole and cut."""
        known = _known_layers(self._samples, self._plan)
        for layer in islice(sample_layers(self._plan.seed), self._plan.layers):
            for threads in self._plan.threads:
                progress(f"{layer.family} {layer.out_h}x{layer.out_w}x{layer.out_c}")
                if (layer, threads) in known:
                    self.report.known += 1
                    continue
                try:
                    found = self._measure_parts(layer, threads)
                except DeviceError as error:
                    self.report.failed[str(layer)] = str(error)
                    continue
                append_samples(self._path, found)
                known.add((layer, threads))
                self.report.measured += 1

    def collect_handovers(self, progress: Callable[[str], None]) -> None:
        """Every way of sharing that the device has, in layers of growing size."""
        known = {
            (sample.sharing, sample.synchronization, sample.threads, sample.bytes_to_cpu)
            for sample in self._samples.handovers
        }
        for way, threads, layer in product(self._ways, self._plan.threads, handover_layers()):
            whole_bytes = layer.output_bytes(layer.whole)
            if (*way, threads, round(whole_bytes * SHARES[-1] / ROWS)) in known:
                continue
            progress(f"sharing: {way.sharing}, {way.synchronization}, {whole_bytes / 1000:.0f} kB")
            engine, index = self._load(layer, threads, way)
            rounds = self._plan.repeats, self._plan.rounds
            found = measure_handovers(engine, layer, index, way, threads, *rounds)
            append_samples(self._path, found)

    def _load(self, layer: LayerShape, threads: int, way: Way) -> tuple[MeasuringEngine, int]:
        contents, index = layer_file(layer, self._plan.seed)
        # The runtime maps the file: one that is in use is replaced, never changed.
        self._file.unlink(missing_ok=True)
        self._file.write_bytes(file_bytes(contents))
        return self._open_engine(self._file, threads, way), index

    def _available_ways(self) -> list[Way]:
        """Those that the device has; the first serves where only one is needed."""
        available, refusals = [], []
        for way in WAYS:
            try:
                self._load(next(handover_layers()), self._plan.threads[0], way)
            except DeviceError as error:
                refusals.append(str(error))
            else:
                available.append(way)
        if not available:
            raise DeviceError(
                f"the processors cannot work together: {refusals[-1]}", where=self._device.gpu.name
            )
        return available

    def _measure_parts(self, layer: LayerShape, threads: int) -> list[PartSample | HandoverSample]:
        way = self._ways[0]
        engine, index = self._load(layer, threads, way)
        found: list[PartSample | HandoverSample] = []
        for cpu, gpu in part_pairs(layer, self._plan):
            times = measure_parts(engine, index, cpu, gpu, self._plan.repeats, self._plan.rounds)
            both = cpu is not None and gpu is not None
            if cpu is not None:
                kernel = cpu_kernel(layer, cpu, self._device.cpu)
                us, spread = max(times.cpu_us, LEAST_US), times.cpu_spread
                sample = PartSample(layer, Processor.CPU, threads, cpu, kernel, us, spread, both)
                found.append(sample)
            if gpu is not None:
                launches = tuple(dispatch_of(engine, index, gpu))
                choice = str(launches[-1]["choice"]) if launches else "none"
                us, spread = max(times.gpu_us, LEAST_US), times.gpu_spread
                sample = PartSample(layer, Processor.GPU, threads, gpu, choice, us, spread, both)
                found.append(replace(sample, dispatch=launches))
            if cpu is not None and gpu is not None:
                found.append(handover(layer, way, threads, cpu, gpu, times.sharing_us))
        return found


def _known_layers(samples: Samples, plan: CollectionPlan) -> set[tuple[LayerShape, int]]:
    """Layers of which the file has whole samples of every processor of the plan.

    A layer's lines are written at once, but an interruption may cut them off.
    """
    found: dict[tuple[LayerShape, int], set[tuple[Processor, OutputPart]]] = {}
    for sample in samples.parts:
        key = sample.layer, sample.threads
        found.setdefault(key, set()).add((sample.processor, sample.part))
    known = set()
    for (layer, threads), parts in found.items():
        wanted = {
            (side, part)
            for cpu, gpu in part_pairs(layer, plan)
            for side, part in ((Processor.CPU, cpu), (Processor.GPU, gpu))
            if part is not None
        }
        if wanted <= parts:
            known.add((layer, threads))
    return known


def part_pairs(
    layer: LayerShape, plan: CollectionPlan
) -> list[tuple[OutputPart | None, OutputPart | None]]:
    """What the CPU and the GPU compute of a layer in each measurement.

    Args:
        layer: A sampled layer.
        plan: Who is measured, and how often.

    Returns:
        (CPU's part, GPU's part): first each processor alone with the whole layer, then both with a
        cut layer at the same time, or one with its part, if only one is measured.
    """
    pairs: list[tuple[OutputPart | None, OutputPart | None]] = []
    has_cpu, has_gpu = (side in plan.processors for side in (Processor.CPU, Processor.GPU))
    if has_cpu:
        pairs.append((layer.whole, None))
    if has_gpu:
        pairs.append((None, layer.whole))
    for gpu in sample_cuts(layer, plan.cuts, plan.seed):
        cpu = _rest(layer, gpu)
        pairs.append((cpu if has_cpu else None, gpu if has_gpu else None))
    return pairs


def _rest(layer: LayerShape, gpu: OutputPart) -> OutputPart:
    """The CPU's part: high rows, or high channels."""
    if gpu.row_end < layer.out_h:
        return OutputPart(gpu.row_end, layer.out_h, 0, layer.out_c)
    return OutputPart(0, layer.out_h, gpu.channel_end, layer.out_c)
