"""What ``phonebit_bench --collect`` wrote on a device, as a `Measurer` that knows the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phonebit.errors import DeviceError, InputError
from phonebit.planner.measure.device_facts import device_facts, with_tuning
from phonebit.planner.measure.measurer import Measurement
from phonebit.planner.measure.measuring import LayerTimes, launch_record
from phonebit.planner.measure.noise_probe import Times
from phonebit.planner.measure.orders import Order
from phonebit.planner.measure.sync_layers import WAYS, Way
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.kernels import GpuFacts
from phonebit.planner.predict.samples import DeviceFacts, whole_lines
from phonebit.text_files import DAMAGED, MOST_RECORD_BYTES, parse_json, read_text


@dataclass(frozen=True)
class RecordedResults:
    """Answers of a device, by order.

    Args:
        device: What was measured.
        shared: How its processors shared.
        answers: What was found; a text where the device failed.
    """

    device: DeviceFacts
    shared: Way
    answers: Mapping[Order, Measurement | str]

    def way(self) -> Way:
        """See `Measurer`."""
        return self.shared

    def measure(self, order: Order, way: Way) -> Measurement | None:
        """See `Measurer`."""
        answer = self.answers.get(order)
        if isinstance(answer, str):
            raise DeviceError(answer)
        if answer is not None and answer.way != way:
            raise InputError(
                f"order '{order.text}' was measured in another way", expected=way, got=answer.way
            )
        return answer


def read_results(path: Path, identity: str, orders: Sequence[Order]) -> RecordedResults:
    """Reads the results of a device.

    Args:
        path: The file; its last line may be cut off.
        identity: Of the work order.
        orders: Its orders.

    Returns:
        The answers; of orders that were measured again, the last one.

    Raises:
        InputError: It is no such file, of other orders, or a line of it is damaged.
        OSError: It cannot be read.
    """
    lines = whole_lines(read_text(path, "a file of results", MOST_RECORD_BYTES))
    if not lines:
        hint = "`phonebit_bench --collect FOLDER` makes some on the device"
        raise InputError("no results", where=str(path), hint=hint)
    answers: dict[Order, Measurement | str] = {}
    head: tuple[DeviceFacts, Way] | None = None
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line, "a line")
            if head is None:
                head = _head(record, identity)
            else:
                order = orders[_index(record["order"], len(orders))]
                failure = record.get("failed")
                answers[order] = str(failure) if failure else _measurement(record, order)
        except (InputError, *DAMAGED) as error:
            hint = "measure the orders again"
            where = f"{path}:{number}"
            raise InputError(
                "not a result of these orders", where=where, got=str(error), hint=hint
            ) from None
    assert head is not None
    return RecordedResults(*head, answers)


def _head(record: Any, identity: str) -> tuple[DeviceFacts, Way]:
    if record["orders"] != identity:
        raise ValueError(f"orders '{record['orders']}', where '{identity}' was expected")
    gpu, cpu = with_tuning(GpuFacts.from_dict(record["gpu"]), tuning=""), record["cpu"]
    keys = {int(threads): str(key) for threads, key in record["keys"].items()}
    kernel = str(cpu["probe_kernel"])
    device = device_facts(gpu, str(cpu["isa"]), int(cpu["cores"]), kernel, keys)
    ways = tuple(_way(names) for names in record["ways"])
    if not ways:
        raise ValueError("no way of sharing")
    return device, ways[0]


def _measurement(record: Any, order: Order) -> Measurement:
    times, launches = record["times_us"], record["launches"]
    if not len(times) == len(launches) == len(order.pairs):
        raise ValueError(f"{len(times)} measurements of {len(order.pairs)}")
    return Measurement(
        _way(record["way"]),
        tuple(LayerTimes(*_times(numbers, 3)) for numbers in times),
        tuple(tuple(launch_record(launch) for launch in part) for part in launches),
        _probe(*_times(record["canary_us"], 2)),
    )


def _times(numbers: Any, count: int) -> list[float]:
    found = [float(number) for number in numbers]
    if len(found) != count or not all(math.isfinite(us) and us >= 0 for us in found):
        raise ValueError(f"{numbers} where {count} times were expected")
    return found


def _probe(cpu_us: float, gpu_us: float) -> Times:
    if not (cpu_us > 0 and gpu_us > 0):
        raise ValueError(f"a probe that takes {cpu_us:g} and {gpu_us:g} us")
    return {Processor.CPU: cpu_us, Processor.GPU: gpu_us}


def _way(names: Any) -> Way:
    way = Way(*names)
    if way not in WAYS:
        raise ValueError(f"unknown way of sharing {names}")
    return way


def _index(number: Any, count: int) -> int:
    if not isinstance(number, int) or not 0 <= number < count:
        raise ValueError(f"order {number} of {count}")
    return number
