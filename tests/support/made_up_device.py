"""A device whose times follow known laws: what predictors must find out from samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phonebit.errors import DeviceError
from phonebit.format.reader import read_contents
from phonebit.planner import OutputPart, Processor
from phonebit.planner.measure.collect import CollectionReport, EngineHere, carry_out
from phonebit.planner.measure.orders import CollectionPlan, Way
from phonebit.planner.predict.kernels import (
    CHANNEL_BLOCK,
    CpuFacts,
    DeviceFacts,
    GpuFacts,
    cpu_kernel,
)
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import Samples, read_samples

TUNING = (
    "binary_conv2d * * * * bconv2d_tiled TILE_PIXELS=2 TILE_FILTERS=16 GROUP_SIZE=64",
    "binary_conv2d small * * * bconv2d_split TILE_FILTERS=1 GROUP_SIZE=64",
    "binary_conv2d dense * * * bgemv",
    "conv2d_u8 * * * * conv2d_u8_planes",
    "conv2d_f32 * * * * conv2d_f32",
)
CONTEXT = {"cpu": "A CPU", "cores": 2, "commit": "abc", "date": "2026-01-01"}
"""What results say of their machine."""
FACTS = DeviceFacts(
    {1: "made-up GPU | driver 1 | avx512 | 1 thread", 2: "made-up GPU | driver 1 | avx512 | 2"},
    GpuFacts("made-up GPU", "maker", "first", "1", 8, 1000, 32768, True, TUNING),
    CpuFacts("avx512", 2),
)
Law = Callable[[LayerShape, Processor, OutputPart, int], float]
SYNC_US, US_PER_BYTE = 7.0, 0.001
LAUNCH_US, PREPARATION_US, PACKING_US = 4.0, 0.002, 1e-3


def proportional(layer: LayerShape, _side: Processor, part: OutputPart, _threads: int) -> float:
    """µLayer's world: a power of the operations of the whole layer, and the part's share of it."""
    share = layer.operations(part) / layer.operations(layer.whole)
    return 0.02 * float(layer.operations(layer.whole)) ** 0.8 * share


def stepped(layer: LayerShape, side: Processor, part: OutputPart, threads: int) -> float:
    """CoDL's world: launches, and rounds of blocks whose unit is linear in the sizes."""
    sizes = 1, part.rows, layer.out_w, sum(layer.operand_channels), part.channels
    weights = (1e-4, 1e-7, 2e-7, 3e-8, 1e-8)
    unit_us = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
    if side == Processor.CPU:
        kernel = cpu_kernel(layer, part, FACTS.cpu, threads)
        tiles = -(-part.rows * layer.out_w // kernel.pixel_tile)
        blocks = tiles * -(-part.channels // CHANNEL_BLOCK)
        packed, products = (kernel.pixel_tile * -(-of // threads) for of in (tiles, blocks))
        return 1.5 + layer.word_taps * (PACKING_US * packed + unit_us * products)
    us = 0.0
    for launch in FACTS.gpu.launches(layer, part):
        items = -(-launch.groups // FACTS.gpu.compute_units) * launch.group_items
        is_product = launch.kernel == launch.choice.kernel
        us += LAUNCH_US + items * (layer.word_taps * unit_us if is_product else PREPARATION_US)
    return us


def spiked(layer: LayerShape, side: Processor, part: OutputPart, threads: int) -> float:
    """Fine-Grained's world: kernels of unequal speed, and a cost for each group and launch."""
    if side == Processor.CPU:
        return 2.0 + layer.operations(part) * 3e-4 / threads
    launches = FACTS.gpu.launches(layer, part)
    speed = {"bconv2d_split": 4.0, "bconv2d_tiled": 1.0, "bgemv": 0.5}.get(launches[0].kernel, 2.0)
    waves = sum(-(-launch.groups // FACTS.gpu.compute_units) for launch in launches)
    items = sum(launch.group_items for launch in launches)
    return 5.0 * len(launches) + speed * waves * (1.0 + 0.002 * items * layer.taps**0.5)


@dataclass
class MadeUpEngine:
    """A file on the device: what the runtime offers for measuring, and ``plan_key``."""

    path: Path
    threads: int
    law: Law
    way: Way

    def __post_init__(self) -> None:
        contents = read_contents(self.path)
        self.shapes = [LayerShape.of(contents, index) for index in range(len(contents.ops))]

    @property
    def plan_key(self) -> str:
        return FACTS.keys[self.threads]

    def measure_layer(
        self,
        index: int,
        cpu_part: OutputPart | None,
        gpu_part: OutputPart | None,
        repeats: int = 10,
    ) -> Mapping[str, float]:
        assert repeats > 0
        cpu, gpu = cpu_part, gpu_part
        layer = self.shapes[index]
        times = {Processor.CPU: 0.0, Processor.GPU: 0.0}
        for side, sides in ((Processor.CPU, cpu), (Processor.GPU, gpu)):
            if sides is not None:
                part = OutputPart(*sides)
                computed = part.whole_words(layer.out_c) if side == Processor.CPU else part
                times[side] = self.law(layer, side, computed, self.threads)
        shared = 0.0
        if cpu is not None and gpu is not None:
            shared = SYNC_US * (1 if self.way.synchronization == "polling" else 10)
            if self.way.sharing != "svm":
                shared += US_PER_BYTE * layer.output_bytes(layer.whole)
        total = max(times.values()) + shared
        return {"total_us": total, "cpu_us": times[Processor.CPU], "gpu_us": times[Processor.GPU]}

    def dispatch(self, index: int, gpu_part: OutputPart) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "kernel": launch.kernel,
                "choice": " ".join(
                    [launch.choice.kernel, *(f"{n}={v}" for n, v in launch.choice.parameters)]
                ),
                "global": launch.global_size,
                "local": launch.local_size,
            }
            for launch in FACTS.gpu.launches(self.shapes[index], OutputPart(*gpu_part))
        ]


@dataclass
class MadeUpDevice:
    """Opens files, counts how often, and fails on demand.

    Args:
        law: Times of parts.
        fails_from: The call from which on the machine is switched off.
        ways: How its processors can share.
    """

    law: Law = spiked
    fails_from: int = 1 << 30
    ways: tuple[Way, ...] = (Way("svm", "polling"), Way("copy", "events"))
    opened: int = 0

    def __call__(self, path: Path, threads: int, way: Way) -> MadeUpEngine:
        if way not in self.ways:
            raise DeviceError(f"has no {way.sharing} with {way.synchronization}")
        self.opened += 1
        if self.opened >= self.fails_from:
            raise KeyboardInterrupt
        return MadeUpEngine(path, threads, self.law, way)


def collect_here(
    path: Path, device: DeviceFacts, plan: CollectionPlan, open_engine: MadeUpDevice
) -> CollectionReport:
    """A collection by an engine as ``phonebit.collect`` takes it."""
    here = EngineHere(open_engine, plan)
    return carry_out(path, device, plan, here.way, here.measure)


def made_up_samples(path: Path, law: Law, layers: int, threads: tuple[int, ...] = (1,)) -> Samples:
    """Samples of random layers, by the collector itself."""
    plan = CollectionPlan(layers, threads, turns=1, rounds=1)
    collect_here(path, FACTS, plan, MadeUpDevice(law))
    return read_samples(path)
