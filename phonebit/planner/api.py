"""Planning, collecting and training as one call each: what the command line does."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phonebit.devices.loading import EngineOptions
from phonebit.devices.opencl import device_key, opencl_device
from phonebit.devices.runtime import usable_cores
from phonebit.devices.tuning_store import stored_tuning
from phonebit.errors import DeviceError, InputError
from phonebit.format.reader import read_contents
from phonebit.format.writer import PBIT_FILE, file_bytes
from phonebit.output_files import check_output, write_output
from phonebit.planner.measure.collect import CollectionReport, Progress, collect_here
from phonebit.planner.measure.engines import (
    device_facts,
    gpu_facts,
    open_measuring_engine,
    open_probe,
)
from phonebit.planner.measure.in_network import Correction, PassCheck, plan_in_network
from phonebit.planner.measure.on_device import NetworkOnDevice
from phonebit.planner.measure.orders import CollectionPlan
from phonebit.planner.measure.sync_layers import Way
from phonebit.planner.plan.stored_plans import with_plan
from phonebit.planner.predict.evaluation import Accuracy, evaluate, typical_errors
from phonebit.planner.predict.profile import (
    LEAST_MARGIN,
    PROFILE_FILE,
    DeviceProfile,
    profile_path,
    read_profile,
    write_profile,
)
from phonebit.planner.predict.samples import SAMPLES_FILE, DeviceFacts, read_samples
from phonebit.planner.predict.training import Trainer, split_by_layer
from phonebit.planner.search.explain import LayerChoice, explain
from phonebit.planner.search.methods import method_named
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import PartTimes, PredictedTimes
from phonebit.planner.search.planning import Planned, plan_network

if TYPE_CHECKING:
    from phonebit import _runtime

MethodName = Literal["search", "ulayer", "codl", "finegrained"]


@dataclass(frozen=True)
class PlanReport:
    """What planning gave.

    Args:
        layers: Why, layer by layer.
        measurements: Pairs of parts that were measured; 0: the plan is from predictions.
        check: The prediction beside the pass that was measured for it; None where nothing was.
        typical_error: Of the predictions, as a share; None where times were measured, or it is not
            known.
    """

    file: Path
    output: Path
    planned: Planned
    layers: list[LayerChoice]
    measurements: int
    check: PassCheck | None
    typical_error: float | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; times in microseconds."""
        planned = self.planned
        return {
            "file": str(self.file),
            "output": str(self.output),
            "device": planned.plan.device,
            "method": planned.plan.method,
            "home": planned.home.name.lower(),
            "home_us": planned.home_us,
            "plan_us": planned.total_us,
            "split": planned.is_split,
            "measurements": self.measurements,
            "check": None if self.check is None else self.check.to_dict(),
            "typical_error": self.typical_error,
            "layers": [choice.to_dict() for choice in self.layers],
        }


def plan(
    path: str | Path,
    profile: str | Path,
    output: str | Path | None = None,
    *,
    method: MethodName = "finegrained",
    measure: bool | None = None,
    device: str = "gpu+cpu",
    threads: int = 0,
    replace_any: bool = False,
    progress: Progress = lambda _text: None,
) -> PlanReport:
    """Plans a network for a CPU and a GPU that work on one image together.

    The plan is kept in the file, beside plans for other devices. In the first inferences the
    runtime compares it with either processor alone and keeps the fastest.

    Args:
        path: The network, a ``.pbit`` file.
        profile: Cost models of the device: a file, or the key of a device that was profiled here.
        output: Where the network with its plan goes; None: to ``path``.
        method: "search" measures every cut; the others predict.
        measure: Whether what is predicted to be best is measured, alone and in whole passes, until
            prediction and pass agree. None: where the profile's device is this one.
        device: Where to measure, as "gpu:1+cpu".
        threads: CPU threads; 0: the most that were profiled.
        replace_any: Also replace an output that is no ``.pbit`` file.
        progress: Called with the name of each layer that is measured.

    Raises:
        InputError: There is no such profile, it does not know what is asked for, the network has no
            layer that can be cut, or the output is the profile or a file of another kind.
        ModelFormatError: The file is no sound ``.pbit`` file.
        DeviceError: Something is to be measured and this is not the profile's device.
        OSError: A file cannot be read or written.
    """
    path, output = Path(path), Path(path if output is None else output)
    check_output(output, PBIT_FILE, [Path(profile)], replace_any)
    way = method_named(method)
    known = find_profile(profile)
    count = threads or max(known.threads)
    key, cost = known.key(count), known.sharing_cost(method, count)
    contents = read_contents(path)
    shapes = [layer.geometry for layer in NetworkGraph.of(contents).layers]
    is_asked = way.measures or bool(measure)
    here = None
    if is_asked or (measure is None and _is_here(known, device)):
        here = _network_here(path, key, device, count, is_asked)
    measured = None if here is None else here.part_times(shapes, progress)
    if measured is not None and way.measures:
        times: PartTimes = measured
        margin, again = LEAST_MARGIN, None
    else:
        times = PredictedTimes(shapes, known.predictor(method, count))
        margin, again = known.margin(method), measured

    def make(correction: Correction) -> Planned:
        first, then = correction.times(times), again and correction.times(again)
        return plan_network(contents, key, way, first, correction.sharing(cost), margin, then)

    check = None
    if here is None or measured is None:
        planned = make(Correction())
    else:
        planned, check = plan_in_network(make, measured, here.passes)
    content = file_bytes(with_plan(contents, planned.plan))
    write_output(output, content, PBIT_FILE, [Path(profile)], replace_any)
    return PlanReport(
        path,
        output,
        planned,
        explain(planned, is_predicted=not way.measures),
        0 if measured is None else measured.measurements,
        check,
        known.errors.get(method) if measured is None else None,
    )


def find_profile(device: str | Path) -> DeviceProfile:
    """A device's profile: a file, or that of a key in the cache folder.

    Raises:
        InputError: There is no such profile, or it is damaged.
    """
    for path in (Path(device), profile_path(str(device))):
        if path is not None and path.is_file():
            return read_profile(path)
    raise InputError(
        "no such device profile",
        where="--profile",
        expected="a file, or the key of a device that was profiled here",
        got=repr(str(device)),
        hint="make one with `phonebit collect` and `phonebit train-predictor`",
    )


def _is_here(profile: DeviceProfile, device: str) -> bool:
    """Whether the profile's GPU may be this one; what a plan is kept under decides."""
    try:
        return opencl_device(device.partition("+")[0]).name == profile.device.gpu.name
    except DeviceError:
        return False


def _network_here(
    path: Path, key: str, device: str, threads: int, is_asked: bool
) -> NetworkOnDevice | None:
    """A network to measure, if this is the device of the key."""
    try:
        here = NetworkOnDevice(path, device, threads)
        if here.plan_key == key:
            return here
        raise DeviceError(
            "the profile is of another device, driver or number of threads",
            where="--profile",
            expected=here.plan_key,
            got=key,
            hint="measure on that device, or plan without measuring",
        )
    except DeviceError:
        if is_asked:
            raise
        return None


def collect(
    samples: str | Path,
    wanted: CollectionPlan | None = None,
    *,
    device: str = "gpu",
    progress: Progress = lambda _text: None,
) -> CollectionReport:
    """Measures random layers here, for the training of cost models.

    Layers that the file has already are not measured again, so that an interrupted collection goes
    on where it stopped.

    Args:
        samples: The file of samples; it is begun if there is none.
        wanted: What is measured; None: 1000 layers on both processors, with one CPU thread.
        device: The OpenCL device, "gpu" or "gpu:1".
        progress: Called with a text before each layer.

    Raises:
        InputError: The file is of another device, or damaged.
        DeviceError: No layer could be measured.
        OSError: The file cannot be written.
    """

    def open_engine(path: Path, threads: int, way: Way) -> _runtime.Network:
        names: dict[str, Any] = way._asdict()
        return open_measuring_engine(path, f"{device}+cpu", EngineOptions(threads, **names))

    check_output(samples, SAMPLES_FILE)
    wanted = wanted or CollectionPlan()
    facts = facts_here(device, wanted.threads)
    return collect_here(Path(samples), facts, wanted, open_engine, progress)


def facts_here(device: str, threads: tuple[int, ...]) -> DeviceFacts:
    """What a network that holds one small layer says of an OpenCL device and the CPU."""
    found = opencl_device(device)
    gpu = gpu_facts(found, stored_tuning(device_key(found)))
    alone, index = open_probe("cpu", EngineOptions(1))
    keys = {
        count: open_probe(f"{device}+cpu", EngineOptions(count))[0].plan_key for count in threads
    }
    return device_facts(gpu, alone.isa, usable_cores(), alone.layers[index].kernel, keys)


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
    places = [Path(output)] if output is not None else _kept(profile)
    for place in places:
        write_profile(place, profile, inputs=[path], replace_any=replace_any or output is None)
    return TrainingReport(
        list(profile.device.keys.values()),
        [str(place) for place in places],
        len(learning),
        len(testing),
        [accuracy for prediction in predictions for accuracy in prediction.accuracies()],
        list(profile.device.gpu.refused),
        list(profile.device.gpu.refused_for_cuts),
    )


def _kept(profile: DeviceProfile) -> list[Path]:
    """Where the cache has a profile of each of the device's keys."""
    kept = [profile_path(key) for key in profile.device.keys.values()]
    places = [place for place in kept if place is not None]
    if not places:
        raise InputError("there is no cache folder", where="profile", hint="give a file to -o")
    return places
