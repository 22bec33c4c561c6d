"""Measurements of a device, one a line of JSON: what predictors are trained from.

The first line says whose they are; every other line is a measured part of a layer, or a measured
handover. Lines are only appended, so an interrupted collection loses at most its last line.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from phonebit.errors import InputError
from phonebit.output_files import FileKind, check_output, write_output
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.kernels import CpuFacts, GpuFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.text_files import DAMAGED, MOST_RECORD_BYTES, parse_json, read_text

_FIRST: Final = b'{"device":'
SAMPLES_FILE: Final = FileKind(
    "a file of samples",
    lambda head: head.startswith(_FIRST) or _FIRST.startswith(head),
    is_added_to=True,
)
"""An interruption may have cut off its first line."""
AGAIN: Final = "collect the samples again"
LEAST_US: Final = 0.01
"""Stands for a time that clocks do not resolve, as that of a reshape without a copy."""


USUAL: Final = 0.25
"""The share of measurements that find the probe at most so slow: the least of thousands is an
accident."""


def usual_us(canary_us: Sequence[float]) -> float:
    """What the probe usually takes, of many times of it."""
    return float(np.quantile(canary_us, USUAL))


@dataclass(frozen=True)
class DeviceFacts:
    """Both processors of a device.

    Args:
        keys: What plans for the device are kept under, by number of CPU threads.
        gpu: The GPU.
        cpu: The CPU.
    """

    keys: dict[int, str]
    gpu: GpuFacts
    cpu: CpuFacts

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        keys = {str(threads): key for threads, key in sorted(self.keys.items())}
        return {"keys": keys, "gpu": self.gpu.to_dict(), "cpu": self.cpu.to_dict()}

    @classmethod
    def from_dict(cls, record: Any) -> DeviceFacts:
        """The inverse.

        Raises:
            InputError: It is something else.
        """
        try:
            keys = {int(threads): str(key) for threads, key in record["keys"].items()}
            return cls(keys, GpuFacts.from_dict(record["gpu"]), CpuFacts.from_dict(record["cpu"]))
        except DAMAGED as error:
            raise InputError(
                "facts about a device", expected="keys, gpu and cpu", got=str(error)
            ) from None


PartKey = tuple[LayerShape, Processor, int, OutputPart, bool]
"""Layer, processor, CPU threads, part, and whether the other processor worked meanwhile."""


@dataclass(frozen=True)
class PartSample:
    """One measured part.

    Args:
        layer: Of which layer.
        processor: Who computed it.
        threads: CPU threads.
        part: What of the output.
        variant: The kernel: a choice with its parameters on the GPU, a kernel's name on the CPU.
        dispatch: Launches on the GPU: ``kernel``, ``global``, ``local``.
        us: Microseconds, the least of some runs.
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
    dispatch: tuple[dict[str, Any], ...] = ()
    rounds: int = 1

    @property
    def computed(self) -> OutputPart:
        """What is computed for the part."""
        is_cpu = self.processor == Processor.CPU
        return self.part.from_whole_word() if is_cpu else self.part

    @property
    def key(self) -> PartKey:
        """What was measured, whenever it was."""
        return self.layer, self.processor, self.threads, self.part, self.is_shared

    @property
    def is_resolved(self) -> bool:
        """Whether the time is one, so that an error may be a share of it."""
        return self.us > LEAST_US

    def beside(self, canary_us: float) -> PartSample:
        """The sample of a clock with which the probe takes so long."""
        if not self.is_resolved:
            return replace(self, canary_us=canary_us)
        return replace(self, us=self.us * canary_us / self.canary_us, canary_us=canary_us)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; the geometry says nothing that "op" says."""
        part = self.part
        geometry = self.layer.to_dict()
        return {
            "op": geometry.pop("op"),
            "variant": self.variant,
            "processor": self.processor.name.lower(),
            "threads": self.threads,
            "geometry": geometry,
            "part": [part.row_begin, part.row_end, part.channel_begin, part.channel_end],
            "dispatch": list(self.dispatch),
            "shared": self.is_shared,
            "us": round(self.us, 4),
            "canary_us": round(self.canary_us, 4),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PartSample:
        """The inverse.

        Raises:
            InputError: A field is missing or of another kind, or the part is none of the layer's.
        """
        try:
            layer = LayerShape.from_dict({"op": record["op"], **record["geometry"]})
            part = OutputPart(*(int(side) for side in record["part"]))
            sample = cls(
                layer,
                Processor[record["processor"].upper()],
                int(record["threads"]),
                part,
                str(record["variant"]),
                float(record["us"]),
                float(record["canary_us"]),
                bool(record["shared"]),
                tuple(record["dispatch"]),
            )
        except DAMAGED as error:
            raise InputError("not a measured part", got=str(error)) from None
        rows = 0 <= part.row_begin < part.row_end <= layer.out_h
        channels = 0 <= part.channel_begin < part.channel_end <= layer.out_c
        times = sample.us, sample.canary_us
        if not (rows and channels and all(math.isfinite(us) and us > 0 for us in times)):
            raise InputError(
                "not a measured part",
                expected="a part of the layer, us and canary_us > 0",
                got=f"{part}, {times[0]:g}, {times[1]:g}",
            )
        return sample


@dataclass(frozen=True)
class SyncSample:
    """What a meeting of both processors took, beyond the slower one's work.

    Args:
        threads: CPU threads.
        sharing: "svm", "map" or "copy".
        synchronization: "polling", "events" or "user_events".
        bytes_to_cpu: That the GPU wrote and the CPU got.
        bytes_to_gpu: The other way.
        us: Microseconds, 0 or more.
    """

    threads: int
    sharing: str
    synchronization: str
    bytes_to_cpu: int
    bytes_to_gpu: int
    us: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "handover": [self.bytes_to_cpu, self.bytes_to_gpu],
            "sharing": self.sharing,
            "synchronization": self.synchronization,
            "threads": self.threads,
            "us": round(self.us, 4),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> SyncSample:
        """The inverse.

        Raises:
            InputError: A field is missing or of another kind.
        """
        try:
            to_cpu, to_gpu = (int(count) for count in record["handover"])
            modes = str(record["sharing"]), str(record["synchronization"])
            sample = cls(int(record["threads"]), *modes, to_cpu, to_gpu, float(record["us"]))
        except DAMAGED as error:
            raise InputError("not a measured handover", got=str(error)) from None
        if not (math.isfinite(sample.us) and sample.us >= 0):
            raise InputError("not a measured handover", expected="us >= 0", got=sample.us)
        return sample


@dataclass
class Samples:
    """What a file of samples holds.

    Args:
        device: Whose they are.
        parts: In the order in which they were measured, as if the clock had always been the usual
            one; a part that was measured in several rounds is there once.
        handovers: In that order, those of every round.
    """

    device: DeviceFacts
    parts: list[PartSample] = field(default_factory=list)
    handovers: list[SyncSample] = field(default_factory=list)


def read_samples(path: Path) -> Samples:
    """Reads a file of samples.

    Args:
        path: Its last line may be cut off, as an interruption leaves it.

    Raises:
        InputError: It is no such file, or a line of it is damaged.
        OSError: It cannot be read.
    """
    lines = whole_lines(read_text(path, "a file of samples", MOST_RECORD_BYTES))
    if not lines:
        raise InputError("no samples", where=str(path), hint="make some with `phonebit collect`")
    samples: Samples | None = None
    for number, line in enumerate(lines, 1):
        try:
            record = _record(line)
            if samples is None:
                samples = Samples(DeviceFacts.from_dict(record.get("device")))
            elif "handover" in record:
                samples.handovers.append(SyncSample.from_dict(record))
            else:
                samples.parts.append(PartSample.from_dict(record))
        except InputError as error:
            raise InputError(str(error), where=f"{path}:{number}", hint=AGAIN) from None
    assert samples is not None
    samples.parts = least_of_rounds(at_usual_speed(samples.parts))
    return samples


def at_usual_speed(parts: Sequence[PartSample]) -> list[PartSample]:
    """The samples as if their processors had always been as fast as they usually are.

    Clocks rise and fall by some per cent, for seconds and minutes, and so does what the probe
    takes. A later collection finds other usual times: `PartSample.beside` compares with it.
    """
    known: dict[tuple[Processor, int], list[float]] = {}
    for part in parts:
        known.setdefault((part.processor, part.threads), []).append(part.canary_us)
    usual = {side: usual_us(times) for side, times in known.items()}
    return [part.beside(usual[part.processor, part.threads]) for part in parts]


def least_of_rounds(parts: Iterable[PartSample]) -> list[PartSample]:
    """Each part once, with the least of its times.

    Whatever else a device does makes it slower, often for longer than a measurement takes: the
    least of several rounds is nearer to itself when measured again than a median is.
    """
    least: dict[PartKey, PartSample] = {}
    for part in parts:
        known = least.get(part.key)
        if known is None:
            least[part.key] = part
        else:
            us, rounds = min(known.us, part.us), known.rounds + part.rounds
            least[part.key] = replace(known, us=us, rounds=rounds)
    return list(least.values())


def whole_lines(text: str) -> list[str]:
    """The lines that were written to their end; empty ones do not count."""
    whole, _, _cut_off = text.rpartition("\n")
    return [line for line in whole.split("\n") if line.strip()]


def append_samples(path: Path, samples: Iterable[PartSample | SyncSample]) -> None:
    """Adds lines to a file of samples, all of them in one write.

    Raises:
        OSError: It cannot be written.
    """
    _append(path, [sample.to_dict() for sample in samples])


def begin_samples(path: Path, device: DeviceFacts) -> Samples:
    """Opens a file of samples for more of them, or begins one.

    A last line that was cut off is taken away.

    Args:
        path: The file.
        device: Whose samples will be added.

    Returns:
        What is in it already.

    Raises:
        InputError: It is of another device, damaged, or no file of samples.
        OSError: It cannot be read or written.
    """
    check_output(path, SAMPLES_FILE)
    text = read_text(path, "a file of samples", MOST_RECORD_BYTES) if path.exists() else ""
    if not whole_lines(text):
        write_output(path, _line({"device": device.to_dict()}).encode(), SAMPLES_FILE)
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
    if not text.endswith("\n"):
        os.truncate(path, len(text[: text.rindex("\n") + 1].encode()))
    return samples


def _record(line: str) -> dict[str, Any]:
    record = parse_json(line, "a line")
    if not isinstance(record, dict):
        raise InputError("not a sample", expected="a JSON object", got=line[:40])
    return record


def _append(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(map(_line, records)))
        file.flush()


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
