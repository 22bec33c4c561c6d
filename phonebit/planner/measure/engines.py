"""What decides about kernels on a device, and loaded networks that layers are measured with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from phonebit.devices.loading import EngineOptions, open_engine
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner.measure.sampled_files import layer_file
from phonebit.planner.plan.execution_plan import ExecutionPlan, Processor
from phonebit.planner.predict.kernels import CpuFacts, GpuFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stages import as_plan, on_one

if TYPE_CHECKING:
    from phonebit import _runtime

PROBE: Final = LayerShape(
    op="binary_conv2d", in_h=14, in_w=14, in_c=256, out_h=14, out_w=14, out_c=64, input="bit",
    operand_channels=(256,), kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, bits=True,
    thresholds=True, weight_bits=1,
)  # fmt: skip
"""A layer whose CPU kernel tells whether there is a matrix unit, and whether lookups are fast."""


def gpu_facts(device: _runtime.OpenClDevice, tuning: str) -> GpuFacts:
    """Facts about a GPU, with the lines of a tuning table that fit it."""
    facts = GpuFacts(
        device.name,
        device.vendor,
        device.family,
        device.driver_version,
        device.compute_units,
        device.clock_mhz,
        device.local_bytes,
        bool(device.capabilities["images"]),
    )
    return facts.with_tuning(tuning)


def cpu_facts(isa: str, cores: int, probe_kernel: str) -> CpuFacts:
    """Facts about a CPU, of which the kernel of ``PROBE`` is known."""
    return CpuFacts(isa, cores, "_tiles__" in probe_kernel, "neoncnt" not in probe_kernel)


def open_measuring_engine(
    path: Path, device: str, options: EngineOptions, plan: ExecutionPlan | None = None
) -> _runtime.Network:
    """Loads a file; on both processors without a plan, all of it on the GPU.

    Layers are measured one by one in parts of the caller's choice, so no plan is missing.
    """
    if plan is None and "+" in device:
        layers = NetworkGraph.of(read_contents(path)).layers
        plan = as_plan([on_one(layer, Processor.GPU) for layer in layers], device, "user", 0.0)
    return open_engine(path, device, replace(options, plan=plan))


def open_layer(
    layer: LayerShape, open_file: Callable[[Path], _runtime.Network], seed: int = 0
) -> tuple[_runtime.Network, int]:
    """A network that holds one layer with random weights, and the layer's index."""
    contents, index = layer_file(layer, seed)
    with tempfile.TemporaryDirectory(prefix="phonebit-layer-") as folder:
        file = Path(folder) / "layer.pbit"
        file.write_bytes(file_bytes(contents))
        return open_file(file), index


def open_probe(device: str, options: EngineOptions) -> tuple[_runtime.Network, int]:
    """What ``NoiseProbe`` takes."""
    return open_layer(PROBE, lambda file: open_measuring_engine(file, device, options))
