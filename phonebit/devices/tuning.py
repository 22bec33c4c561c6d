"""Which kernel, with which parameters, is fastest for each layer: how candidates are searched.

Every measurement comes from the runtime (device events); this file decides what to measure. A
candidate whose results are not equal to those of the kernel in use is never chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal, Protocol

from phonebit.devices.kernel_choice import KernelChoice
from phonebit.devices.loading import EngineOptions, Precision, open_engine
from phonebit.devices.target import find_gpu_target
from phonebit.devices.tuning_store import KEY_FIELDS, TABLE_FILE, export_tuning, store_tuning
from phonebit.errors import DeviceError, InputError
from phonebit.output_files import check_output

Level = Literal["rapid", "normal", "exhaustive"]

REPEATS = 10
"""Runs of a candidate, of which the median counts."""
COMPARISON_ROUNDS = 3
"""In the end the best candidate and the one in use take turns this often; the minimum counts."""
MIN_GAIN = 0.02
"""A candidate replaces the one in use only if it takes this much less time: noise is no gain."""
BATCHES = (1, 32)
"""Where no batch size matters more: one image, and as many as keep the largest GPUs busy."""
LARGE_BATCH_REPEATS = 3
"""Runs in a turn at a batch size that was not searched at: each is long."""
MAX_COMPARISONS = 3
"""Candidates that may challenge the one in use, the fastest first, until one replaces it."""
DESCENT_LIMIT = 2.0
"""Level normal refines the kernels whose first candidate is within this factor of the best."""


class TunableNetwork(Protocol):
    """What the search needs of a network."""

    @property
    def layers(self) -> Sequence[Any]:
        """The ops in execution order."""

    def candidates(self, index: int) -> list[str]:
        """See ``Network``; what is in use comes first."""

    def measure_choice(
        self, index: int, choice: str, batch: int = 1, repeats: int = 10
    ) -> tuple[float, bool]:
        """See ``Network``."""

    def tuning_line(self, index: int, choice: str) -> str:
        """See ``Network``."""


@dataclass
class LayerTuning:
    """What was found for one shape.

    Attributes:
        layers: the layers that have it.
        before: the choice that was in use.
        after: the fastest choice; the same where nothing was faster.
        before_ms: time of the first, taken in turns with the second.
        after_ms: time of the second.
        measured: candidates that were measured.
        refused: candidates that were not equal, or failed, with the reason.
        line: makes ``after`` serve: a line of a tuning table.
    """

    layers: list[str]
    before: str
    after: str = ""
    before_ms: float = inf
    after_ms: float = inf
    measured: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    line: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return asdict(self)


@dataclass
class TuningReport:
    """What a tuning run found and where it was kept.

    Attributes:
        device: as ``Network.device`` says it.
        level: how much was tried.
        batches: batch sizes at which choices were judged; the first is the one searched at.
        layers: one entry for each shape.
        kept_in: the device's file in the cache folder.
        exported_to: the table that was asked for.
    """

    device: str
    level: Level
    batches: tuple[int, ...]
    layers: list[LayerTuning] = field(default_factory=list)
    kept_in: str | None = None
    exported_to: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**vars(self), "layers": [entry.to_dict() for entry in self.layers]}


def tune(
    path: str | Path,
    device: str = "gpu",
    *,
    level: Level = "normal",
    batch: int | None = None,
    precision: Precision = "exact",
    export: str | Path | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> TuningReport:
    """Find the fastest kernel for each layer of a network on an OpenCL device, and keep it.

    From then on every network with layers of these shapes uses these kernels on the device. Kernels
    whose results are not equal are never chosen. What was found is kept layer by layer.

    Args:
        path: the network, a ``.pbit`` file.
        device: "gpu", or "gpu:1" as ``phonebit devices`` lists.
        level: as for ``tune_layers``.
        batch: the batch size that matters; None: what is fastest for one image and not slower for
            32, where the device has memory for so many.
        precision: of the network, as ``Network.load`` takes it.
        export: also add the results to this tuning table.
        progress: called with a text after each measurement.

    Raises:
        InputError: if the device is no OpenCL device, or ``export`` is the network or a file of
            another kind.
        ModelFormatError: if the file is not sound.
        DeviceError: if there is no such device, or it fails.
        OSError: if a file cannot be read or written.
    """
    path = Path(path)
    if export is not None:
        Path(export).parent.mkdir(parents=True, exist_ok=True)
        check_output(export, TABLE_FILE, [path])
    target = find_gpu_target(device, "tuning")
    network = open_engine(path, device, EngineOptions(precision=precision))
    batches = BATCHES if batch is None else (batch,)
    report = TuningReport(network.device, level, batches)
    for entry in tune_layers(network, level, batches, progress):
        report.layers.append(entry)
        kept = store_tuning(target.key, [entry.line])
        report.kept_in = None if kept is None else str(kept)
        if export is not None:
            export_tuning(Path(export), [entry.line])
            report.exported_to = str(export)
    return report


def tunable_layers(network: TunableNetwork) -> list[list[int]]:
    """Layers that have a choice, those together that one line of a tuning table is for.

    Args:
        network: loaded on an OpenCL device.

    Returns:
        Places of layers, in execution order of the first of each group.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for index in range(len(network.layers)):
        candidates = network.candidates(index)
        if len(candidates) > 1:
            line = network.tuning_line(index, candidates[0])
            groups.setdefault(tuple(line.split()[:KEY_FIELDS]), []).append(index)
    return list(groups.values())


def tune_layers(
    network: TunableNetwork,
    level: Level,
    batches: Sequence[int] = BATCHES,
    progress: Callable[[str], None] = lambda _text: None,
) -> Iterator[LayerTuning]:
    """Find the fastest choice for each layer; one result at a time, so that none need be lost.

    Args:
        network: loaded on an OpenCL device.
        level: "rapid": each kernel with its default parameters; "normal": from the best of those,
            one parameter at a time; "exhaustive": every candidate.
        batches: batch sizes. Times are those of the first; a choice that is slower than the one
            one at another does not replace it.
        progress: called with a text after each measurement.

    Yields:
        One result for each group of ``tunable_layers``.

    Raises:
        DeviceError: if the choice in use of a layer cannot be measured.
    """
    for group in tunable_layers(network):
        yield _Search(network, group, batches, progress).run(level)


class _Search:
    """The candidates of one group of layers, and what is known of them."""

    def __init__(
        self,
        network: TunableNetwork,
        group: Sequence[int],
        batches: Sequence[int],
        progress: Callable[[str], None],
    ) -> None:
        self._network = network
        self._index = group[0]
        self._batch, *self._other_batches = batches
        self._progress = progress
        self._candidates = _common_candidates(network, group)
        self._times: dict[KernelChoice, float] = {}
        self._chosen = next(iter(self._candidates))  # the runtime lists it first
        self._result = LayerTuning(
            [network.layers[index].name for index in group], self._candidates[self._chosen]
        )

    def run(self, level: Level) -> LayerTuning:
        """Search, let the best and the choice in use take turns, and report."""
        if self._time(self._chosen) == inf:
            text = self._candidates[self._chosen]
            raise DeviceError(
                f"the serving kernel cannot be measured: {self._result.refused[text]}",
                where=f"layer '{self._result.layers[0]}', {text}",
            )
        if level == "exhaustive":
            for choice in self._candidates:
                self._time(choice)
        else:
            starts = self._starts()
            for choice in starts:
                self._time(choice)
            if level == "normal":
                limit = DESCENT_LIMIT * min(self._times.values())
                for choice in starts:
                    if self._times[choice] <= limit:
                        self._descend(choice)
        self._decide()
        return self._result

    def _starts(self) -> list[KernelChoice]:
        """Per kernel the candidate with most parameters at their defaults; the one in use."""
        best: dict[str, KernelChoice] = {}
        for choice in self._candidates:
            known = best.get(choice.kernel)
            if known is None or choice.defaults > known.defaults:
                best[choice.kernel] = choice
        return list(dict.fromkeys([self._chosen, *best.values()]))

    def _descend(self, start: KernelChoice) -> None:
        """Coordinate descent: the best value of one parameter after the other, while it helps."""
        best = start
        improved = True
        while improved:
            improved = False
            for name, _ in start.parameters:
                line = [choice for choice in self._candidates if choice.differs_only_in(name, best)]
                fastest = min(line, key=self._time, default=best)
                if self._time(fastest) < self._time(best):
                    best, improved = fastest, True

    def _time(self, choice: KernelChoice) -> float:
        """Milliseconds; infinite for a candidate that fails or gives other results."""
        if choice not in self._times:
            self._times[choice] = self._measure(choice, self._batch, REPEATS)
            self._result.measured += 1
            best = min(self._times.values())
            self._progress(
                f"{self._result.layers[0]}: {self._result.measured} measured, best {best:.4f} ms"
            )
        return self._times[choice]

    def _measure(self, choice: KernelChoice, batch: int, repeats: int) -> float:
        text = self._candidates[choice]
        try:
            latency_ms, equal = self._network.measure_choice(self._index, text, batch, repeats)
        except DeviceError as error:
            self._result.refused[text] = str(error)
            return inf
        if not equal:
            self._result.refused[text] = "its results are not equal to the serving kernel's"
            return inf
        return latency_ms

    def _decide(self) -> None:
        """The fastest candidate that wins against the one in use; that one if none does."""
        best, times = self._chosen, (self._times[self._chosen],) * 2
        limit = (1 - MIN_GAIN) * times[0]
        faster = [choice for choice, latency_ms in self._times.items() if latency_ms <= limit]
        for choice in sorted(faster, key=self._times.__getitem__)[:MAX_COMPARISONS]:
            pair = self._compare(choice, self._batch, 2 * REPEATS)
            if pair[1] > (1 - MIN_GAIN) * pair[0]:
                times = pair[0], pair[0]
            elif all(self._is_no_slower(choice, batch) for batch in self._other_batches):
                best, times = choice, pair
                break
        result = self._result
        result.before_ms, result.after_ms = times
        result.after = self._candidates[best]
        result.line = self._network.tuning_line(self._index, result.after)

    def _compare(self, choice: KernelChoice, batch: int, repeats: int) -> tuple[float, float]:
        """Milliseconds of the choice in use and of another, in turns."""
        rounds = [
            (self._measure(self._chosen, batch, repeats), self._measure(choice, batch, repeats))
            for _ in range(COMPARISON_ROUNDS)
        ]
        # Once unequal or failed is too often: such a choice must not be used.
        unsound = any(after == inf for _, after in rounds)
        return min(before for before, _ in rounds), (
            inf if unsound else min(after for _, after in rounds)
        )

    def _is_no_slower(self, choice: KernelChoice, batch: int) -> bool:
        try:
            before_ms, after_ms = self._compare(choice, batch, LARGE_BATCH_REPEATS)
        except InputError:  # the device has no memory for so many
            return True
        return after_ms <= (1 + MIN_GAIN) * before_ms


def _common_candidates(network: TunableNetwork, group: Sequence[int]) -> dict[KernelChoice, str]:
    """Candidates of the first layer that suit the others too: one line is for all of them."""
    first, *others = group
    common = {KernelChoice.parse(text): text for text in network.candidates(first)}
    for index in others:
        known = {KernelChoice.parse(text) for text in network.candidates(index)}
        shared = {choice: text for choice, text in common.items() if choice in known}
        common = shared or common
    return common
