"""What ``phonebit_bench --collect`` wrote on a device: answers to orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phonebit.errors import DeviceError, InputError
from phonebit.planner.json_records import from_record, read_lines
from phonebit.planner.measure.engines import device_facts, with_tuning
from phonebit.planner.measure.measuring import LayerTimes
from phonebit.planner.measure.orders import Measurement, Order
from phonebit.planner.measure.sync_layers import WAYS, Way
from phonebit.planner.predict.kernels import GpuFacts
from phonebit.planner.predict.samples import DeviceFacts


@dataclass(frozen=True)
class RecordedResults:
    """Answers of a device, by order.

    Args:
        device: What was measured.
        way: How its processors shared.
        answers: What was found; a text where the device failed. Of orders that were measured
            again, the last one.
    """

    device: DeviceFacts
    way: Way
    answers: Mapping[Order, Measurement | str]

    def measure(self, order: Order) -> Measurement | None:
        """The answer; None: there is none yet."""
        answer = self.answers.get(order)
        if isinstance(answer, str):
            raise DeviceError(answer)
        if answer is not None and answer.way != self.way:
            raise InputError(
                f"order '{order.text}' was measured in another way",
                expected=self.way,
                got=answer.way,
            )
        return answer


def read_results(path: Path, identity: str, orders: Sequence[Order]) -> RecordedResults:
    """Reads the results of a device."""
    head: list[tuple[DeviceFacts, Way]] = []
    answers: dict[Order, Measurement | str] = {}

    def read(record: dict[str, Any]) -> None:
        if not head:
            head.append(_head(record, identity))
            return
        number, failure = record["order"], record.get("failed")
        if not isinstance(number, int) or not 0 <= number < len(orders):
            raise ValueError(f"order {number} of {len(orders)}")
        order = orders[number]
        answers[order] = str(failure) if failure else _measurement(record, order)

    read_lines(path, "a file of results of these orders", read, "measure the orders again")
    if not head:
        hint = "`phonebit_bench --collect FOLDER` makes some on the device"
        raise InputError("no results", where=str(path), hint=hint)
    return RecordedResults(*head[0], answers)


def _head(record: dict[str, Any], identity: str) -> tuple[DeviceFacts, Way]:
    if record["orders"] != identity:
        raise ValueError(f"orders '{record['orders']}', where '{identity}' was expected")
    gpu, cpu = with_tuning(from_record(GpuFacts, record["gpu"], "gpu"), tuning=""), record["cpu"]
    keys = {int(threads): str(key) for threads, key in record["keys"].items()}
    kernel = str(cpu["probe_kernel"])
    device = device_facts(gpu, str(cpu["isa"]), int(cpu["cores"]), kernel, keys)
    ways = tuple(_way(names) for names in record["ways"])
    if not ways:
        raise ValueError("no way of sharing")
    return device, ways[0]


def _measurement(record: dict[str, Any], order: Order) -> Measurement:
    times, launches = record["times_us"], record["launches"]
    if not len(times) == len(launches) == len(order.pairs):
        raise ValueError(f"{len(times)} measurements of {len(order.pairs)}")
    probe = LayerTimes(0.0, *_times(record["canary_us"], 2))
    if not (probe.cpu_us > 0 and probe.gpu_us > 0):
        raise ValueError(f"a probe that takes {probe.cpu_us:g} and {probe.gpu_us:g} us")
    return Measurement(
        _way(record["way"]),
        tuple(LayerTimes(*_times(numbers, 3)) for numbers in times),
        tuple(str(of_pair[-1]["choice"]) if of_pair else "none" for of_pair in launches),
        probe,
    )


def _times(numbers: Any, count: int) -> list[float]:
    found = [float(number) for number in numbers]
    if len(found) != count or not all(math.isfinite(us) and us >= 0 for us in found):
        raise ValueError(f"{numbers} where {count} times were expected")
    return found


def _way(names: Any) -> Way:
    way = Way(*names)
    if way not in WAYS:
        raise ValueError(f"unknown way of sharing {names}")
    return way
