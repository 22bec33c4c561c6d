"""What the trees of Fine-Grained Co-execution look at: geometry, and how the work is dispatched."""

from __future__ import annotations

from typing import Final

from phonebit.planner.plan.execution_plan import WORD_CHANNELS, OutputPart
from phonebit.planner.predict.kernels import (
    CHANNEL_BLOCK,
    FAMILIES,
    PIXEL_TILE,
    CpuFacts,
    GpuDispatch,
    cpu_kernel,
)
from phonebit.planner.predict.layer_shape import LayerShape

GEOMETRY: Final = (
    "operations", "outputs", "rows", "width", "channels", "in_rows", "in_width", "in_channels",
    "taps", "kernel_h", "kernel_w", "stride", "groups", "input_bytes", "output_bytes",
    "weight_bytes", "steps", "step_tensors", "writes_values", "writes_bits", "first_row",
    "first_channel", "operands", "ragged_operands", "pixels",
    "input_per_operation", "output_per_operation", "weights_per_output", "weights_per_pixel",
    "pixel_rest", "channel_rest", "ragged_channels", "touched_bytes", "family",
)  # fmt: skip
"""Of a part, without any regard to who computes it and how.

Ragged operands, and so many ragged channels of the output, do not fill their last word of bits;
rests are what whole tiles of pixels, and whole blocks of channels, leave over. Touched bytes are
those of the input, of what steps read, of weights and results: caches hold so many.
"""

GPU_DISPATCH: Final = (
    "launches", "work_items", "group_items", "groups", "groups_x", "groups_y", "waves",
    "last_wave_share", "work_of_item", "padding_waste", "tile_pixels", "tile_filters",
    "vector_words", "split", "count", "kernel_operations", "words", "word_rest",
)  # fmt: skip
"""Of the launches that a GPU computes it with.

Words: of one filter's window; their rest is left over where kernels count bits of eight at a time.
"""

CPU_DISPATCH: Final = (
    "pixel_tiles", "channel_blocks", "units", "rounds", "padding_waste", "kernel_operations",
)  # fmt: skip
"""Of the units of work that a CPU's threads share.

Kernel operations, of either processor: with those on bits that only fill words.
"""

FLOAT_BYTES: Final = 4
COUNTED_WORDS: Final = 8
"""Words whose bits carry-save adders add up, before they are counted."""


def geometry_features(layer: LayerShape, part: OutputPart) -> list[float]:
    """The values of ``GEOMETRY``."""
    rows = part.row_end - part.row_begin
    pixels, channels = rows * layer.out_w, part.channel_end - part.channel_begin
    operations, outputs = layer.operations(part), layer.outputs_of(part)
    input_bytes, output_bytes = layer.input_bytes(part), layer.output_bytes(part)
    weight_bytes, step_bytes = layer.weight_bytes(part), FLOAT_BYTES * outputs * layer.step_tensors
    return [
        operations,
        outputs,
        rows,
        layer.out_w,
        channels,
        layer.in_h,
        layer.in_w,
        sum(layer.operand_channels),
        layer.taps,
        layer.kernel_h,
        layer.kernel_w,
        layer.stride_h,
        layer.groups,
        input_bytes,
        output_bytes,
        weight_bytes,
        layer.steps,
        layer.step_tensors,
        layer.values,
        layer.bits,
        part.row_begin,
        part.channel_begin,
        len(layer.operand_channels),
        sum(operand % WORD_CHANNELS > 0 for operand in layer.operand_channels),
        pixels,
        input_bytes / operations,
        output_bytes / operations,
        weight_bytes / outputs,
        weight_bytes / pixels,
        pixels % PIXEL_TILE,
        channels % CHANNEL_BLOCK,
        channels % WORD_CHANNELS,
        input_bytes + output_bytes + weight_bytes + step_bytes,
        FAMILIES.index(layer.family),
    ]


def gpu_features(layer: LayerShape, part: OutputPart, gpu: GpuDispatch) -> tuple[str, list[float]]:
    """How a GPU computes a part.

    Returns:
        The kernel that does most of the work (the last that is not only packing), and the values of
        ``GPU_DISPATCH``.

    Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
    """
    launches = gpu.launches(layer, part)
    main = next(launch for launch in launches if launch.kernel == launch.choice.kernel)
    parameter = dict(main.choice.parameters)
    items = sum(launch.groups * launch.group_items for launch in launches)
    units = gpu.gpu.compute_units
    waves = sum(-(-launch.groups // units) for launch in launches)
    outputs, words = layer.outputs_of(part), layer.word_taps // WORD_CHANNELS
    tile_pixels = parameter.get("TILE_PIXELS", 1)
    tile_filters = parameter.get("TILE_FILTERS", parameter.get("TILE_CHANNELS", 1))
    sides = [
        -(-side // local) for side, local in zip(main.global_size, main.local_size, strict=True)
    ]
    values = [
        len(launches),
        items,
        main.group_items,
        sum(launch.groups for launch in launches),
        sides[0],
        sides[1],
        waves,
        (main.groups % units or units) / units,
        layer.operations(part) / items,
        items * tile_pixels * tile_filters / outputs,
        tile_pixels,
        tile_filters,
        parameter.get("VECTOR_WORDS", 1),
        parameter.get("SPLIT", 1),
        parameter.get("COUNT", 0),
        outputs * layer.word_taps,
        words,
        words % COUNTED_WORDS,
    ]
    return main.kernel, [float(value) for value in values]


def cpu_features(
    layer: LayerShape, part: OutputPart, cpu: CpuFacts, threads: int
) -> tuple[str, list[float]]:
    """How a CPU computes a part.

    Returns:
        Its kernel, and the values of ``CPU_DISPATCH``.
    """
    kernel = cpu_kernel(layer, part, cpu)
    tile = kernel.pixel_tile
    pixels = (part.row_end - part.row_begin) * layer.out_w
    channels = part.channel_end - part.channel_begin
    tiles, blocks = -(-pixels // tile), -(-channels // CHANNEL_BLOCK)
    waste = tiles * tile * blocks * CHANNEL_BLOCK / (pixels * channels)
    rounds = -(-tiles * blocks // threads)
    units, operations = tiles * blocks, pixels * channels * kernel.window_operations
    values = [tiles, blocks, units, rounds, waste, operations]
    return kernel.name, [float(value) for value in values]
