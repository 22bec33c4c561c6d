"""The engine that commands measure layers with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phonebit import _runtime
    from phonebit.loading import EngineOptions


def open_measuring_engine(path: Path, device: str, options: EngineOptions) -> _runtime.Network:
    """Loads a file; on both processors with a plan of no importance, all of it on the GPU.

    Layers are measured one by one in parts of the caller's choice, so no plan is missing.

    Args:
        path: the file.
        device: where, as ``Network.load`` takes it.
        options: how; its plan is not used.

    Raises:
        As ``phonebit.loading.open_engine``.
    """
    from phonebit.format.reader import read_contents
    from phonebit.loading import open_engine
    from phonebit.planner.network_graph import NetworkGraph
    from phonebit.planner.plan import Processor
    from phonebit.planner.stages import as_plan, on_one

    plan = None
    if "+" in device:
        layers = NetworkGraph.of(read_contents(path)).layers
        plan = as_plan([on_one(layer, Processor.GPU) for layer in layers], device, "user", 0.0)
    return open_engine(path, device, replace(options, plan=plan))
