"""Orders carried out: by the engine here, or by whoever else fulfils `Measurer`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from phonebit.errors import DeviceError
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.device_facts import PROBE
from phonebit.planner.measure.measuring import (
    LayerTimes,
    MeasuringEngine,
    dispatch_of,
    measure_parts,
)
from phonebit.planner.measure.noise_probe import NoiseProbe, Times
from phonebit.planner.measure.orders import CollectionPlan, Order
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.measure.sync_layers import WAYS, Way, sync_layers
from phonebit.planner.predict.layer_shape import LayerShape


@dataclass(frozen=True)
class Measurement:
    """What carrying out an order found.

    Args:
        way: How the processors shared.
        times: One for each of the order's pairs.
        launches: Likewise; none where the GPU has no part.
        probe: What the probe took meanwhile.
    """

    way: Way
    times: tuple[LayerTimes, ...]
    launches: tuple[tuple[dict[str, Any], ...], ...]
    probe: Times


class Measurer(Protocol):
    """Carries out orders."""

    def way(self) -> Way:
        """How the processors share: the cheapest way that the device has.

        Raises:
            DeviceError: There is none.
        """

    def measure(self, order: Order, way: Way) -> Measurement | None:
        """What the order asks for.

        Args:
            order: One of the collection's.
            way: How the processors shall share.

        Returns:
            None: It has not been carried out yet.

        Raises:
            DeviceError: The device cannot.
        """


class OpenEngine(Protocol):
    """Loads a file on both processors."""

    def __call__(self, path: Path, threads: int, way: Way) -> MeasuringEngine:
        """The engine of a network on "gpu+cpu".

        Args:
            path: The file.
            threads: CPU threads.
            way: How the processors share.

        Raises:
            DeviceError: The device cannot run it, or not in this way.
        """


class EngineHere:
    """The engine of this machine.

    Args:
        open_engine: Loads a file on both processors.
        plan: Of the collection.
        file: Where layers are written to be loaded.
    """

    def __init__(self, open_engine: OpenEngine, plan: CollectionPlan, file: Path) -> None:
        self._open_engine = open_engine
        self._plan = plan
        self._file = file
        self._probes: dict[int, NoiseProbe] = {}

    def way(self) -> Way:
        """See `Measurer`."""
        refusal: DeviceError | None = None
        for way in WAYS:
            try:
                self._load(next(sync_layers()), self._plan.threads[0], way)
            except DeviceError as error:
                refusal = error
            else:
                return way
        raise DeviceError(f"the processors cannot work together: {refusal}")

    def measure(self, order: Order, way: Way) -> Measurement:
        """See `Measurer`."""
        engine, index = self._load(order.layer, order.threads, way)
        measures = [
            partial(measure_parts, engine, index, cpu, gpu, repeats=1) for cpu, gpu in order.pairs
        ]
        probe = self._probe(order.threads, way)
        times, probe_times = probe.measure_in_turns(order.processors, measures, order.turns)
        launches = (
            () if gpu is None else dispatch_of(engine, index, gpu) for _, gpu in order.pairs
        )
        return Measurement(way, tuple(times), tuple(map(tuple, launches)), probe_times)

    def _probe(self, threads: int, way: Way) -> NoiseProbe:
        if threads not in self._probes:
            self._probes[threads] = NoiseProbe(*self._load(PROBE, threads, way))
        return self._probes[threads]

    def _load(self, layer: LayerShape, threads: int, way: Way) -> tuple[MeasuringEngine, int]:
        contents, index = layer_file(layer, self._plan.seed)
        # The runtime maps the file: one that is in use is replaced, never changed.
        self._file.unlink(missing_ok=True)
        self._file.write_bytes(file_bytes(contents))
        return self._open_engine(self._file, threads, way), index
