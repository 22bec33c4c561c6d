"""Planning a file as one call: what ``phonebit plan`` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from phonebit.devices.opencl import opencl_device
from phonebit.errors import DeviceError, InputError
from phonebit.format.reader import read_contents
from phonebit.format.writer import PBIT_FILE, file_bytes
from phonebit.output_files import check_output, write_output
from phonebit.planner.measure.collect import Progress
from phonebit.planner.measure.in_network import Correction, PassCheck, plan_in_network
from phonebit.planner.measure.on_device import NetworkOnDevice
from phonebit.planner.plan.stored_plans import with_plan
from phonebit.planner.predict import SharingCost
from phonebit.planner.predict.profile import (
    LEAST_MARGIN,
    DeviceProfile,
    LatencyPredictor,
    profile_path,
    read_profile,
)
from phonebit.planner.search.explain import LayerChoice, explain
from phonebit.planner.search.methods import Method, method_named
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.part_times import PartTimes, PredictedTimes, ProportionalTimes
from phonebit.planner.search.planning import Planned, plan_network

MethodName = Literal["search", "ulayer", "codl", "finegrained", "combined"]


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
    profile: str | Path | None = None,
    output: str | Path | None = None,
    *,
    method: MethodName = "combined",
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
            None: whole layers are measured on this device, and parts taken to be in proportion.
        output: Where the network with its plan goes; None: to ``path``.
        method: "search" measures every cut; the others predict.
        measure: Whether what is predicted to be best is measured, alone and in whole passes, until
            prediction and pass agree. None: without a profile, or where its device is this one.
        device: Where to measure, as "gpu:1+cpu".
        threads: CPU threads; 0: the most that were profiled, without a profile one per core.
        replace_any: Also replace an output that is no ``.pbit`` file.
        progress: Called with the name of each layer that is measured.

    Raises:
        InputError: There is no such profile, it does not know what is asked for, nothing may be
            measured without one, the network has no layer that can be cut, or the output is the
            profile or a file of another kind.
        ModelFormatError: The file is no sound ``.pbit`` file.
        DeviceError: Something is to be measured and this is not the profile's device.
        OSError: A file cannot be read or written.
    """
    path, output = Path(path), Path(path if output is None else output)
    inputs = [] if profile is None else [Path(profile)]
    check_output(output, PBIT_FILE, inputs, replace_any)
    way = method_named(method)
    basis = (
        _measured_basis(path, measure, device, threads)
        if profile is None
        else _basis_of(find_profile(profile), path, way, measure, device, threads)
    )
    contents = read_contents(path)
    shapes = [layer.geometry for layer in NetworkGraph.of(contents).layers]
    measured = None if basis.here is None else basis.here.part_times(shapes, progress)
    times: PartTimes
    if basis.predictor is not None:
        times, again = PredictedTimes(shapes, basis.predictor), measured
    else:
        assert measured is not None
        in_proportion = ProportionalTimes(shapes, measured)
        times, again = (measured, None) if way.measures else (in_proportion, measured)

    def make(correction: Correction) -> Planned:
        first, then = correction.times(times), again and correction.times(again)
        cost = correction.sharing(basis.sharing)
        return plan_network(contents, basis.key, way, first, cost, basis.margin, then)

    check = None
    if basis.here is None or measured is None:
        planned = make(Correction())
    else:
        planned, check = plan_in_network(make, measured, basis.here.passes)
    content = file_bytes(with_plan(contents, planned.plan))
    write_output(output, content, PBIT_FILE, inputs, replace_any)
    return PlanReport(
        path,
        output,
        planned,
        explain(planned, is_predicted=basis.predictor is not None),
        0 if measured is None else measured.measurements,
        check,
        basis.typical_error if measured is None else None,
    )


@dataclass(frozen=True)
class _Basis:
    """Where times and costs come from.

    Args:
        key: What the plan is kept under.
        sharing: What meetings cost.
        here: The network on this machine; None: nothing is measured.
        predictor: Of times of parts; None: all are measured.
        margin: What a plan must gain by these times.
        typical_error: Of the predictor.
    """

    key: str
    sharing: SharingCost
    here: NetworkOnDevice | None
    predictor: LatencyPredictor | None = None
    margin: float = LEAST_MARGIN
    typical_error: float | None = None


def _measured_basis(path: Path, measure: bool | None, device: str, threads: int) -> _Basis:
    """Without a profile."""
    if measure is False:
        raise InputError(
            "predicting needs the cost models of a device",
            where="profile",
            hint="make them with `phonebit collect` and `phonebit train-predictor`, or measure",
        )
    here = NetworkOnDevice(path, device, threads)
    return _Basis(here.plan_key, here.sharing_cost(), here)


def _basis_of(
    known: DeviceProfile,
    path: Path,
    way: Method,
    measure: bool | None,
    device: str,
    threads: int,
) -> _Basis:
    """By a profile."""
    count = threads or max(known.threads)
    key, cost = known.key(count), known.sharing_cost(way.cost_models, count)
    is_asked = way.measures or bool(measure)
    here = None
    if is_asked or (measure is None and _is_here(known, device)):
        here = _network_here(path, key, device, count, is_asked)
    if way.measures:
        return _Basis(key, cost, here)
    models = way.cost_models
    predictor = known.predictor(models, count)
    return _Basis(key, cost, here, predictor, known.margin(models), known.errors.get(models))


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
