"""Collecting samples: orders are carried out one by one, and what they find is kept at once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from phonebit.errors import DeviceError
from phonebit.planner.measure.measurer import EngineHere
from phonebit.planner.measure.orders import CollectionPlan, Measurement, Order, make_orders
from phonebit.planner.measure.sync_layers import Way, handover
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import CpuFacts, cpu_kernel
from phonebit.planner.predict.samples import (
    LEAST_US,
    DeviceFacts,
    PartSample,
    Sample,
    append_samples,
    begin_samples,
)

if TYPE_CHECKING:
    from phonebit.planner.measure.measurer import OpenEngine

Progress = Callable[[str], None]


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
    progress: Progress = lambda _text: None,
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
        return carry_out(path, device, plan, here.way, here.measure, progress)


def carry_out(
    path: Path,
    device: DeviceFacts,
    plan: CollectionPlan,
    way: Way,
    measure: Callable[[Order], Measurement | None],
    progress: Progress = lambda _text: None,
) -> CollectionReport:
    """The same with anyone who measures.

    Args:
        path: The file of samples.
        device: What is measured.
        plan: What of it.
        way: How the processors share.
        measure: Carries out an order; None: it has not been carried out yet.
        progress: Called with a text before each order.

    Raises:
        As ``collect_here``.
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
        samples = list(samples_of(order, found, device.cpu))
        append_samples(path, samples)
        known.update(sample.key for sample in samples)
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
    for pair, times, choice in zip(order.pairs, found.times, found.choices, strict=True):
        both = None not in pair
        for side, part in zip(Processor, pair, strict=True):
            if part is not None and not order.is_sync:
                on_cpu = side == Processor.CPU
                kernel = cpu_kernel(layer, part, cpu_facts).name if on_cpu else choice
                us = max(times.cpu_us if on_cpu else times.gpu_us, LEAST_US)
                yield PartSample(layer, side, threads, part, kernel, us, found.probe[side], both)
        if both:
            yield handover(layer, found.way, threads, pair, times.sharing_us)


def _keys(order: Order, way: Way) -> Iterator[object]:
    """What the samples of an order tell of."""
    for pair in order.pairs:
        if order.is_sync:
            yield handover(order.layer, way, order.threads, pair, 0.0).key
            continue
        for side, part in zip(Processor, pair, strict=True):
            if part is not None:
                yield order.layer, side, order.threads, part, None not in pair
