"""Modelled time of every layer of a network on a phone's GPU and on its cores, one thread."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from phonebit.devices.kernel_presets import Kernels
from phonebit.errors import InputError
from phonebit.estimate.cpu import cpu_work
from phonebit.estimate.gpu import item_work
from phonebit.estimate.phones import CpuCore, PhoneGpu, PhoneModel
from phonebit.format.reader import read_contents
from phonebit.planner.predict.kernels import GpuFacts, Launch, NoKernelError
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.search.network_graph import GraphLayer, NetworkGraph

RANGE: Final = (0.5, 2.0)
"""What a measurement may be of a modelled time: docs/estimate.md compares with published ones."""
BASIS: Final = "modelled, not measured"
ISSUE_CYCLES: Final = {"qualcomm": 2, "arm": 4}
"""Cycles from one instruction of a wave to its next."""
WAIT_CYCLES: Final = 250
"""Until what is loaded is there: a guess between the caches and memory."""
LOADS_A_WAIT: Final = 8
FLOAT_BITS: Final = 32

Bound = Literal["ALU", "memory", "latency", "launch", "cycles"]
Precision = Literal["exact", "f16"]
"""Of ``Network.load`` those in which a CPU computes as in exact precision."""


@dataclass(frozen=True)
class LayerTime:
    """A layer on a processor.

    Args:
        name: Its own, as in the file.
        kernel: Kernels and their main parameters.
        work: Instructions on a GPU, cycles on a core; None: no counts of this kernel, so that only
            bytes and launches are modelled.
        bytes: Read and written, weights among them.
        bound: What takes most of the time.
    """

    name: str
    kernel: str
    work: float | None
    bytes: float
    ms: float
    bound: Bound


@dataclass(frozen=True)
class ProcessorTime:
    """A network on a processor.

    Args:
        kind: What ``LayerTime.work`` counts.
    """

    processor: str
    kind: Literal["instructions", "cycles"]
    layers: tuple[LayerTime, ...]

    @property
    def total_ms(self) -> float:
        """Of all layers."""
        return sum(layer.ms for layer in self.layers)

    @property
    def range_ms(self) -> tuple[float, float]:
        """Where a measurement is expected."""
        low, high = RANGE
        return low * self.total_ms, high * self.total_ms

    @property
    def uncounted(self) -> int:
        """Layers with a kernel of which nothing is known but its bytes."""
        return sum(layer.work is None for layer in self.layers)


@dataclass(frozen=True)
class Estimate:
    """A network on a phone."""

    file: Path
    phone: PhoneModel
    processors: tuple[ProcessorTime, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "file": str(self.file),
            "phone": self.phone.name,
            "basis": BASIS,
            "processors": [
                {"processor": each.processor, "ms": each.total_ms, "range_ms": each.range_ms,
                 "counts": each.kind, "layers": [asdict(layer) for layer in each.layers]}
                for each in self.processors
            ],
        }  # fmt: skip


def estimate(
    path: str | Path,
    phone: PhoneModel,
    kernels: Kernels = "tuned",
    precision: Precision = "exact",
) -> Estimate:
    """Models the time of a network on a phone's GPU, if it has one, and each kind of its cores.

    Args:
        path: A ``.pbit`` file.
        phone: As of ``phone_named``.
        kernels: Of the GPU, as of ``Network.load``.
        precision: Of the GPU: with "f16" it has the kernels of that precision, and halves between
            layers. What is known of a kernel's instructions is by its parameters alone.

    Raises:
        InputError: The precision has no model.
        ModelFormatError: The file is no sound ``.pbit`` file.
        OSError: It cannot be read.
    """
    if precision not in get_args(Precision):
        expected = ", ".join(get_args(Precision))
        raise InputError("precision without a model", expected=expected, got=repr(precision))
    graph = NetworkGraph.of(read_contents(path))
    found = []
    if phone.gpu is not None:
        facts = phone.gpu.facts(kernels)
        is_exact = precision == "exact"
        times = [
            _on_gpu(
                layer, phone.gpu, facts, phone.bandwidth_gbs,
                None if is_exact else _halved_bytes(graph, layer),
            )
            for layer in graph.layers
        ]  # fmt: skip
        found.append(ProcessorTime(phone.gpu.name, "instructions", tuple(times)))
    for core in phone.cpu:
        times = [
            _on_core(layer.name, layer.geometry, core, phone.bandwidth_gbs)
            for layer in graph.layers
        ]
        title = f"one core {core.core} at {core.clock_mhz / 1000:.2f} GHz"
        found.append(ProcessorTime(title, "cycles", tuple(times)))
    return Estimate(Path(path), phone, tuple(found))


def _halved_bytes(graph: NetworkGraph, layer: GraphLayer) -> float:
    """What a layer's tensors between layers take less as halves than as floats."""
    ends = {*graph.inputs, *graph.outputs}
    tensors = (graph.tensors[of] for of in (*layer.reads, *layer.outputs) if of not in ends)
    return sum(of.part_bytes(of.whole) / 2 for of in tensors if of.element_bits == FLOAT_BITS)


def _on_gpu(
    of: GraphLayer, gpu: PhoneGpu, facts: GpuFacts, bandwidth_gbs: float, halved: float | None
) -> LayerTime:
    """The longest of arithmetic, memory, and one wave from its begin to its end; and launches.

    Groups fill the units in rounds: a last round of few groups takes as long as a full one.
    ``halved`` bytes are saved below exact precision; None: in exact precision.
    """
    layer = of.geometry
    moved = _bytes(layer) - (halved or 0.0)
    try:
        launches = facts.launches(layer, layer.whole, is_exact=halved is None)
    except NoKernelError:
        launches = ()
    alu_cycles = wave_cycles = instructions = 0.0
    known = bool(launches)
    for launch in launches:
        item = item_work(layer, launch, gpu.code)
        if item is None:
            known = False
            continue
        rounds = -(-launch.groups // gpu.units)
        alu_cycles += rounds * launch.group_items * item.cycles / gpu.lanes
        wave_cycles += item.instructions * ISSUE_CYCLES.get(gpu.vendor, 4)
        wave_cycles += item.loads / LOADS_A_WAIT * WAIT_CYCLES
        instructions += launch.groups * launch.group_items * item.instructions
    times: dict[Bound, float] = {
        "ALU": alu_cycles / gpu.clock_mhz / 1e3,
        "memory": moved / bandwidth_gbs / 1e6,
        "latency": wave_cycles / gpu.clock_mhz / 1e3,
    }
    busy = max(times.values())
    launch_ms = max(len(launches), 1) * gpu.launch_us / 1e3
    bound: Bound = "launch" if launch_ms > busy else max(times, key=lambda key: times[key])
    text = ", ".join(dict.fromkeys(_launch_text(launch) for launch in launches)) or "none"
    work = instructions if known else None
    ms = (busy + launch_ms) * gpu.slowdown
    return LayerTime(of.name, text, work, moved, ms, bound)


def _launch_text(launch: Launch) -> str:
    """``bconv2d_tiled 2x16``."""
    if launch.kernel != launch.choice.kernel:
        return launch.kernel
    values = dict(launch.choice.parameters)
    tile = "x".join(str(values[name]) for name in ("TILE_PIXELS", "TILE_FILTERS") if name in values)
    return f"{launch.kernel} {tile}".strip()


def _on_core(name: str, layer: LayerShape, core: CpuCore, bandwidth_gbs: float) -> LayerTime:
    """Cycles at the core's clock with its slowdown, or the bytes at the memory's rate."""
    work = cpu_work(layer, core.core)
    cycles_ms = (work.cycles or 0.0) * core.slowdown / core.clock_mhz / 1e3
    memory_ms = _bytes(layer) / bandwidth_gbs / 1e6
    bound: Bound = "cycles" if cycles_ms >= memory_ms else "memory"
    return LayerTime(
        name, work.kernel, work.cycles, _bytes(layer), max(cycles_ms, memory_ms), bound
    )


def _bytes(layer: LayerShape) -> float:
    whole = layer.whole
    added = 4.0 * layer.step_tensors * layer.outputs_of(whole)
    return sum(
        (layer.input_bytes(whole), layer.output_bytes(whole), layer.weight_bytes(whole), added)
    )
