"""Collections that a device without Python measures: a folder goes there, results come back.

`write_measurement_job` writes the folder, ``phonebit_bench --collect FOLDER`` measures it on the
device and writes ``FOLDER/results.jsonl``, and `collect_results` makes of that what
``phonebit collect`` would have written there. docs/coexecution.md has the form of both files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from phonebit.errors import DeviceError, InputError
from phonebit.format.writer import PBIT_FILE, file_bytes
from phonebit.output_files import FileKind, check_output, write_output
from phonebit.planner.json_records import from_record, read_lines, to_record
from phonebit.planner.measure import measuring
from phonebit.planner.measure.collect import CollectionReport, Progress, carry_out
from phonebit.planner.measure.engines import cpu_facts
from phonebit.planner.measure.measuring import PROBE, LayerTimes
from phonebit.planner.measure.orders import (
    SYNC_LAYERS,
    WAYS,
    CollectionPlan,
    Measurement,
    Order,
    Way,
    choices_of,
    make_orders,
)
from phonebit.planner.measure.sampled_files import layer_file, layer_index
from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.kernels import DeviceFacts, GpuFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import SAMPLES_FILE, USUAL
from phonebit.text_files import MAX_RECORD_BYTES, parse_json, read_text

ORDERS_FILE: Final = "orders.txt"
PLAN_FILE: Final = "plan.json"
RESULTS_FILE: Final = "results.jsonl"
PROBE_FILE: Final = "probe.pbit"
_PLAN: Final = FileKind("a plan of a collection", lambda head: head.startswith(b'{"layers":'))
_ORDERS: Final = FileKind("a list of orders", lambda head: head.startswith(b"phonebit-orders "))


def write_measurement_job(
    folder: Path, plan: CollectionPlan, progress: Progress = lambda _text: None
) -> list[Path]:
    """Writes what a device needs to measure a collection; the same, if it is there, stays as it is.

    Returns:
        The files in the folder that the device needs, the list of orders first.
    """
    listed = _MeasurementJob(plan)
    orders = folder / ORDERS_FILE
    files = {folder / name: layer for name, layer in listed.layers.items()}
    if not orders.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file, layer in files.items():
            progress(file.name)
            write_output(file, file_bytes(layer_file(layer, plan.seed)[0]), PBIT_FILE)
        write_output(folder / PLAN_FILE, (json.dumps(to_record(plan)) + "\n").encode(), _PLAN)
        write_output(orders, listed.text.encode(), _ORDERS)
    elif read_text(orders, "a list of orders", MAX_RECORD_BYTES) != listed.text:
        raise InputError(
            "the folder holds another measurement job", where=str(folder), hint="give a new folder"
        )
    return [orders, *files]


def collect_results(
    folder: Path, results: Path, samples: Path, progress: Progress = lambda _text: None
) -> CollectionReport:
    """Turns what a device measured into samples; those that their file has are not added again.

    Orders may be missing, and the last line of the results may be cut off.
    """
    check_output(samples, SAMPLES_FILE, [results, folder / PLAN_FILE, folder / ORDERS_FILE])
    where = f"{folder / PLAN_FILE}: not a measurement job"
    record = parse_json(read_text(folder / PLAN_FILE, "a measurement job"), where)
    plan: CollectionPlan = from_record(CollectionPlan, record, where)
    listed = _MeasurementJob(plan)
    if read_text(folder / ORDERS_FILE, "a list of orders", MAX_RECORD_BYTES) != listed.text:
        raise InputError(
            "the orders are not those of the plan",
            where=str(folder),
            hint="another version of phonebit wrote them: write and measure them again",
        )
    orders = list(make_orders(plan))
    device, way, answers = _read_results(results, listed.identity, orders)

    def measure(order: Order) -> Measurement | None:
        answer = answers.get(order)
        if isinstance(answer, str):
            raise DeviceError(answer)
        return answer

    return carry_out(samples, device, plan, way, measure, progress)


class _MeasurementJob:
    """The list of orders as a text, which `phonebit_bench` reads, and the files that it names.

    Equal plans give equal texts, so that the folder need not tell shapes of layers.
    """

    def __init__(self, plan: CollectionPlan) -> None:
        names: dict[LayerShape, str] = {PROBE: PROBE_FILE}
        for layer in SYNC_LAYERS:
            names[layer] = f"sharing_{len(names)}.pbit"
        shapes = hashlib.sha256()
        lines = []
        for number, order in enumerate(make_orders(plan)):
            name = names.setdefault(order.layer, f"layer_{len(names)}.pbit")
            lines.append(_order_line(number, name, order))
            shapes.update(json.dumps(to_record(order.layer)).encode())
        self.layers = {name: layer for layer, name in names.items()}
        shapes.update("\n".join(lines).encode())
        self.identity = shapes.hexdigest()[:16]
        head = [
            f"phonebit-orders 4 {self.identity}",
            f"probe {PROBE_FILE} {layer_index(PROBE)}",
            _noise_probe_line(),
            f"sharing {names[SYNC_LAYERS[0]]}",
            *(f"way {way.sharing} {way.synchronization}" for way in WAYS),
            f"threads {' '.join(map(str, plan.threads))}",
        ]
        self.text = "\n".join([*head, *lines]) + "\n"


def _noise_probe_line() -> str:
    """``canary probe.pbit 1 7:14:0:64/0:7:0:64 repeats 3 usual 25 most 110 waits 10 2``.

    Two shares in per cent; seconds; how many times as long as measurements take.
    """
    parts = f"{_part_text(measuring.CPU_PART)}/{_part_text(measuring.GPU_PART)}"
    usual, maximum = round(100 * USUAL), round(100 * measuring.TOLERANCE)
    waits = f"waits {measuring.QUIET_LIMIT_S} {measuring.WAITS_PER_MEASUREMENT}"
    limits = f"repeats {measuring.REPEATS} usual {usual} most {maximum} {waits}"
    return f"canary {PROBE_FILE} {layer_index(PROBE)} {parts} {limits}"


def _order_line(number: int, file: str, order: Order) -> str:
    """``order 7 layer_9.pbit 1 threads 2 way any any turns 16 parts 0:14:0:64/- -/0:14:0:64``.

    After the file stands the layer's index in it; parts are the CPU's and the GPU's, each with its
    rows and channels.
    """
    pairs = " ".join(f"{_part_text(cpu)}/{_part_text(gpu)}" for cpu, gpu in order.pairs)
    return (
        f"order {number} {file} {layer_index(order.layer)} threads {order.threads} way any any "
        f"turns {order.turns} parts {pairs}"
    )


def _part_text(part: OutputPart | None) -> str:
    return "-" if part is None else ":".join(map(str, part))


_Answers = dict[Order, Measurement | str]
"""What was found; a text where the device failed. Of orders measured again, the last one."""


def _read_results(
    path: Path, identity: str, orders: Sequence[Order]
) -> tuple[DeviceFacts, Way, _Answers]:
    """What was measured, how its processors shared, and the answers."""
    head: list[tuple[DeviceFacts, Way]] = []
    answers: _Answers = {}

    def read(record: dict[str, Any]) -> None:
        if not head:
            head.append(_head(record, identity))
            return
        number, failure = record["order"], record.get("failed")
        if not isinstance(number, int) or not 0 <= number < len(orders):
            raise ValueError(f"order {number} of {len(orders)}")
        order = orders[number]
        answers[order] = str(failure) if failure else _measurement(record, order, head[0][1])

    read_lines(path, "a file of results of these orders", read, "measure the orders again")
    if not head:
        hint = "`phonebit_bench --collect FOLDER` makes some on the device"
        raise InputError("no results", where=str(path), hint=hint)
    return *head[0], answers


def _head(record: dict[str, Any], identity: str) -> tuple[DeviceFacts, Way]:
    if record["orders"] != identity:
        raise ValueError(f"orders '{record['orders']}', where '{identity}' was expected")
    gpu, cpu = from_record(GpuFacts, record["gpu"], "gpu").with_tuning(""), record["cpu"]
    keys = from_record(Mapping[int, str], record["keys"], "keys")
    facts = cpu_facts(str(cpu["isa"]), int(cpu["cores"]), str(cpu["probe_kernel"]))
    ways = from_record(tuple[Way, ...], record["ways"], "ways")
    if not ways or not set(ways) <= set(WAYS):
        raise ValueError(f"no way of sharing, or unknown ones: {ways}")
    return DeviceFacts(keys, gpu, facts), ways[0]


def _measurement(record: dict[str, Any], order: Order, way: Way) -> Measurement:
    if Way(*record["way"]) != way:
        raise ValueError(f"measured in another way, {record['way']} where {way} was expected")
    times = from_record(tuple[LayerTimes, ...], record["times_us"], "times_us")
    cpu_us, gpu_us = from_record(tuple[float, float], record["canary_us"], "canary_us")
    launches = record["launches"]
    if not len(times) == len(launches) == len(order.pairs):
        raise ValueError(f"{len(times)} measurements of {len(order.pairs)}")
    if min(map(min, times)) < 0 or min(cpu_us, gpu_us) <= 0:
        raise ValueError(f"times {times} and a probe that takes {cpu_us:g} and {gpu_us:g} us")
    return Measurement(times, choices_of(launches), LayerTimes(0.0, cpu_us, gpu_us))
