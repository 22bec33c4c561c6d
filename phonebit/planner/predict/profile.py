"""A device profile: what was learnt from a device's samples, in one JSON file.

Planning with a profile needs neither the device nor what it was trained with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from phonebit.devices.tuning_store import cache_folder
from phonebit.errors import InputError
from phonebit.output_files import FileKind, write_output
from phonebit.planner.json_records import from_record, to_record
from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.codl import steps_of
from phonebit.planner.predict.cost_sum import CostSum
from phonebit.planner.predict.features import features_of
from phonebit.planner.predict.finegrained import CorrectedTrend
from phonebit.planner.predict.kernels import DeviceFacts, NoKernelError
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.ulayer import LogLine, operations_of
from phonebit.text_files import parse_json, read_text

VERSION: Final = 7
PROFILE_FILE: Final = FileKind("a device profile", lambda head: b'"phonebit_profile":' in head)
METHODS: Final = ("ulayer", "codl", "finegrained")
MIN_MARGIN: Final = 0.02
MAX_MARGIN: Final = 0.5
"""Of a predictor that is hardly one."""
ALL: Final = "*"
"""Name of the model of all of a processor's samples: it is for what has too few of its own."""

Describe = Callable[[LayerShape, Processor, OutputPart], tuple[str, Any]]
"""Tells which model knows a part, a kernel's or a family's, and what that model looks at."""


class Model(Protocol):
    """What was learnt of a kernel, or a family of layers."""

    def microseconds(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """Predicted times of parts, each above 0, from what ``Describe`` tells of them."""


@dataclass(frozen=True)
class LatencyPredictor:
    """How long a processor computes parts of layers, data transfer and waiting not included."""

    describe: Describe
    models: Mapping[Processor, Mapping[str, Model]]

    def microseconds_of(
        self, processor: Processor, parts: Sequence[tuple[LayerShape, OutputPart]]
    ) -> NDArray[np.float64]:
        """Predicted times of parts of layers, each of one element at least.

        Infinity where the processor has no kernel for a part.
        """
        models = self.models[processor]
        groups: dict[str, dict[int, Any]] = {}
        for place, (layer, part) in enumerate(parts):
            try:
                name, inputs = self.describe(layer, processor, part)
            except NoKernelError:
                continue
            groups.setdefault(name if name in models else ALL, {})[place] = inputs
        times = np.full(len(parts), np.inf)
        for name, of in groups.items():
            times[list(of)] = models[name].microseconds(list(of.values()))
        return times


@dataclass(frozen=True)
class ProcessorModels:
    """What was learnt of one processor; in each table is one model of all samples."""

    ulayer: Mapping[str, LogLine]
    codl: Mapping[str, CostSum]
    finegrained: Mapping[str, CorrectedTrend]

    def __post_init__(self) -> None:
        for method in METHODS:
            if ALL not in getattr(self, method):
                raise InputError(f"no model '{ALL}' of all samples", where=f"profile: {method}")


@dataclass(frozen=True)
class DeviceProfile:
    """What a planner knows of a device.

    Args:
        device: Its processors.
        sharing: Costs of synchronizations, by number of threads.
        gpu: The GPU's models.
        cpu: The CPU's, by number of threads.
        errors: By method, the typical error, |predicted - measured| / measured, of its predictor
            over layers that it had not seen; of methods that are absent it is not known.

    Raises:
        InputError: There is no number of threads of which all of this is known.
    """

    device: DeviceFacts
    sharing: Mapping[int, SharingCost]
    gpu: ProcessorModels
    cpu: Mapping[int, ProcessorModels]
    errors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.threads:
            hint = "collect more samples with `phonebit collect --resume`"
            raise InputError("costs of sharing were not measured", where="profile", hint=hint)

    @property
    def threads(self) -> tuple[int, ...]:
        """Numbers of CPU threads that it was collected for."""
        return tuple(sorted(self.device.keys.keys() & self.cpu.keys() & self.sharing.keys()))

    def key(self, threads: int) -> str:
        """What plans for so many threads are kept under."""
        if threads not in self.threads:
            raise InputError(
                "the profile does not know so many CPU threads",
                where=f"threads {threads}",
                expected=", ".join(map(str, self.threads)),
                hint="collect samples with --threads",
            )
        return self.device.keys[threads]

    def predictor(self, method: str, threads: int) -> LatencyPredictor:
        """A predictor for so many CPU threads."""
        self.key(threads)
        ways: dict[str, Describe] = {
            "ulayer": operations_of,
            "codl": partial(steps_of, self.device, threads),
            "finegrained": partial(features_of, self.device, threads),
        }
        if method not in ways:
            raise InputError(
                "no such predictor", where="method", expected=", ".join(METHODS), got=method
            )
        sides = {Processor.CPU: self.cpu[threads], Processor.GPU: self.gpu}
        models = {side: getattr(of, method) for side, of in sides.items()}
        return LatencyPredictor(ways[method], models)

    def margin(self, method: str) -> float:
        """What a method's plan should gain by its own predictions: more than they are wrong by.

        A search over many cuts finds those that are predicted too fast, so a smaller gain is as
        likely none.
        """
        return min(max(self.errors.get(method, 0.0), MIN_MARGIN), MAX_MARGIN)

    def sharing_cost(self, method: str, threads: int) -> SharingCost:
        """What a synchronization costs, as a method reckons it.

        CoDL takes the measured upper bound, the others the typical value. µLayer itself reckons
        without any; it gets what was measured, so that methods differ only in how they predict and
        cut.
        """
        cost = self.sharing[threads]
        return replace(cost, sync_us=cost.bound_us) if method == "codl" else cost


def read_profile(path: Path) -> DeviceProfile:
    """Reads a profile; ``InputError``: it is none, of another version, or damaged."""
    where, again = str(path), "train it again with `phonebit train-predictor`"
    record = parse_json(read_text(path, "a device profile"), f"{where}: not a device profile")
    version = record.pop("phonebit_profile", None) if isinstance(record, dict) else None
    if version is None:
        raise InputError("not a device profile", where=where, hint=again)
    if version != VERSION:
        what = "version of the profile"
        raise InputError(what, where=where, expected=VERSION, got=version, hint=again)
    try:
        return cast(DeviceProfile, from_record(DeviceProfile, record, "profile"))
    except InputError as error:
        what = "damaged device profile"
        raise InputError(what, where=where, got=str(error), hint=again) from None


def find_profile(device: str | Path) -> DeviceProfile:
    """A device's profile: a file, or that of a key in the cache folder."""
    path = Path(device)
    path = path if path.is_file() else profile_path(str(device))
    if path.is_file():
        return read_profile(path)
    raise InputError(
        "no such device profile",
        where="--cost-model",
        expected="a file, or the key of a device that was profiled here",
        got=repr(str(device)),
        hint="make one with `phonebit collect` and `phonebit train-predictor`",
    )


def write_profile(
    path: Path,
    profile: DeviceProfile,
    *,
    inputs: Iterable[Path] = (),
    replace_any: bool = False,
) -> None:
    """Writes a profile: readers see the old one or all of the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"phonebit_profile": VERSION, **to_record(profile)}
    text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
    write_output(path, text.encode(), PROFILE_FILE, inputs, replace_any)


def profile_path(key: str) -> Path:
    """Where the profile of a device is kept."""
    folder = cache_folder()
    if folder is None:
        raise InputError("there is no cache folder", where="profile", hint="give a file")
    return folder / "profiles" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
