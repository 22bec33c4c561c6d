"""CoDL's predictor: the steps of a time are computed, only the times of units are learnt.

A part's time is the sum of its kernels' (CoDL, section 5.2). A processor works in rounds: each core
takes a block of the output, and every round takes as long as one block (eq. 3):

    T_kernel = ceil(blocks / cores) * (basic units of a block) * t_basicUnit,

with t_basicUnit linear in (H, W, IC, OC). Blocks are those of our kernels: on a GPU the work-items
of a group on a compute unit, on a CPU the pixels of a tile by 64 channels on a thread. Table 1's
kernels are here, where a part has them:

- the product (T_MM): units are taps of the window. Where cores skip items without work, as those of
  PoCL do, what is computed counts, not the block; so both are terms.
- the epilogue, as T_outputTrans: units are items, and outputs by what is done to them.
- the CPU's input preparation (T_packing): once for each pixel, whatever the channels.
- preparing and finishing kernels of a GPU, which are launched by themselves.
- T_trans, where the product reads an image: its copy from the buffer.
- each launch.

Source: CoDL (MobiSys '22), section 5.2, eq. 3 and table 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from phonebit.planner.plan.execution_plan import OutputPart, Processor
from phonebit.planner.predict.cost_sum import CostSum, Numbers, columns_of, fit_cost_sum
from phonebit.planner.predict.features import Features, tile_of
from phonebit.planner.predict.kernels import (
    CHANNEL_BLOCK,
    CpuFacts,
    DeviceFacts,
    GpuFacts,
    cpu_kernel,
)
from phonebit.planner.predict.layer_shape import LayerShape

FEWEST_FOR_SIZES: Final = 30
"""Samples for t_basicUnit's weights: with fewer the sizes of layers that were not seen mislead, and
it is constant."""
READS_IMAGE: Final = "bconv2d_image"
BY: Final = " x "
"""Between a kernel and the size that its units are multiplied by."""
Steps = Counter[str]


def steps_of(
    device: DeviceFacts, threads: int, layer: LayerShape, side: Processor, part: OutputPart
) -> tuple[str, Features]:
    """The kernels of a part, and how often each step is taken."""
    if side == Processor.GPU:
        name, steps = _gpu_steps(device.gpu, layer, part)
    else:
        name, steps = _cpu_steps(device.cpu, threads, layer, part)
    outputs = layer.outputs_of(part)
    steps["epilogue steps"] = outputs * layer.steps
    steps["epilogue tensors"] = outputs * layer.step_tensors
    steps["epilogue values"] = outputs * layer.values
    steps["epilogue bits"] = outputs * layer.bits
    return name, dict(steps)


def _rounds(steps: Steps, kernel: str, units: int, layer: LayerShape, part: OutputPart) -> None:
    """A kernel's basic units that a core executes in turn, by 1, H, W, IC and OC."""
    sizes = part.rows, layer.out_w, sum(layer.operand_channels), part.channels
    steps[kernel] += units
    for letters, size in zip(("H", "W", "IC", "OC"), sizes, strict=True):
        steps[f"{kernel}{BY}{letters}"] += units * size


def _gpu_steps(gpu: GpuFacts, layer: LayerShape, part: OutputPart) -> tuple[str, Steps]:
    launches, steps = gpu.launches(layer, part), Steps()
    for launch in launches:
        steps["launches"] += 1
        items = -(-launch.groups // gpu.compute_units) * launch.group_items
        if launch.kernel != launch.choice.kernel:  # before or after the product
            _rounds(steps, launch.kernel, items, layer, part)
            continue
        _rounds(steps, "product", items * layer.word_taps, layer, part)
        pixels, filters = tile_of(launch.choice)
        busy = -(-part.rows * layer.out_w // pixels) * -(-part.channels // filters)
        steps["product without idle items"] += busy * layer.word_taps
        steps["items"] += items
        steps["busy items"] += busy
        if launch.kernel == READS_IMAGE:
            steps["launches"] += 1
            steps["bytes to an image"] += round(layer.input_bytes(part))
    return "+".join(dict.fromkeys(launch.kernel for launch in launches)), steps


def _cpu_steps(
    cpu: CpuFacts, threads: int, layer: LayerShape, part: OutputPart
) -> tuple[str, Steps]:
    steps, kernel = Steps(), cpu_kernel(layer, part, cpu, threads)
    tiles = -(-part.rows * layer.out_w // kernel.pixel_tile)
    blocks = -(-part.channels // CHANNEL_BLOCK)
    in_turn = -(-tiles * blocks // threads) * kernel.pixel_tile
    steps["launches"] = 1
    _rounds(steps, "product", in_turn * layer.word_taps, layer, part)
    steps["product without idle items"] = layer.outputs_of(part) * layer.word_taps
    steps["items"] = in_turn
    steps["busy items"] = layer.outputs_of(part)
    steps["packing"] = -(-tiles // threads) * kernel.pixel_tile * layer.word_taps
    return kernel.name, steps


def fit_steps(inputs: Sequence[Features], times: Numbers) -> CostSum:
    """What each step of a kernel costs."""
    taken = {name for steps in inputs for name, count in steps.items() if count}
    has_sizes = len(inputs) >= FEWEST_FOR_SIZES
    names = sorted(name for name in taken if has_sizes or BY not in name)
    return fit_cost_sum(columns_of(inputs, names), times, tuple((name,) for name in names))
