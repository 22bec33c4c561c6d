"""Collecting samples: orders are carried out one by one, and what they find is kept at once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from phonebit.errors import DeviceError
from phonebit.planner.measure.measurer import EngineHere, Measurement, Measurer, OpenEngine
from phonebit.planner.measure.orders import CollectionPlan, Order, make_orders
from phonebit.planner.measure.sync_layers import Way, handover
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import CpuFacts, cpu_kernel
from phonebit.planner.predict.samples import (
    LEAST_US,
    DeviceFacts,
    PartKey,
    PartSample,
    Samples,
    SyncSample,
    append_samples,
    begin_samples,
)

Sample = PartSample | SyncSample


@dataclass
class CollectionReport:
    """What a collection did.

    Args:
        measured: Layers that were measured now, once for each number of threads and each round.
        known: Those that the file had already.
        missing: Those that whoever measures has not come to yet, handovers among them.
        failed: Layers that the device could not run, with the reason.
    """

    measured: int = 0
    known: int = 0
    missing: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def collect_here(
    path: Path,
    device: DeviceFacts,
    plan: CollectionPlan,
    open_engine: OpenEngine,
    progress: Callable[[str], None] = lambda _text: None,
) -> CollectionReport:
    """Measures layers here and appends what it finds to a file, layer by layer.

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
        here = EngineHere(open_engine, plan, Path(folder) / "layer.pbit")
        return carry_out(path, device, plan, here, progress)


def carry_out(
    path: Path,
    device: DeviceFacts,
    plan: CollectionPlan,
    measurer: Measurer,
    progress: Callable[[str], None] = lambda _text: None,
) -> CollectionReport:
    """The same with anyone who measures.

    Args:
        path: The file of samples.
        device: What is measured.
        plan: What of it.
        measurer: Carries out the orders.
        progress: Called with a text before each order.

    Raises:
        As ``collect_here``.
    """
    known = _Known(begin_samples(path, device))
    way = measurer.way()
    report = CollectionReport()
    for order in make_orders(plan):
        progress(order.text)
        if known.has(order, way):
            report.known += not order.is_sync
            continue
        try:
            found = measurer.measure(order, way)
        except DeviceError as error:
            report.failed[order.text if order.is_sync else str(order.layer)] = str(error)
            continue
        if found is None:
            report.missing += 1
            continue
        samples = list(samples_of(order, found, device.cpu))
        append_samples(path, samples)
        known.add(samples)
        report.measured += not order.is_sync
    if report.failed and not report.measured and not report.known:
        reason = next(iter(report.failed.values()))
        raise DeviceError(f"no layer could be measured: {reason}", where=device.gpu.name)
    return report


def samples_of(order: Order, found: Measurement, cpu_facts: CpuFacts) -> Iterator[Sample]:
    """What a measurement tells of the processors.

    Args:
        order: What was asked for.
        found: The answer.
        cpu_facts: What decides about the CPU's kernels.
    """
    layer, threads = order.layer, order.threads
    for (cpu, gpu), times, launches in zip(order.pairs, found.times, found.launches, strict=True):
        both = cpu is not None and gpu is not None
        if not order.is_sync and cpu is not None:
            kernel = cpu_kernel(layer, cpu, cpu_facts).name
            us = max(times.cpu_us, LEAST_US)
            canary_us = found.probe[Processor.CPU]
            yield PartSample(layer, Processor.CPU, threads, cpu, kernel, us, canary_us, both)
        if not order.is_sync and gpu is not None:
            choice = str(launches[-1]["choice"]) if launches else "none"
            us = max(times.gpu_us, LEAST_US)
            canary_us = found.probe[Processor.GPU]
            yield PartSample(
                layer, Processor.GPU, threads, gpu, choice, us, canary_us, both, launches
            )
        if cpu is not None and gpu is not None:
            yield handover(layer, found.way, threads, cpu, gpu, times.sharing_us)


class _Known:
    """How often a file of samples tells of a part or of a handover.

    A layer's lines are written at once, but an interruption may cut them off; so all of them are
    looked for.
    """

    def __init__(self, samples: Samples) -> None:
        self._rounds: Counter[_Key] = Counter()
        self.add([*samples.parts, *samples.handovers])

    def add(self, samples: list[Sample]) -> None:
        for sample in samples:
            if isinstance(sample, PartSample):
                self._rounds[sample.key] += sample.rounds
            else:
                self._rounds[_handover_key(sample)] += 1

    def has(self, order: Order, way: Way) -> bool:
        return all(self._rounds[key] > order.round for key in _keys(order, way))


_HandoverKey = tuple[str, str, int, int]
_Key = PartKey | _HandoverKey


def _keys(order: Order, way: Way) -> Iterator[_Key]:
    """What the samples of an order tell of."""
    layer, threads = order.layer, order.threads
    for cpu, gpu in order.pairs:
        both = cpu is not None and gpu is not None
        if not order.is_sync:
            for side, part in ((Processor.CPU, cpu), (Processor.GPU, gpu)):
                if part is not None:
                    yield layer, side, threads, part, both
        if order.is_sync and cpu is not None and gpu is not None:
            yield _handover_key(handover(layer, way, threads, cpu, gpu, 0.0))


def _handover_key(sample: SyncSample) -> _HandoverKey:
    return sample.sharing, sample.synchronization, sample.threads, sample.bytes_to_cpu
