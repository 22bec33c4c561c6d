"""How well the predictors predict layers that they have not seen.

    python -m benchmarks.coexec.predictors --testbed g1c1-avx2

A fifth of the layers of the testbed's samples (prepare_profile.py) is held out, with all their
parts. Fine-Grained's table 1 has 2.4 % to 11.5 % on CPUs and 3.7 % to 9.0 % on GPUs; CoDL's table 3
has 83 % to 85 % of its predictions within 10 %.

Some layers are measured once more: how far that is from the first time is the error of a predictor
that knows everything but what else the machine does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from benchmarks.coexec.experiment import Bench, main
from benchmarks.coexec.plans import without_augmentation
from benchmarks.coexec.prepare_profile import collect
from phonebit.planner.json_records import to_record
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.evaluation import Accuracy, Prediction, evaluate
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.profile import METHODS, DeviceProfile, read_profile
from phonebit.planner.predict.samples import PartSample, read_samples
from phonebit.planner.predict.training import Trainer, split_by_layer

AGAIN: Final = "measured_again"
PLAIN: Final = "finegrained_plain"
AGAIN_LAYERS: Final = 60
AGAIN_SHARE: Final = 0.8
"""Of the budget, for those."""


def is_linear(layer: LayerShape) -> bool:
    """Whether it is a matrix product: 1x1, or a window that covers the map."""
    covers = (layer.out_h, layer.out_w) == (1, 1)
    return layer.is_convolution and (layer.kernel_h * layer.kernel_w == 1 or covers)


GROUPS: Final[dict[str, Callable[[LayerShape], bool]]] = {
    "linear": is_linear,
    "convolutional": lambda layer: layer.is_convolution and not is_linear(layer),
    "others": lambda layer: not layer.is_convolution,
}


def errors(
    profile: DeviceProfile,
    parts: Sequence[PartSample],
    pairs: Sequence[tuple[PartSample, PartSample]],
) -> list[dict[str, Any]]:
    """Errors of every predictor by processor and kind of layer, and of measuring again."""
    rows = []
    for kind, is_of_kind in GROUPS.items():
        again = differences(pairs, is_of_kind)
        own = [sample for sample in parts if is_of_kind(sample.layer)]
        found: dict[str, list[Accuracy]] = {}
        for prediction in predictions(profile, own) if own else []:
            accuracy = prediction.accuracies()[0]
            found.setdefault(side_of(accuracy), []).append(accuracy)
        for processor, accuracies in found.items():
            row = {"processor": processor, "layers": kind, "parts": accuracies[0].samples}
            found_errors = {of.predictor: _errors(of) for of in accuracies}
            if processor in again:
                found_errors[AGAIN] = _errors(again[processor])
            rows.append(row | {"errors": found_errors})
    return rows


def predictions(profile: DeviceProfile, parts: Sequence[PartSample]) -> list[Prediction]:
    """What all methods say, and Fine-Grained's without the dispatch."""
    ablated = evaluate(without_augmentation(profile), parts)
    return [
        *evaluate(profile, parts),
        *(replace(of, predictor=PLAIN) for of in ablated if of.predictor == "finegrained"),
    ]


def side_of(accuracy: Accuracy) -> str:
    """The processor, with its threads if it is the CPU."""
    threads = f", {accuracy.threads} threads" if accuracy.threads else ""
    return accuracy.processor + threads


def measured_again(bench: Bench) -> list[tuple[PartSample, PartSample]]:
    """Parts of some layers, as in the samples and as measured now, of the same clock."""
    path = bench.samples.with_name("again.jsonl")
    path.unlink(missing_ok=True)
    threads = read_profile(bench.profile).threads
    count = 2 if bench.smoke else AGAIN_LAYERS
    collect(bench, path, threads, count, AGAIN_SHARE * bench.budget.seconds)
    first = {part.key: part for part in read_samples(bench.samples).parts}
    return [
        (first[part.key], part.with_probe(first[part.key].canary_us))
        for part in read_samples(path).parts
        if part.key in first
    ]


def differences(
    pairs: Sequence[tuple[PartSample, PartSample]], is_of_kind: Callable[[LayerShape], bool]
) -> dict[str, Accuracy]:
    """By processor, how far parts of a kind of layer are from the first time."""
    sides: dict[tuple[Processor, int], list[tuple[float, float]]] = {}
    for first, again in pairs:
        if is_of_kind(first.layer) and first.is_resolved:
            side = first.processor, first.cpu_threads
            sides.setdefault(side, []).append((first.us, again.us))
    found = {}
    for (processor, threads), times in sides.items():
        one, other = np.array(times).T
        families = ("",) * len(times)
        accuracy = Prediction(AGAIN, processor, threads, families, one, other).accuracies()[0]
        found[side_of(accuracy)] = accuracy
    return found


def measure(bench: Bench) -> dict[str, Any]:
    """Trains without a fifth of the layers, and predicts those."""
    samples = read_samples(bench.samples)
    learning, testing = split_by_layer(samples.parts)
    profile = Trainer(samples).fit(learning, samples.handovers)
    pairs = measured_again(bench)
    return {
        "learnt_from": len(learning),
        "tested_with": len(testing),
        "measured_again": len(pairs),
        "groups": errors(profile, testing, pairs),
        "implementations": implementations(profile, testing),
        "model_bytes": model_bytes(profile),
    }


def implementations(profile: DeviceProfile, parts: Sequence[PartSample]) -> list[dict[str, Any]]:
    """CoDL's errors by processor and kernel of convolutions: its table 4."""
    own = [part for part in parts if part.layer.is_convolution and part.is_resolved]
    rows = []
    for found in evaluate(profile, own):
        if found.predictor == "codl":
            threads = found.threads  # the evaluation's order is that of the samples
            kernels = [kernel_of(part) for part in own if part.cpu_threads == threads]
            for accuracy in replace(found, families=tuple(kernels)).accuracies()[1:]:
                kernel, parts_of = accuracy.family, accuracy.samples
                row = {"processor": side_of(accuracy), "kernel": kernel, "parts": parts_of}
                rows.append(row | _errors(accuracy))
    return rows


def kernel_of(part: PartSample) -> str:
    """The kernel that computed a part, without its parameters."""
    return part.variant if part.processor == Processor.CPU else part.variant.split(" ")[0]


def model_bytes(profile: DeviceProfile) -> dict[str, int]:
    """Bytes of each method's models of both processors, as in the profile's file: CoDL, table 3."""
    sides = profile.gpu, *profile.cpu.values()

    def size(method: str) -> int:
        return sum(len(json.dumps(to_record(getattr(side, method)))) for side in sides)

    return {method: size(method) for method in METHODS}


def _errors(accuracy: Accuracy) -> dict[str, float]:
    median, within_10 = accuracy.median_error, accuracy.within_10
    return {"mape": accuracy.mape, "median": median, "within_10": within_10}


if __name__ == "__main__":
    sys.exit(main({"predictors": measure}, __doc__, budget_s=300))
