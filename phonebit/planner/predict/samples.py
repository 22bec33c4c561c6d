"""Measurements of a device, one per line of JSON: what predictors are trained from.

The first line says whose they are; every other line is a measured part of a layer, or a measured
data transfer. Lines are only appended, so an interrupted collection loses at most its last line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from phonebit.errors import InputError
from phonebit.output_files import FileKind, check_output, write_output
from phonebit.planner.json_records import from_record, read_lines, to_record
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.kernels import DeviceFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.text_files import MAX_RECORD_BYTES, read_text

_FIRST: Final = b'{"device":'
SAMPLES_FILE: Final = FileKind(
    "a file of samples",
    lambda head: head.startswith(_FIRST) or _FIRST.startswith(head),
    is_added_to=True,
)
"""An interruption may have cut off its first line."""
MIN_US: Final = 0.01
"""Stands for a time that clocks do not resolve, as that of a reshape without a copy."""
USUAL: Final = 0.25
"""The share of measurements that find the probe at most so slow: the minimum of thousands is an
accident."""


def usual_us(canary_us: Sequence[float]) -> float:
    """What the probe usually takes, of many times of it."""
    return float(np.quantile(canary_us, USUAL))


@dataclass(frozen=True)
class PartSample:
    """One measured part.

    Args:
        variant: The kernel: a choice with its parameters on the GPU, a kernel's name on the CPU.
        us: Microseconds, the minimum of some runs.
        canary_us: Those of the probe around them, on this processor.
        is_shared: Whether the other processor computed the rest meanwhile.
        rounds: How often it was measured.
    """

    layer: LayerShape
    processor: Processor
    threads: int
    part: OutputPart
    variant: str
    us: float
    canary_us: float
    is_shared: bool = False
    rounds: int = 1

    def __post_init__(self) -> None:
        layer, part = self.layer, self.part
        rows = 0 <= part.row_begin < part.row_end <= layer.out_h
        channels = 0 <= part.channel_begin < part.channel_end <= layer.out_c
        if not (rows and channels and self.us > 0 and self.canary_us > 0):
            raise InputError(
                "not a measured part",
                expected="a part of the layer, us and canary_us > 0",
                got=f"{part}, {self.us:g}, {self.canary_us:g}",
            )

    @property
    def computed(self) -> OutputPart:
        """What is computed for the part."""
        is_cpu = self.processor == Processor.CPU
        return self.part.whole_words(self.layer.out_c) if is_cpu else self.part

    @property
    def cpu_threads(self) -> int:
        """Of the CPU; 0 for the GPU, which they do not matter to."""
        return self.threads if self.processor == Processor.CPU else 0

    @property
    def key(self) -> tuple[LayerShape, Processor, int, OutputPart, bool]:
        """What was measured, whenever it was."""
        return self.layer, self.processor, self.threads, self.part, self.is_shared

    @property
    def is_resolved(self) -> bool:
        """Whether the time is one, so that an error may be a share of it."""
        return self.us > MIN_US

    def with_probe(self, canary_us: float) -> PartSample:
        """The sample of a clock with which the probe takes so long."""
        if not self.is_resolved:
            return replace(self, canary_us=canary_us)
        return replace(self, us=self.us * canary_us / self.canary_us, canary_us=canary_us)

    def to_dict(self) -> dict[str, Any]:
        """A line of a file; the geometry says nothing that "op" says."""
        record = to_record(self)
        geometry, _rounds = record.pop("layer"), record.pop("rounds")
        op, shared = geometry.pop("op"), record.pop("is_shared")
        return {"op": op, "geometry": geometry, "shared": shared, **record}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PartSample:
        """The inverse."""
        record.pop("dispatch", None)  # launches, in files of earlier versions
        layer = {"op": record.pop("op", None), **record.pop("geometry", {})}
        record |= {"layer": layer, "is_shared": record.pop("shared", None)}
        return cast(PartSample, from_record(cls, record, "a measured part"))


@dataclass(frozen=True)
class SyncSample:
    """What a synchronization of both processors took, beyond the slower one's work.

    Transferred are bytes that the GPU wrote and the CPU got, and the other way.
    """

    threads: int
    sharing: str
    synchronization: str
    handover: tuple[int, int]
    us: float

    def __post_init__(self) -> None:
        if self.us < 0:
            raise InputError("not a measured handover", expected="us >= 0", got=self.us)

    @property
    def key(self) -> tuple[int, str, str, tuple[int, int]]:
        """Likewise."""
        return self.threads, self.sharing, self.synchronization, self.handover


Sample = PartSample | SyncSample


@dataclass
class Samples:
    """What a file of samples holds.

    Args:
        parts: In the order in which they were measured, as if the clock had always been the usual
            one; a part that was measured in several rounds is there once.
        handovers: In that order, those of every round.
    """

    device: DeviceFacts
    parts: list[PartSample] = field(default_factory=list)
    handovers: list[SyncSample] = field(default_factory=list)


def read_samples(path: Path) -> Samples:
    """Reads a file of samples, whose last line may be cut off, as an interruption leaves it."""
    hint = "collect the samples again"
    lines = read_lines(path, "a file of samples", _read_line, hint)
    if not lines:
        raise InputError("no samples", where=str(path), hint="make some with `phonebit collect`")
    device, *samples = lines
    if not isinstance(device, DeviceFacts):
        raise InputError("begins without facts about a device", where=f"{path}:1", hint=hint)
    parts = [sample for sample in samples if isinstance(sample, PartSample)]
    handovers = [sample for sample in samples if isinstance(sample, SyncSample)]
    return Samples(device, min_of_rounds(at_usual_speed(parts)), handovers)


def _read_line(record: dict[str, Any]) -> DeviceFacts | Sample:
    if "device" in record:
        device = record["device"]
        if isinstance(device, dict) and isinstance(device.get("cpu"), dict):
            device["cpu"].pop("has_tiles", None)  # AMX, in files of earlier versions
        return cast(DeviceFacts, from_record(DeviceFacts, device, "device"))
    if "handover" in record:
        return cast(SyncSample, from_record(SyncSample, record, "handover"))
    return PartSample.from_dict(record)


def at_usual_speed(parts: Sequence[PartSample]) -> list[PartSample]:
    """The samples as if their processors had always been as fast as they usually are.

    Clocks rise and fall by some per cent, for seconds and minutes, and so does what the probe
    takes. A later collection finds other usual times: `PartSample.with_probe` compares with it.
    """
    known: dict[tuple[Processor, int], list[float]] = {}
    for part in parts:
        known.setdefault((part.processor, part.threads), []).append(part.canary_us)
    usual = {side: usual_us(times) for side, times in known.items()}
    return [part.with_probe(usual[part.processor, part.threads]) for part in parts]


def min_of_rounds(parts: Iterable[PartSample]) -> list[PartSample]:
    """Each part once, with the minimum of its times.

    Whatever else a device does makes it slower, often for longer than a measurement takes: the
    minimum of several rounds is nearer to itself when measured again than a median is.
    """
    minimum: dict[object, PartSample] = {}
    for part in parts:
        known = minimum.setdefault(part.key, part)
        if known is not part:
            us, rounds = min(known.us, part.us), known.rounds + part.rounds
            minimum[part.key] = replace(known, us=us, rounds=rounds)
    return list(minimum.values())


def append_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Adds lines to a file of samples, all of them in one write."""
    records = (of.to_dict() if isinstance(of, PartSample) else to_record(of) for of in samples)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(map(_line, records)))


def begin_samples(path: Path, device: DeviceFacts) -> Samples:
    """What is in a file that more samples are added to; it is begun if there is none.

    A last line that was cut off is taken away.
    """
    check_output(path, SAMPLES_FILE)
    text = read_text(path, "a file of samples", MAX_RECORD_BYTES) if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if not whole.strip():
        write_output(path, _line({"device": to_record(device)}).encode(), SAMPLES_FILE)
        return Samples(device)
    samples = read_samples(path)
    if samples.device != device:
        raise InputError(
            "samples of another device, other threads or another tuning",
            where=str(path),
            expected=", ".join(device.keys.values()),
            got=", ".join(samples.device.keys.values()),
            hint="give another file to -o",
        )
    if whole != text:
        os.truncate(path, len(whole.encode()))
    return samples


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
