"""Collecting samples: orders are carried out one by one, and what they find is kept at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from phonebit.errors import DeviceError
from phonebit.planner.measure.engines import open_layer
from phonebit.planner.measure.measuring import PROBE, NoiseProbe, measure_parts
from phonebit.planner.measure.orders import (
    SYNC_LAYERS,
    WAYS,
    CollectionPlan,
    Measurement,
    Order,
    Way,
    choices_of,
    handover,
    make_orders,
)
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import CpuFacts, DeviceFacts, cpu_kernel
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import (
    MIN_US,
    PartSample,
    Sample,
    append_samples,
    begin_samples,
)

if TYPE_CHECKING:
    from phonebit import _runtime

    OpenEngine = Callable[[Path, int, Way], _runtime.Network]
    """Loads a file on both processors, with so many CPU threads and in this way of sharing; raises
    ``DeviceError`` where the device cannot."""

Progress = Callable[[str], None]


@dataclass
class CollectionReport:
    """What a collection did.

    Args:
        measured: Layers that were measured now, once for each number of threads and each round.
        known: Those that the file had already.
        missing: Those that the measuring device has not come to yet, data transfers among them.
        failed: Layers that the device could not run, with the reason.
    """

    measured: int = 0
    known: int = 0
    missing: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class EngineHere:
    """The engine of this machine, with the cheapest way of sharing that it has."""

    def __init__(self, open_engine: OpenEngine, plan: CollectionPlan) -> None:
        self._open_engine = open_engine
        self._plan = plan
        self.way = self._cheapest_way()
        self._probe = cache(lambda threads: NoiseProbe(*self._load(PROBE, threads, self.way)))

    def measure(self, order: Order) -> Measurement:
        """What the order asks for."""
        engine, index = self._load(order.layer, order.threads, self.way)
        measures = [
            partial(measure_parts, engine, index, cpu, gpu, repeats=1) for cpu, gpu in order.pairs
        ]
        probe = self._probe(order.threads)
        times, probe_times = probe.measure_in_turns(list(Processor), measures, order.turns)
        launches = [engine.dispatch(index, gpu) if gpu else [] for _, gpu in order.pairs]
        return Measurement(tuple(times), choices_of(launches), probe_times)

    def _cheapest_way(self) -> Way:
        refusals = []
        for way in WAYS:
            try:
                self._load(SYNC_LAYERS[0], self._plan.threads[0], way)
                return way
            except DeviceError as error:
                refusals.append(error)
        raise DeviceError(f"the processors cannot work together: {refusals[-1]}")

    def _load(self, layer: LayerShape, threads: int, way: Way) -> tuple[_runtime.Network, int]:
        return open_layer(
            layer, lambda file: self._open_engine(file, threads, way), self._plan.seed
        )


def carry_out(
    path: Path,
    device: DeviceFacts,
    plan: CollectionPlan,
    way: Way,
    measure: Callable[[Order], Measurement | None],
    progress: Progress = lambda _text: None,
) -> CollectionReport:
    """Has orders carried out, and appends what is found to a file, one by one.

    Those of which the file has the samples already are left out, so that an interrupted collection
    goes on where it stopped. Who measures answers None if an order has not been carried out yet.
    """
    before = begin_samples(path, device)
    known: Counter[object] = Counter(sample.key for sample in before.handovers)
    known.update({sample.key: sample.rounds for sample in before.parts})
    report = CollectionReport()
    for order in make_orders(plan):
        progress(order.text)
        # An interruption may have cut off some of an order's lines: all of them are looked for.
        if all(known[key] > order.round for key in _keys(order, way)):
            report.known += not order.is_sync
            continue
        try:
            found = measure(order)
        except DeviceError as error:
            report.failed[order.text if order.is_sync else str(order.layer)] = str(error)
            continue
        if found is None:
            report.missing += 1
            continue
        samples = list(samples_of(order, found, way, device.cpu))
        append_samples(path, samples)
        known.update(sample.key for sample in samples)
        report.measured += not order.is_sync
    if report.failed and not report.measured and not report.known:
        reason = next(iter(report.failed.values()))
        raise DeviceError(f"no layer could be measured: {reason}", where=device.gpu.name)
    return report


def samples_of(order: Order, found: Measurement, way: Way, cpu_facts: CpuFacts) -> Iterator[Sample]:
    """What a measurement tells of the processors."""
    layer, threads = order.layer, order.threads
    for pair, times, choice in zip(order.pairs, found.times, found.choices, strict=True):
        both = None not in pair
        for side, part in zip(Processor, pair, strict=True):
            if part is not None and not order.is_sync:
                on_cpu = side == Processor.CPU
                kernel = cpu_kernel(layer, part, cpu_facts, threads).name if on_cpu else choice
                us = round(max(times.of(side), MIN_US), 4)
                probe_us = round(found.probe.of(side), 4)
                yield PartSample(layer, side, threads, part, kernel, us, probe_us, both)
        if both:
            yield handover(layer, way, threads, pair, times.sharing_us)


def _keys(order: Order, way: Way) -> Iterator[object]:
    """What the samples of an order tell of."""
    for pair in order.pairs:
        if order.is_sync:
            yield handover(order.layer, way, order.threads, pair, 0.0).key
            continue
        for side, part in zip(Processor, pair, strict=True):
            if part is not None:
                yield order.layer, side, order.threads, part, None not in pair
