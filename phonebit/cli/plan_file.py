"""Planning of one file, as ``phonebit plan`` does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from phonebit.cli.console import progress

if TYPE_CHECKING:
    from phonebit.loading import EngineOptions
    from phonebit.planner import OutputPart
    from phonebit.planner.explain import LayerChoice
    from phonebit.planner.part_times import MeasuredTimes
    from phonebit.planner.planning import Planned, PlannerSettings
    from phonebit.planner.predictors import LayerShape
    from phonebit.planner.profile import DeviceProfile
    from phonebit.planner.race import Race

MethodName = Literal["search", "ulayer", "codl", "finegrained"]
PlanPrecision = Literal["exact", "fast"]
PlanSharing = Literal["copy", "map", "svm"]
PlanSynchronization = Literal["events", "user_events", "polling"]
TURNS: Final = 8
"""In which a part of a layer is measured, of which the least counts."""


@dataclass(frozen=True)
class PlanRequest:
    """How to plan; see the options of ``plan``."""

    method: MethodName = "finegrained"
    measure: bool = False
    device: str = "gpu+cpu"
    precision: PlanPrecision = "exact"
    threads: int = 0
    sharing: PlanSharing | None = None
    synchronization: PlanSynchronization | None = None
    margin: float | None = None
    channel_step: int | None = None
    row_step: int = 8


@dataclass(frozen=True)
class PlanReport:
    """What planning gave.

    Attributes:
        file: the network.
        output: where it is with its plan.
        planned: the plan and how it came about.
        layers: why, layer by layer.
        measurements: pairs of parts that were measured.
        race: the plan beside either processor alone, where it was measured.
        typical_error: of the predictions, as a share; None where times were measured, or it is not
            known.
    """

    file: Path
    output: Path
    planned: Planned
    layers: list[LayerChoice]
    measurements: int
    race: Race | None
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
            "race": None if self.race is None else vars(self.race),
            "typical_error": self.typical_error,
            "layers": [choice.to_dict() for choice in self.layers],
        }


def plan_file(
    file: Path, profile: str, output_path: Path, request: PlanRequest, quiet: bool
) -> PlanReport:
    """Plan a network and write it with its plan.

    Args:
        file: the network.
        profile: a device profile: a file, or the key of a device.
        output_path: where the network with its plan goes; it may be ``file``.
        request: how to plan.
        quiet: show no progress.

    Returns:
        The plan and why it is what it is.

    Raises:
        InputError: there is no such profile, it does not know what is asked for, a number is out of
            range, or the network has no layer that can be cut.
        ModelFormatError: the file is no sound ``.pbit`` file.
        DeviceError: something is to be measured and this is not the profile's device.
        OSError: a file cannot be read or written.
    """
    from phonebit.format.reader import read_contents
    from phonebit.format.writer import file_bytes, write_atomically
    from phonebit.planner import Processor, with_plan
    from phonebit.planner.explain import explain as explain_plan
    from phonebit.planner.part_times import PredictedTimes
    from phonebit.planner.partition import method_named
    from phonebit.planner.planning import plan_network
    from phonebit.planner.predictors import LayerShape

    method = method_named(request.method)
    known = find_profile(profile)
    settings = _settings(request, known)
    settings.check()
    threads = request.threads or max(known.threads)
    key = known.key(threads)
    cost = known.sharing_cost(method.name, threads, request.sharing, request.synchronization)
    contents = read_contents(file)
    shapes = [LayerShape.of(contents, index) for index in range(len(contents.ops))]
    with _measured_times(file, shapes, key, threads, request, quiet) as measured:
        if method.measures and measured is not None:
            planned = plan_network(contents, key, method, measured, cost, settings)
        else:
            times = PredictedTimes(shapes, known.predictor(method.name, threads))
            planned = plan_network(contents, key, method, times, cost, settings, measured)
    raced = None
    if measured is not None and planned.is_split:
        raced = _race(file, planned, _engine_options(threads, request), request.device)
        if not raced.is_won:
            cpu_us, gpu_us = 1000 * raced.cpu_ms, 1000 * raced.gpu_ms
            home = Processor.CPU if cpu_us < gpu_us else Processor.GPU
            planned = planned.on_one(home, min(cpu_us, gpu_us))
    layers = explain_plan(planned, is_predicted=not method.measures)
    write_atomically(output_path, file_bytes(with_plan(contents, planned.plan)))
    measurements = measured.measurements if measured is not None else 0
    typical_error = known.errors.get(method.name) if measured is None else None
    return PlanReport(file, output_path, planned, layers, measurements, raced, typical_error)


def _settings(request: PlanRequest, profile: DeviceProfile) -> PlannerSettings:
    """A margin that the user gives counts for all times."""
    from phonebit.planner.planning import PlannerSettings
    from phonebit.planner.profile import LEAST_MARGIN

    margin, predicted = request.margin, request.margin
    if margin is None:
        margin, predicted = LEAST_MARGIN, profile.margin(request.method)
    return PlannerSettings(margin, request.channel_step, request.row_step, predicted)


def find_profile(device: str) -> DeviceProfile:
    """A device's profile.

    Args:
        device: a file, or the key of a device whose profile is in the cache folder.

    Raises:
        InputError: there is no such profile, or it is damaged.
    """
    from phonebit.errors import InputError
    from phonebit.planner.profile import profile_path, read_profile

    kept = profile_path(device)
    for path in (Path(device), kept):
        if path is not None and path.is_file():
            return read_profile(path)
    raise InputError(
        "no such device profile",
        where="--profile",
        expected="a file, or the key of a device that was profiled here",
        got=repr(device),
        hint="make one with `phonebit collect` and `phonebit train-predictor`",
    )


@contextmanager
def _measured_times(
    file: Path,
    shapes: Sequence[LayerShape],
    key: str,
    threads: int,
    request: PlanRequest,
    quiet: bool,
) -> Iterator[MeasuredTimes | None]:
    """Times measured on the device, which must be the profile's; None if nothing is measured."""
    from phonebit.errors import DeviceError, InputError

    if not (request.measure or request.method == "search"):
        if request.precision != "exact":
            raise InputError(
                "predictors know exact layers only",
                where=f"--precision {request.precision}",
                hint="add --measure, or use --method search",
            )
        yield None
        return
    from phonebit.cli.measuring_engine import open_canary, open_measuring_engine
    from phonebit.planner.measuring import measure_parts
    from phonebit.planner.part_times import MeasuredTimes
    from phonebit.planner.plan import Processor

    options = _engine_options(threads, request)
    engine = open_measuring_engine(file, request.device, options)
    if engine.plan_key != key:
        raise DeviceError(
            "the profile is of another device, driver or number of threads",
            where="--profile",
            expected=engine.plan_key,
            got=key,
            hint="measure on that device, or plan without measuring",
        )

    canary = open_canary(request.device, options)

    def measure(layer: int, cpu: OutputPart | None, gpu: OutputPart | None) -> tuple[float, float]:
        parts = {Processor.CPU: cpu, Processor.GPU: gpu}
        at_work = [processor for processor, part in parts.items() if part is not None]
        times = canary.measure_times(
            at_work, lambda: measure_parts(engine, layer, cpu, gpu, repeats=1), TURNS
        )
        return times.cpu_us, times.gpu_us

    names = [layer.name for layer in engine.layers]
    with progress("measuring", None, quiet=quiet) as advance:
        yield MeasuredTimes(shapes, measure, lambda layer: advance(names[layer]))


def _engine_options(threads: int, request: PlanRequest) -> EngineOptions:
    from phonebit.loading import EngineOptions

    return EngineOptions(
        threads,
        request.precision,
        sharing=request.sharing or "auto",
        synchronization=request.synchronization or "auto",
    )


def _race(file: Path, planned: Planned, options: EngineOptions, device: str) -> Race:
    """The plan as a whole beside the processors alone: single layers do not tell everything."""
    from phonebit.cli.measuring_engine import open_canary
    from phonebit.layer_info import TensorInfo
    from phonebit.loading import open_engine
    from phonebit.planner.race import race
    from phonebit.random_inputs import random_inputs

    gpu, _, cpu = device.partition("+")
    both = open_engine(file, device, replace(options, plan=planned.plan))
    on_cpu, on_gpu = open_engine(file, cpu, options), open_engine(file, gpu, options)
    inputs = random_inputs([TensorInfo.of(tensor) for tensor in both.inputs], 1)
    canary = open_canary(device, options)
    return race(canary, both, on_cpu, on_gpu, list(inputs.values()))


def draw_plan(path: Path, report: PlanReport) -> None:
    """Draw a plan as SVG.

    Raises:
        OSError: the file cannot be written.
    """
    from phonebit.format.writer import write_atomically
    from phonebit.planner.plan_picture import plan_svg

    plan = report.planned.plan
    title = f"{report.file.name} on {plan.device}, planned by {plan.method}"
    write_atomically(path, plan_svg(report.layers, title).encode())
