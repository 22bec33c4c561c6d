"""A device's cost models in two calls: samples are collected, and models trained from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from phonebit.devices.gpus import device_key, gpu_device
from phonebit.devices.loading import EngineOptions
from phonebit.devices.runtime import usable_cores
from phonebit.devices.tuning_store import stored_tuning
from phonebit.errors import InputError
from phonebit.output_files import check_output
from phonebit.planner.measure.collect import CollectionReport, EngineHere, Progress, carry_out
from phonebit.planner.measure.engines import (
    cpu_facts,
    gpu_facts,
    open_measuring_engine,
    open_probe,
)
from phonebit.planner.measure.orders import CollectionPlan, Way
from phonebit.planner.predict.evaluation import Accuracy, evaluate, typical_errors
from phonebit.planner.predict.kernels import DeviceFacts
from phonebit.planner.predict.profile import PROFILE_FILE, profile_path, write_profile
from phonebit.planner.predict.samples import SAMPLES_FILE, read_samples
from phonebit.planner.predict.training import Trainer, split_by_layer

if TYPE_CHECKING:
    from phonebit import _runtime


def collect(
    samples: str | Path,
    wanted: CollectionPlan | None = None,
    *,
    device: str = "gpu+cpu",
    progress: Progress = lambda _text: None,
) -> CollectionReport:
    """Measures random layers here, for the training of cost models.

    Layers that the file has already are not measured again, so that an interrupted collection goes
    on where it stopped.

    Args:
        samples: The file of samples; it is begun if there is none.
        wanted: What is measured; None: 1000 layers, with one CPU thread.
        device: Where to measure, as "gpu:1+cpu".
        progress: Called with a text before each layer.

    Raises:
        InputError: The file is of another device, or damaged.
        DeviceError: No layer could be measured.
        OSError: The file cannot be written.
    """

    def open_engine(path: Path, threads: int, way: Way) -> _runtime.Network:
        options: dict[str, Any] = {"threads": threads, **way._asdict()}
        return open_measuring_engine(path, device, cast(EngineOptions, options))

    check_output(samples, SAMPLES_FILE)
    wanted = wanted or CollectionPlan()
    facts = facts_here(device, wanted.threads)
    here = EngineHere(open_engine, wanted)
    return carry_out(Path(samples), facts, wanted, here.way, here.measure, progress)


def facts_here(device: str, threads: tuple[int, ...]) -> DeviceFacts:
    """What a network that holds one small layer says of both processors of "gpu:1+cpu"."""
    on_gpu, _, on_cpu = device.partition("+")
    found = gpu_device(on_gpu)
    gpu = gpu_facts(found, stored_tuning(device_key(found)))
    alone, index = open_probe(on_cpu, EngineOptions(threads=1))
    keys = {
        count: open_probe(device, EngineOptions(threads=count))[0].plan_key for count in threads
    }
    cpu = cpu_facts(alone.isa, usable_cores(), alone.layers[index].kernel)
    return DeviceFacts(keys, gpu, cpu)


@dataclass
class TrainingReport:
    """What a training gave.

    Args:
        learnt_from: Measured parts that the tested predictors have seen.
        tested_with: Those that they have not.
        accuracies: Errors over the latter.
        refused: Kernels that the runtime passes over on this device.
        refused_for_cuts: Likewise, for parts of the channels.
    """

    device: list[str]
    profiles: list[str]
    learnt_from: int
    tested_with: int
    accuracies: list[Accuracy]
    refused: list[str]
    refused_for_cuts: list[str]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)


def train(
    samples: str | Path,
    output: str | Path | None = None,
    *,
    replace_any: bool = False,
    progress: Progress = lambda _text: None,
) -> TrainingReport:
    """Trains cost models from samples. A fifth of the layers is held out to tell how good they are.

    Args:
        samples: What ``collect`` wrote.
        output: The profile; None: it is kept in the cache, for each key of the device.
        replace_any: Also replace an output that is no profile.
        progress: Called with a text before each model.

    Raises:
        InputError: There are too few layers, the file is damaged, there is no cache folder, or the
            output is the samples or a file of another kind.
        OSError: A file cannot be read or written.
    """
    path = Path(samples)
    if output is not None:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        check_output(Path(output), PROFILE_FILE, [path], replace_any)
    found = read_samples(path)
    learning, testing = split_by_layer(found.parts)
    if not testing:
        raise InputError(
            "too few layers to hold a fifth of them out",
            where=str(path),
            got=f"{len(found.parts)} measured parts",
            hint="collect more with `phonebit collect --resume --samples N`",
        )
    trainer = Trainer(found, progress=progress)
    predictions = evaluate(trainer.fit(learning, found.handovers), testing)
    profile = replace(trainer.fit(found.parts, found.handovers), errors=typical_errors(predictions))
    keys = profile.device.keys.values()
    places = [Path(output)] if output is not None else [profile_path(key) for key in keys]
    for place in places:
        write_profile(place, profile, inputs=[path], replace_any=replace_any or output is None)
    return TrainingReport(
        list(keys),
        [str(place) for place in places],
        len(learning),
        len(testing),
        [accuracy for prediction in predictions for accuracy in prediction.accuracies()],
        list(profile.device.gpu.refused),
        list(profile.device.gpu.refused_for_cuts),
    )
