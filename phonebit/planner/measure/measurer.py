"""Orders carried out by the engine of this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from phonebit.errors import DeviceError
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.device_facts import PROBE
from phonebit.planner.measure.measuring import measure_parts
from phonebit.planner.measure.noise_probe import NoiseProbe
from phonebit.planner.measure.orders import CollectionPlan, Measurement, Order
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.measure.sync_layers import WAYS, Way, sync_layers
from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.layer_shape import LayerShape

if TYPE_CHECKING:
    from phonebit import _runtime

    OpenEngine = Callable[[Path, int, Way], _runtime.Network]
    """Loads a file on both processors, with so many CPU threads and in this way of sharing; raises
    ``DeviceError`` where the device cannot."""


class EngineHere:
    """The engine of this machine, with the cheapest way of sharing that it has.

    Args:
        open_engine: Loads a file on both processors.
        plan: Of the collection.
        file: Where layers are written to be loaded.

    Raises:
        DeviceError: There is no way of sharing.
    """

    def __init__(self, open_engine: OpenEngine, plan: CollectionPlan, file: Path) -> None:
        self._open_engine = open_engine
        self._plan = plan
        self._file = file
        self._probes: dict[int, NoiseProbe] = {}
        self.way = self._cheapest_way()

    def measure(self, order: Order) -> Measurement:
        """What the order asks for.

        Raises:
            DeviceError: The device cannot.
        """
        engine, index = self._load(order.layer, order.threads, self.way)
        measures = [
            partial(measure_parts, engine, index, cpu, gpu, repeats=1) for cpu, gpu in order.pairs
        ]
        if order.threads not in self._probes:
            self._probes[order.threads] = NoiseProbe(*self._load(PROBE, order.threads, self.way))
        probe = self._probes[order.threads]
        times, probe_times = probe.measure_in_turns(order.processors, measures, order.turns)
        choices = tuple(_choice(engine, index, gpu) for _, gpu in order.pairs)
        return Measurement(self.way, tuple(times), choices, probe_times)

    def _cheapest_way(self) -> Way:
        refusal: DeviceError | None = None
        for way in WAYS:
            try:
                self._load(next(sync_layers()), self._plan.threads[0], way)
            except DeviceError as error:
                refusal = error
            else:
                return way
        raise DeviceError(f"the processors cannot work together: {refusal}")

    def _load(self, layer: LayerShape, threads: int, way: Way) -> tuple[_runtime.Network, int]:
        contents, index = layer_file(layer, self._plan.seed)
        # The runtime maps the file: one that is in use is replaced, never changed.
        self._file.unlink(missing_ok=True)
        self._file.write_bytes(file_bytes(contents))
        return self._open_engine(self._file, threads, way), index


def _choice(engine: _runtime.Network, index: int, gpu: OutputPart | None) -> str:
    launches = [] if gpu is None else engine.dispatch(index, gpu)
    return str(launches[-1]["choice"]) if launches else "none"
