"""A device profile: what was learnt from a device's samples, in one JSON file.

Planning with a profile needs neither the device nor what it was trained with.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from phonebit.devices.tuning_store import cache_folder
from phonebit.errors import InputError
from phonebit.output_files import FileKind, write_output
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.codl import Blocks, CodlPredictor, UnitTime
from phonebit.planner.predict.features import GEOMETRY
from phonebit.planner.predict.finegrained import (
    CorrectedTrend,
    Featurizer,
    FineGrainedPredictor,
)
from phonebit.planner.predict.kernels import GpuDispatch
from phonebit.planner.predict.latency_predictor import LatencyPredictor
from phonebit.planner.predict.model_table import ALL, ModelTable
from phonebit.planner.predict.samples import DeviceFacts
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.trend import FEATURES
from phonebit.planner.predict.ulayer import LogLine, UlayerPredictor
from phonebit.text_files import DAMAGED, parse_json, read_text

VERSION: Final = 4
PROFILE_FILE: Final = FileKind("a device profile", lambda head: b'"phonebit_profile":' in head)
METHODS: Final = ("ulayer", "codl", "finegrained")
LEAST_MARGIN: Final = 0.02
MOST_MARGIN: Final = 0.5
"""Of a predictor that is hardly one."""
TRAIN_AGAIN: Final = "train it again with `phonebit train-predictor`"


@dataclass(frozen=True)
class SharingMode:
    """What meetings of both processors cost in one way of sharing and waiting.

    Args:
        sharing: "svm", "map" or "copy".
        synchronization: "polling", "events" or "user_events".
        threads: CPU threads.
        cost: As measured.
        sync_bound_us: The longest meeting that was measured; CoDL reckons with that.
    """

    sharing: str
    synchronization: str
    threads: int
    cost: SharingCost
    sync_bound_us: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**vars(self), "cost": vars(self.cost)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> SharingMode:
        """The inverse; TypeError or KeyError where it is something else."""
        return cls(**{**record, "cost": SharingCost(**record["cost"])})


@dataclass(frozen=True)
class ProcessorModels:
    """What was learnt of one processor.

    Args:
        ulayer: µLayer's regressions, by family of layers.
        codl: CoDL's, by kernel.
        finegrained: Boosted trees, by kernel.
        rates: Operations a microsecond, the most that were measured, by kernel.
    """

    ulayer: ModelTable[LogLine]
    codl: ModelTable[UnitTime]
    finegrained: ModelTable[CorrectedTrend]
    rates: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "ulayer": self.ulayer.to_dict(LogLine.to_list),
            "codl": self.codl.to_dict(UnitTime.to_list),
            "finegrained": self.finegrained.to_dict(CorrectedTrend.to_dict),
            "rates": dict(self.rates),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any], processor: Processor) -> ProcessorModels:
        """The inverse; KeyError where something is missing.

        Raises:
            InputError: A model is damaged, or of another version's features.
        """
        models = cls(
            ModelTable.from_dict(record["ulayer"], LogLine.from_list),
            ModelTable.from_dict(record["codl"], UnitTime.from_list),
            ModelTable.from_dict(record["finegrained"], CorrectedTrend.from_dict),
            {str(kernel): float(rate) for kernel, rate in record["rates"].items()},
        )
        for kernel, rate in models.rates.items():
            if not (math.isfinite(rate) and rate > 0):
                where = f"profile: rate of {kernel}"
                raise InputError("damaged model", where=where, expected="above 0", got=rate)
        for name, model in models.finegrained.models.items():
            expected = len(GEOMETRY if name == ALL else FEATURES[processor])
            if model.trees.features != expected:
                raise InputError(
                    f"trees of {name} look at other features than this version computes",
                    where="profile",
                    expected=expected,
                    got=model.trees.features,
                    hint=TRAIN_AGAIN,
                )
        return models


@dataclass(frozen=True)
class DeviceProfile:
    """What a planner knows of a device.

    Args:
        device: Its processors.
        sharing: Costs of synchronizations, one entry for each way that was measured; those of the
            first one count.
        gpu: The GPU's models; None where it was not measured.
        cpu: The CPU's, by number of threads.
        errors: By method, the typical error, |predicted - measured| / measured, of its predictor
            over layers that it had not seen; of methods that are absent it is not known.
    """

    device: DeviceFacts
    sharing: tuple[SharingMode, ...]
    gpu: ProcessorModels | None
    cpu: Mapping[int, ProcessorModels]
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def threads(self) -> tuple[int, ...]:
        """Numbers of CPU threads that it was collected for."""
        return tuple(sorted(self.device.keys))

    def key(self, threads: int) -> str:
        """What plans for so many threads are kept under.

        Raises:
            InputError: So many threads were not measured.
        """
        if threads not in self.device.keys:
            raise InputError(
                "the profile does not know so many CPU threads",
                where=f"threads {threads}",
                expected=", ".join(map(str, self.threads)),
                hint="collect samples with --threads",
            )
        return self.device.keys[threads]

    def predictor(self, method: str, threads: int, augmented: bool = True) -> LatencyPredictor:
        """A predictor.

        Args:
            method: "ulayer", "codl" or "finegrained".
            threads: CPU threads of the plan.
            augmented: finegrained: whether it may look at kernels and dispatch.

        Raises:
            InputError: There is no such method, or so many threads were not measured.
        """
        self.key(threads)
        sides = {Processor.GPU: self.gpu, Processor.CPU: self.cpu.get(threads)}
        known = {side: models for side, models in sides.items() if models is not None}
        gpu, cpu = GpuDispatch(self.device.gpu), self.device.cpu
        if method == "ulayer":
            return UlayerPredictor({side: of.ulayer for side, of in known.items()})
        if method == "codl":
            units = {side: of.codl for side, of in known.items()}
            return CodlPredictor(Blocks(gpu, cpu, threads), units)
        if method == "finegrained":
            trees = {side: of.finegrained for side, of in known.items()}
            rates = {side: of.rates for side, of in known.items()}
            return FineGrainedPredictor(Featurizer(gpu, cpu, threads), trees, rates, augmented)
        raise InputError(
            "no such predictor", where="method", expected=", ".join(METHODS), got=method
        )

    def margin(self, method: str) -> float:
        """What a method's plan should gain by its own predictions: more than they are wrong by.

        A search over many cuts finds those that are predicted too fast, so a smaller gain is as
        likely none.
        """
        return min(max(self.errors.get(method, 0.0), LEAST_MARGIN), MOST_MARGIN)

    def sharing_cost(self, method: str, threads: int) -> SharingCost:
        """What a synchronization costs, as a method reckons it.

        CoDL takes the measured upper bound, the others the typical value. µLayer itself reckons
        without any; it gets what was measured, so that methods differ only in how they predict and
        cut.

        Args:
            method: As for ``predictor``.
            threads: CPU threads of the plan.

        Raises:
            InputError: This was not measured.
        """
        for mode in self.sharing:
            if mode.threads == threads:
                sync_us = mode.cost.sync_us
                if method == "codl":
                    sync_us = max(mode.sync_bound_us, sync_us)
                return replace(mode.cost, sync_us=sync_us)
        raise InputError(
            "costs of sharing were not measured",
            where=f"profile, {threads} threads",
            hint="collect with --device gpu+cpu",
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "phonebit_profile": VERSION,
            "device": self.device.to_dict(),
            "sharing": [mode.to_dict() for mode in self.sharing],
            "gpu": None if self.gpu is None else self.gpu.to_dict(),
            "cpu": {str(threads): models.to_dict() for threads, models in self.cpu.items()},
            "errors": dict(self.errors),
        }

    @classmethod
    def from_dict(cls, record: Any) -> DeviceProfile:
        """The inverse.

        Raises:
            InputError: It is something else, of another version, or damaged.
        """
        if not isinstance(record, dict) or "phonebit_profile" not in record:
            raise InputError("not a device profile", hint=TRAIN_AGAIN)
        if record["phonebit_profile"] != VERSION:
            got = record["phonebit_profile"]
            raise InputError("version of the profile", expected=VERSION, got=got, hint=TRAIN_AGAIN)
        try:
            gpu = record["gpu"]
            return cls(
                DeviceFacts.from_dict(record["device"]),
                tuple(SharingMode.from_dict(mode) for mode in record["sharing"]),
                None if gpu is None else ProcessorModels.from_dict(gpu, Processor.GPU),
                {
                    int(threads): ProcessorModels.from_dict(models, Processor.CPU)
                    for threads, models in record["cpu"].items()
                },
                {str(name): float(error) for name, error in record.get("errors", {}).items()},
            )
        except DAMAGED as error:
            raise InputError(
                f"damaged device profile: {error!r}", where="profile", hint=TRAIN_AGAIN
            ) from None


def read_profile(path: Path) -> DeviceProfile:
    """Reads a profile.

    Raises:
        InputError: It is none, or damaged.
        OSError: It cannot be read.
    """
    text = read_text(path, "a device profile")
    try:
        return DeviceProfile.from_dict(parse_json(text, "not a device profile"))
    except InputError as error:
        raise InputError(str(error), where=str(path)) from None


def write_profile(
    path: Path,
    profile: DeviceProfile,
    *,
    inputs: Iterable[Path] = (),
    replace_any: bool = False,
) -> None:
    """Writes a profile: readers see the old one or all of the new one.

    Args:
        path: Where to; missing folders are created.
        profile: What to write.
        inputs: Files that must stay, as that of the samples.
        replace_any: Also replace a file that is no profile.

    Raises:
        InputError: The path is one of the inputs, or a file of another kind.
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(profile.to_dict(), ensure_ascii=False, indent=1) + "\n"
    write_output(path, text.encode(), PROFILE_FILE, inputs, replace_any)


def profile_path(key: str) -> Path | None:
    """Where the profile of a device is kept; None where there is no cache folder.

    Args:
        key: One of ``DeviceFacts.keys``.
    """
    folder = cache_folder()
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return None if folder is None else folder / "profiles" / f"{name}.json"
