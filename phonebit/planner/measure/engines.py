"""Loaded networks that layers are measured with."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from phonebit.devices.loading import EngineOptions, open_engine
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.device_facts import PROBE
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stages import as_plan, on_one

if TYPE_CHECKING:
    from phonebit import _runtime


def open_measuring_engine(path: Path, device: str, options: EngineOptions) -> _runtime.Network:
    """Loads a file; on both processors with a plan of no importance, all of it on the GPU.

    Layers are measured one by one in parts of the caller's choice, so no plan is missing.

    Args:
        path: The file.
        device: Where, as ``Network.load`` takes it.
        options: How; its plan is not used.

    Raises:
        As ``phonebit.devices.loading.open_engine``.
    """
    plan = None
    if "+" in device:
        layers = NetworkGraph.of(read_contents(path)).layers
        plan = as_plan([on_one(layer, Processor.GPU) for layer in layers], device, "user", 0.0)
    return open_engine(path, device, replace(options, plan=plan))


def open_probe(device: str, options: EngineOptions) -> tuple[_runtime.Network, int]:
    """What ``NoiseProbe`` takes: a network that holds its layer, and the layer's index.

    Args:
        device: Both processors, as ``Network.load`` takes them.
        options: How the networks run that are measured.

    Raises:
        As ``phonebit.devices.loading.open_engine``.
    """
    contents, index = layer_file(PROBE)
    with tempfile.TemporaryDirectory(prefix="phonebit-probe-") as folder:
        file = Path(folder) / "probe.pbit"
        file.write_bytes(file_bytes(contents))
        return open_measuring_engine(file, device, options), index
