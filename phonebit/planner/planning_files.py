"""Planning a file as one call: what ``phonebit plan`` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from phonebit.devices.gpus import gpu_device
from phonebit.devices.loading import Precision
from phonebit.errors import DeviceError, InputError
from phonebit.format.reader import read_contents
from phonebit.format.writer import PBIT_FILE, file_bytes
from phonebit.output_files import check_output, write_output
from phonebit.planner.json_records import to_record
from phonebit.planner.measure.collect import Progress
from phonebit.planner.measure.engines import NetworkOnDevice
from phonebit.planner.measure.in_network import (
    CorrectedTimes,
    Correction,
    PassCheck,
    plan_in_network,
)
from phonebit.planner.plan.stored_plans import with_plan
from phonebit.planner.predict.profile import MIN_MARGIN, DeviceProfile, find_profile
from phonebit.planner.search.explain import LayerChoice, explain
from phonebit.planner.search.methods import method_named
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
        check: The prediction and the inference that was measured for it; None where nothing was.
        typical_error: Of the predictions, as a share; None where times were measured, or it is not
            known.
        precision: In which times were measured.
    """

    file: Path
    output: Path
    planned: Planned
    layers: list[LayerChoice]
    measurements: int
    check: PassCheck | None
    typical_error: float | None
    precision: Precision = "exact"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form; times in microseconds."""
        planned = self.planned
        return {
            "file": str(self.file),
            "output": str(self.output),
            "device": planned.plan.device,
            "method": planned.plan.method,
            "precision": self.precision,
            "home": planned.home.name.lower(),
            "home_us": planned.home_us,
            "plan_us": planned.total_us,
            "split": planned.is_split,
            "measurements": self.measurements,
            "check": None if self.check is None else self.check.to_dict(),
            "typical_error": self.typical_error,
            "layers": [to_record(choice) for choice in self.layers],
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
    precision: Precision = "exact",
    replace_any: bool = False,
    progress: Progress = lambda _text: None,
) -> PlanReport:
    """Plans a network for a CPU and a GPU that work on one image together.

    The plan is kept in the file, next to plans for other devices. In the first inferences the
    runtime compares it with either processor alone and keeps the fastest.

    Args:
        path: The network, a ``.pbit`` file.
        profile: Cost models of the device: a file, or the key of a device that was profiled here.
            None: whole layers are measured on this device, and parts taken to be in proportion.
        output: Where the network with its plan goes; None: to ``path``.
        method: "search" measures every split; the others predict.
        measure: Whether what is predicted to be best is measured, alone and in whole inferences.
            None: without a profile, or where its device is this one.
        device: Where to measure, as "gpu:1+cpu".
        threads: CPU threads; 0: the most that were profiled, without a profile one per core.
        precision: In which layers and inferences are measured, as of ``Network.load``. A plan is
            used in every precision.
        replace_any: Also replace an output that is no ``.pbit`` file.
        progress: Called with the name of each layer that is measured.

    Raises:
        InputError: There is no such profile, it does not know what is asked for, nothing may be
            measured without one or in another precision than "exact", the network has no layer
            that can be split, or the output is the profile or a file of another kind.
        ModelFormatError: The file is no sound ``.pbit`` file.
        DeviceError: Something is to be measured and this is not the profile's device.
        OSError: A file cannot be read or written.
    """
    path, output = Path(path), Path(path if output is None else output)
    inputs = [] if profile is None else [Path(profile)]
    check_output(output, PBIT_FILE, inputs, replace_any)
    way = method_named(method)
    models, measures = way.cost_models, not way.cost_models
    if measure is False and precision != "exact":
        raise InputError(
            "cost models predict exact precision only",
            where="precision",
            got=precision,
            hint="measure, or plan in exact precision",
        )
    if profile is not None:
        known = find_profile(profile)
        count = threads or max(known.threads)
        key, sharing = known.key(count), known.sharing_cost(models, count)
        margin, typical_error = known.margin(models), known.errors.get(models)
        here = _network_here(
            known, path, measures or precision != "exact" or measure, device, count, precision
        )
        predictor = None if measures else known.predictor(models, count)
    elif measure is False:
        raise InputError(
            "predicting needs the cost models of a device",
            where="profile",
            hint="make them with `phonebit collect` and `phonebit train-predictor`, or measure",
        )
    else:
        here = NetworkOnDevice(path, device, threads, precision)
        key, sharing, margin = here.plan_key, here.sharing_cost(), MIN_MARGIN
        predictor = typical_error = None
    contents = read_contents(path)
    shapes = [layer.geometry for layer in NetworkGraph.of(contents).layers]
    measured = None if here is None else here.part_times(shapes, progress)
    times: PartTimes
    if predictor is not None:
        times = PredictedTimes(shapes, predictor)
    else:
        assert measured is not None
        times = measured if measures else ProportionalTimes(shapes, measured)

    def make(correction: Correction) -> Planned:
        inside = CorrectedTimes(times, correction)
        again = None if measures or not measured else CorrectedTimes(measured, correction)
        cost = sharing.scaled(correction.synchronization)
        return plan_network(contents, key, way, inside, cost, margin, again)

    check = None
    if here is None or measured is None:
        planned = make(Correction())
    else:
        planned, check = plan_in_network(make, measured, here.passes)
    content = file_bytes(with_plan(contents, planned.plan))
    write_output(output, content, PBIT_FILE, inputs, replace_any)
    return PlanReport(
        path,
        output,
        planned,
        explain(planned, is_predicted=predictor is not None),
        0 if measured is None else len(measured.known),
        check,
        typical_error if measured is None else None,
        precision,
    )


def _network_here(
    profile: DeviceProfile,
    path: Path,
    measure: bool | None,
    device: str,
    threads: int,
    precision: Precision,
) -> NetworkOnDevice | None:
    """A network to measure, if that is asked for, or where nothing is, this is the device."""
    if measure is False:
        return None
    try:
        gpu = profile.device.gpu.name
        if measure is None and gpu_device(device.partition("+")[0]).name != gpu:
            return None  # what a plan is kept under decides, but takes longer
        here = NetworkOnDevice(path, device, threads, precision)
        if here.plan_key == profile.key(threads):
            return here
        raise DeviceError(
            "the profile is of another device, driver or number of threads",
            where="--cost-model",
            expected=here.plan_key,
            got=profile.key(threads),
            hint="measure on that device, or plan without measuring",
        )
    except DeviceError:
        if measure:
            raise
        return None
