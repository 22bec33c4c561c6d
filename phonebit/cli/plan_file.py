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


def check_plan_outputs(
    file: Path, profile: str, output_path: Path, picture: Path | None, replace_any: bool
) -> None:
    """Refuse outputs at which something would be lost; the network itself may get the plan.

    Raises:
        InputError: as ``phonebit.output_files.check_output``.
    """
    from phonebit.format.writer import PBIT_FILE
    from phonebit.output_files import SVG, check_output

    check_output(output_path, PBIT_FILE, [profile], replace_any)
    if picture is not None:
        check_output(picture, SVG, [file, profile, output_path], replace_any)


def plan_file(
    file: Path,
    profile: str,
    output_path: Path,
    request: PlanRequest,
    quiet: bool,
    replace_any: bool = False,
) -> PlanReport:
    """Plan a network and write it with its plan.

    Args:
        file: the network.
        profile: a device profile: a file, or the key of a device.
        output_path: where the network with its plan goes; it may be ``file``.
        request: how to plan.
        quiet: show no progress.
        replace_any: also replace a file that is no ``.pbit`` file.

    Returns:
        The plan and why it is what it is.

    Raises:
        InputError: there is no such profile, it does not know what is asked for, a number is out of
            range, the network has no layer that can be cut, or the output is the profile or a file
            of another kind.
        ModelFormatError: the file is no sound ``.pbit`` file.
        DeviceError: something is to be measured and this is not the profile's device.
        OSError: a file cannot be read or written.
    """
    from phonebit.format.reader import read_contents
    from phonebit.format.writer import PBIT_FILE, file_bytes
    from phonebit.output_files import write_output
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
    content = file_bytes(with_plan(contents, planned.plan))
    write_output(output_path, content, PBIT_FILE, [profile], replace_any)
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


def draw_plan(path: Path, report: PlanReport, replace_any: bool = False) -> None:
    """Draw a plan as SVG.

    Raises:
        InputError: the path is one of the network, or a file of another kind.
        OSError: the file cannot be written.
    """
    from phonebit.output_files import SVG, write_output
    from phonebit.planner.plan_picture import plan_svg

    plan = report.planned.plan
    title = f"{report.file.name} on {plan.device}, planned by {plan.method}"
    content = plan_svg(report.layers, title).encode()
    write_output(path, content, SVG, [report.file, report.output], replace_any)
