"""Training: from samples to the three predictors of a device profile.

Only this needs LightGBM and SciPy (``pip install 'phonebit[planner]'``); profiles hold plain
numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError, PhoneBitError
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.codl import Blocks, UnitTime
from phonebit.planner.predict.features import GEOMETRY
from phonebit.planner.predict.finegrained import CorrectedTrend, Featurizer
from phonebit.planner.predict.kernels import GpuDispatch
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.model_table import ALL, ModelTable
from phonebit.planner.predict.profile import DeviceProfile, ProcessorModels, SharingMode
from phonebit.planner.predict.samples import PartSample, Samples, SyncSample
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.training_dispatch import with_refusals
from phonebit.planner.predict.training_trend import fit_power_law, fit_trend
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.trend import Numbers, Trend, cost_terms, power_columns
from phonebit.planner.predict.ulayer import LogLine

FEWEST_SAMPLES: Final = 30
"""A kernel or family with fewer samples has no model of its own: that of all serves it."""
PARTS_POWER: Final = 0.5
"""Trees weigh a sample by how many its layer has, to the minus this power: parts of one layer tell
much the same."""
BOUND_PERCENTILE: Final = 95
"""The "measured upper bound" of synchronisation, without the rare pauses of an operating system."""


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown.

    Args:
        trees: How many.
        leaves: Most leaves of a tree.
        learning_rate: How much of what is left a tree takes away.
        least_in_leaf: Fewest samples of a leaf.
        l2: Regularisation of leaves.
        share: Of samples and features that each tree sees.
    """

    trees: int = 500
    leaves: int = 16
    learning_rate: float = 0.06
    least_in_leaf: int = 4
    l2: float = 0.1
    share: float = 0.8

    def parameters(self) -> dict[str, Any]:
        """LightGBM's names.

        Absolute errors of logarithms: what they are judged by, and few layers that are like no
        other count less. Missing values do not occur, so that decisions are plain ``<=``.
        """
        return {
            "objective": "regression_l1",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.least_in_leaf,
            "lambda_l2": self.l2,
            "feature_fraction": self.share,
            "bagging_fraction": self.share,
            "bagging_freq": 1,
            "max_bin": 1023,
            "min_data_in_bin": 1,
            "use_missing": False,
            "deterministic": True,
            "seed": 1,
            "num_threads": 1,
            "verbose": -1,
        }


class Trainer:
    """Fits predictors to the samples of one device.

    Args:
        samples: All of them; ``fit`` gets those that it may learn from.
        settings: Of trees.
        progress: Called with the name of each model before it is trained.

    Raises:
        InputError: There are no measured parts.
        PhoneBitError: LightGBM is not installed.
    """

    def __init__(
        self,
        samples: Samples,
        settings: TreeSettings | None = None,
        progress: Callable[[str], None] = lambda _text: None,
    ) -> None:
        if not samples.parts:
            raise InputError("no measured parts", where="samples", hint="run `phonebit collect`")
        self._lightgbm = _import_lightgbm()
        gpu = with_refusals(samples.device.gpu, samples.parts)
        self.device = replace(samples.device, gpu=gpu)
        self._dispatch = GpuDispatch(gpu)
        self._settings = settings or TreeSettings()
        self._progress = progress

    def fit(self, parts: Sequence[PartSample], handovers: Sequence[SyncSample]) -> DeviceProfile:
        """A profile.

        Args:
            parts: What to learn from.
            handovers: Likewise; costs of sharing are absent from the profile if there are none.
        """
        on_gpu = [sample for sample in parts if sample.processor == Processor.GPU]
        on_cpu = [sample for sample in parts if sample.processor == Processor.CPU]
        by_threads = {
            threads: [sample for sample in on_cpu if sample.threads == threads]
            for threads in sorted({sample.threads for sample in on_cpu})
        }
        return DeviceProfile(
            self.device,
            sharing_modes(handovers),
            self.fit_processor(on_gpu, 1) if on_gpu else None,
            {threads: self.fit_processor(of, threads) for threads, of in by_threads.items()},
        )

    def fit_processor(self, parts: Sequence[PartSample], threads: int) -> ProcessorModels:
        """The models of one processor.

        Args:
            parts: Samples of one processor, on the CPU of one number of threads.
            threads: That number.
        """
        featurizer = Featurizer(self._dispatch, self.device.cpu, threads)
        found = [
            featurizer.features(sample.layer, sample.processor, sample.computed) for sample in parts
        ]
        return ProcessorModels(
            self._fit_lines(parts),
            self._fit_units(parts, threads),
            self._fit_trees(parts, found),
            _rates(parts, found),
        )

    def _fit_lines(self, parts: Sequence[PartSample]) -> ModelTable[LogLine]:
        whole = [sample for sample in parts if sample.part == sample.layer.whole] or list(parts)
        groups = _groups([sample.layer.family for sample in whole], fewest=1)
        operations = np.array([sample.layer.operations(sample.computed) for sample in whole])
        times = np.array([sample.us for sample in whole])
        return ModelTable(
            {name: LogLine.fit(operations[own], times[own]) for name, own in groups.items()}
        )

    def _fit_units(self, parts: Sequence[PartSample], threads: int) -> ModelTable[UnitTime]:
        blocks = Blocks(self._dispatch, self.device.cpu, threads)
        found = [blocks.units(sample.layer, sample.processor, sample.computed) for sample in parts]
        units = np.array([count for _, count, _ in found])
        sizes = np.array([size for _, _, size in found])
        times = np.array([sample.us for sample in parts])
        groups = _groups([kernel for kernel, _, _ in found], fewest=8)
        return ModelTable(
            {name: UnitTime.fit(units[own], sizes[own], times[own]) for name, own in groups.items()}
        )

    def _fit_trees(
        self, parts: Sequence[PartSample], found: Sequence[tuple[str, list[float]]]
    ) -> ModelTable[CorrectedTrend]:
        features = np.array([values for _, values in found], np.float64)
        times = np.array([sample.us for sample in parts])
        side = parts[0].processor
        layers = [sample.layer for sample in parts]
        parts_of = Counter(layers)
        weights = np.array([parts_of[layer] ** -PARTS_POWER for layer in layers])
        models = {}
        for name, own in _groups([kernel for kernel, _ in found], FEWEST_SAMPLES).items():
            self._progress(f"{side.name.lower()} {name}")
            if name == ALL:  # no cost is the same for all kernels
                seen = features[:, : len(GEOMETRY)]
                trend: Trend = fit_power_law(seen, times, power_columns(side, len(GEOMETRY)))
            else:
                seen = features[own]
                columns = power_columns(side, features.shape[1])
                whose = [layers[place] for place in np.flatnonzero(own)]
                trend = fit_trend(seen, times[own], whose, columns, cost_terms(side))
            models[name] = self._fit_corrected(trend, seen, times[own], weights[own])
        return ModelTable(models)

    def _fit_corrected(
        self, trend: Trend, features: Numbers, times: Numbers, weights: Numbers
    ) -> CorrectedTrend:
        rest = np.log(times) - trend.logarithms(features)
        data = self._lightgbm.Dataset(features, rest, weight=weights, free_raw_data=False)
        booster = self._lightgbm.train(
            self._settings.parameters(), data, num_boost_round=self._settings.trees
        )
        return CorrectedTrend(trend, Trees.from_lightgbm(booster.dump_model()))


def _rates(
    parts: Sequence[PartSample], found: Sequence[tuple[str, list[float]]]
) -> dict[str, float]:
    """Operations a microsecond, the most of each kernel."""
    rates: dict[str, float] = {}
    for sample, (kernel, _) in zip(parts, found, strict=True):
        rate = sample.layer.operations(sample.computed) / sample.us
        rates[kernel] = max(rates.get(kernel, 0.0), rate)
    return rates


def split_by_layer(
    parts: Sequence[PartSample], share: float = 0.2, seed: int = 0
) -> tuple[list[PartSample], list[PartSample]]:
    """Samples to learn from, and samples to test with.

    All parts of a layer go to the same side, since parts of one layer tell much about each other.
    Of each family the same share of layers is held out.

    Args:
        parts: All samples.
        share: Of layers, to test with.
        seed: Of the choice.
    """
    rng = np.random.default_rng(seed)
    families: dict[str, list[LayerShape]] = {}
    for layer in dict.fromkeys(sample.layer for sample in parts):
        families.setdefault(layer.family, []).append(layer)
    held_out: set[LayerShape] = set()
    for layers in families.values():
        count = round(len(layers) * share)
        held_out.update(layers[place] for place in rng.permutation(len(layers))[:count])
    return (
        [sample for sample in parts if sample.layer not in held_out],
        [sample for sample in parts if sample.layer in held_out],
    )


def sharing_modes(handovers: Sequence[SyncSample]) -> tuple[SharingMode, ...]:
    """Costs of each way of sharing, in the order of their first samples."""
    groups: dict[tuple[str, str, int], list[SyncSample]] = {}
    for sample in handovers:
        key = sample.sharing, sample.synchronization, sample.threads
        groups.setdefault(key, []).append(sample)
    modes = []
    for (sharing, synchronization, threads), own in groups.items():
        moved = [(sample.bytes_to_cpu, sample.bytes_to_gpu) for sample in own]
        times = np.array([sample.us for sample in own])
        if sharing == "svm":  # nothing is moved
            cost = SharingCost(float(np.median(times)))
        else:
            cost = SharingCost.fit([(*of, us) for of, us in zip(moved, times, strict=True)])
        rates = np.array([cost.us_per_byte_to_cpu, cost.us_per_byte_to_gpu])
        synchronising = times - np.array(moved) @ rates
        bound = max(float(np.percentile(synchronising, BOUND_PERCENTILE)), cost.sync_us)
        modes.append(SharingMode(sharing, synchronization, threads, cost, bound))
    return tuple(modes)


def _groups(names: Sequence[str], fewest: int) -> dict[str, NDArray[np.bool_]]:
    """Places of samples by name, where there are enough of them; and all of them."""
    every = np.array(names)
    groups = {ALL: np.ones(len(every), bool)}
    for name in sorted(set(names)):
        own = every == name
        if own.sum() >= fewest:
            groups[name] = own
    return groups


def _import_lightgbm() -> ModuleType:
    try:
        import lightgbm
    except ImportError as error:
        raise PhoneBitError(
            "LightGBM is not installed", hint="pip install 'phonebit[planner]'"
        ) from error
    module: ModuleType = lightgbm
    return module
