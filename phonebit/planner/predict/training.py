"""Training: from samples to the three predictors of a device profile.

Only this needs LightGBM and SciPy (``pip install 'phonebit[planner]'``); profiles hold plain
numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.devices.kernel_choice import KernelChoice
from phonebit.errors import InputError, PhoneBitError
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.codl import fit_steps, steps_of
from phonebit.planner.predict.cost_sum import Numbers, columns_of, fit_cost_sum
from phonebit.planner.predict.features import Features, features_of, geometry_features
from phonebit.planner.predict.finegrained import COSTS, CorrectedTrend
from phonebit.planner.predict.kernels import GpuFacts, is_cut, parse_choice
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.profile import ALL, Describe, DeviceProfile, ProcessorModels
from phonebit.planner.predict.samples import PartSample, Samples, SyncSample
from phonebit.planner.predict.sharing_cost import SharingCost
from phonebit.planner.predict.trees import Trees
from phonebit.planner.predict.ulayer import LogLine, operations_of

FEWEST_SAMPLES: Final = 30
"""A kernel or family with fewer samples has no model of its own: that of all is used for it."""
PARTS_POWER: Final = 0.5
"""Trees weigh a sample by how many its layer has, to the minus this power: parts of one layer tell
much the same."""
BOUND_PERCENTILE: Final = 95
"""The "measured upper bound" of synchronisation, without the rare pauses of an operating system."""
TREES: Final = 500
TREE_SETTINGS: Final = {
    "objective": "regression_l1",
    "num_leaves": 16,
    "learning_rate": 0.06,
    "min_data_in_leaf": 4,
    "lambda_l2": 0.1,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "max_bin": 1023,
    "min_data_in_bin": 1,
    "use_missing": False,
    "deterministic": True,
    "seed": 1,
    "num_threads": 1,
    "verbose": -1,
}
"""LightGBM's parameters. Absolute errors of logarithms: what they are judged by, and few layers
that are like no other count less. Missing values do not occur, so decisions are plain ``<=``."""


class Trainer:
    """Fits predictors to the samples of one device, of which ``fit`` gets those to learn from."""

    def __init__(
        self,
        samples: Samples,
        trees: int = TREES,
        progress: Callable[[str], None] = lambda _text: None,
    ) -> None:
        if {sample.processor for sample in samples.parts} != set(Processor):
            hint = "run `phonebit collect`"
            raise InputError("no measured parts of both processors", where="samples", hint=hint)
        try:
            import lightgbm
        except ImportError as error:
            hint = "pip install 'phonebit[planner]'"
            raise PhoneBitError("LightGBM is not installed", hint=hint) from error
        self._lightgbm = lightgbm
        gpu = with_refusals(samples.device.gpu, samples.parts)
        self.device = replace(samples.device, gpu=gpu)
        self._trees = trees
        self._progress = progress

    def fit(self, parts: Sequence[PartSample], handovers: Sequence[SyncSample]) -> DeviceProfile:
        """A profile, of samples of both processors."""
        sides: dict[int, list[PartSample]] = {}
        for sample in parts:
            sides.setdefault(sample.cpu_threads, []).append(sample)
        models = {threads: self._fit_side(of, threads) for threads, of in sorted(sides.items())}
        return DeviceProfile(self.device, sharing_costs(handovers), models.pop(0), models)

    def _fit_side(self, parts: Sequence[PartSample], threads: int) -> ProcessorModels:
        """The models of one processor, on the CPU of one number of threads."""
        whole = [sample for sample in parts if sample.part == sample.layer.whole] or parts
        by_steps = partial(steps_of, self.device, threads)
        by_features = partial(features_of, self.device, threads)
        geometry = tuple(geometry_features(parts[0].layer, parts[0].computed))
        parts_of = Counter(sample.layer for sample in parts)

        def fit_trees(
            name: str, samples: Sequence[PartSample], inputs: Sequence[Features], times: Numbers
        ) -> CorrectedTrend:
            self._progress(f"{parts[0].processor.name.lower()} {name}")
            names = geometry if name == ALL else tuple(inputs[0])
            columns = columns_of(inputs, names)
            trend = fit_cost_sum(columns, times, COSTS)
            rest = np.log(times) - trend.logarithms(columns)
            table = np.stack(list(columns.values()), axis=1)
            weights = np.array([parts_of[sample.layer] ** -PARTS_POWER for sample in samples])
            data = self._lightgbm.Dataset(table, rest, weight=weights)
            booster = self._lightgbm.train(TREE_SETTINGS, data, num_boost_round=self._trees)
            return CorrectedTrend(names, trend, Trees.from_lightgbm(booster.dump_model()))

        return ProcessorModels(
            {name: LogLine.fit(*of) for name, _, of in _groups(whole, operations_of, 1)},
            {name: fit_steps(*of) for name, _, of in _groups(parts, by_steps, 8)},
            {
                name: fit_trees(name, samples, *of)
                for name, samples, of in _groups(parts, by_features, FEWEST_SAMPLES)
            },
        )


def _groups(
    parts: Sequence[PartSample], describe: Describe, fewest: int
) -> Iterator[tuple[str, Sequence[PartSample], tuple[Sequence[Any], Numbers]]]:
    """All samples, then those of each kernel or family that has so many at least.

    Yields:
        Name, samples, and what models are fitted to: what ``describe`` tells of each, and its time.
    """
    groups: dict[str, list[tuple[PartSample, Any]]] = {ALL: []}
    for sample in parts:
        name, inputs = describe(sample.layer, sample.processor, sample.computed)
        groups[ALL].append((sample, inputs))
        groups.setdefault(name, []).append((sample, inputs))
    for name in (ALL, *sorted(groups.keys() - {ALL})):
        if name == ALL or len(groups[name]) >= fewest:
            samples, inputs = zip(*groups[name], strict=True)
            yield name, samples, (inputs, np.array([sample.us for sample in samples]))


def with_refusals(gpu: GpuFacts, parts: Sequence[PartSample]) -> GpuFacts:
    """Facts about a GPU with the kernel choices that the runtime passes over there.

    They failed their self-test, or a limit that only drivers know: they stand before the choice
    that ran, wherever they do.
    """
    ran: set[tuple[bool, KernelChoice]] = set()
    passed_over: dict[tuple[bool, KernelChoice], str] = {}
    for sample in parts:
        if sample.processor != Processor.GPU or sample.variant == "none":
            continue
        cut = is_cut(sample.layer, sample.part)
        ran.add((cut, parse_choice(sample.variant)))
        for text in gpu.candidates(sample.layer, sample.part):
            if parse_choice(text) == parse_choice(sample.variant):
                break
            passed_over[cut, parse_choice(text)] = text
    refused, for_cuts = (
        tuple(sorted(passed_over[key] for key in passed_over.keys() - ran if key[0] == cut))
        for cut in (False, True)
    )
    return replace(gpu, refused=refused, refused_for_cuts=for_cuts)


def split_by_layer(parts: Sequence[PartSample]) -> tuple[list[PartSample], list[PartSample]]:
    """Samples to learn from, and samples to test with: those of a fifth of each family's layers.

    All parts of a layer go to the same side, since parts of one layer tell much about each other.
    """
    rng = np.random.default_rng(0)
    families: dict[str, list[LayerShape]] = {}
    for layer in dict.fromkeys(sample.layer for sample in parts):
        families.setdefault(layer.family, []).append(layer)
    held_out: set[LayerShape] = set()
    for layers in families.values():
        count = round(len(layers) / 5)
        held_out.update(layers[place] for place in rng.permutation(len(layers))[:count])
    return (
        [sample for sample in parts if sample.layer not in held_out],
        [sample for sample in parts if sample.layer in held_out],
    )


def sharing_costs(handovers: Sequence[SyncSample]) -> dict[int, SharingCost]:
    """Costs by number of threads, of the way of sharing that was measured first."""
    ways = {sample.threads: sample.key[:3] for sample in reversed(handovers)}
    costs: dict[int, SharingCost] = {}
    for threads, way in sorted(ways.items()):
        own = [sample for sample in handovers if sample.key[:3] == way]
        moved = np.array([sample.handover for sample in own])
        times = np.array([sample.us for sample in own])
        if own[0].sharing == "svm":  # nothing is moved
            cost = SharingCost(float(np.median(times)))
        else:
            cost = SharingCost.fit(moved, times)
        syncs = times - moved @ (cost.us_per_byte_to_cpu, cost.us_per_byte_to_gpu)
        bound_us = max(float(np.percentile(syncs, BOUND_PERCENTILE)), cost.sync_us)
        costs[threads] = replace(cost, bound_us=bound_us)
    return costs
