"""What the trees of Fine-Grained Co-execution look at: geometry, and how the work is dispatched.

Cost models keep the names of the features that they look at, so one that is not computed any more
is missed when a model asks for it.
"""

from __future__ import annotations

from typing import Final

from phonebit.devices.kernel_choice import KernelChoice
from phonebit.planner.plan.execution_plan import WORD_CHANNELS, OutputPart, Processor
from phonebit.planner.predict.kernels import (
    CHANNEL_BLOCK,
    FAMILIES,
    PIXEL_TILE,
    CpuFacts,
    DeviceFacts,
    GpuFacts,
    cpu_kernel,
)
from phonebit.planner.predict.layer_shape import LayerShape

Features = dict[str, float]

FLOAT_BYTES: Final = 4
COUNTED_WORDS: Final = 8
"""Words whose bits carry-save adders add up, before they are counted."""


def geometry_features(layer: LayerShape, part: OutputPart) -> Features:
    """Of a part, without any regard to who computes it and how.

    Ragged operands, and so many ragged channels of the output, do not fill their last word of bits;
    rests are what whole tiles of pixels, and whole blocks of channels, leave over. Touched bytes
    are those of the input, of what steps read, of weights and results: caches hold so many.
    """
    operations, outputs = layer.operations(part), layer.outputs_of(part)
    input_bytes, output_bytes = layer.input_bytes(part), layer.output_bytes(part)
    weight_bytes, step_bytes = layer.weight_bytes(part), FLOAT_BYTES * outputs * layer.step_tensors
    pixels = part.rows * layer.out_w
    return {
        "operations": operations,
        "outputs": outputs,
        "rows": part.rows,
        "width": layer.out_w,
        "channels": part.channels,
        "in_rows": layer.in_h,
        "in_width": layer.in_w,
        "in_channels": sum(layer.operand_channels),
        "taps": layer.taps,
        "kernel_h": layer.kernel_h,
        "kernel_w": layer.kernel_w,
        "stride": layer.stride_h,
        "groups": layer.groups,
        "input_bytes": input_bytes,
        "output_bytes": output_bytes,
        "weight_bytes": weight_bytes,
        "steps": layer.steps,
        "step_tensors": layer.step_tensors,
        "writes_values": layer.values,
        "writes_bits": layer.bits,
        "first_row": part.row_begin,
        "first_channel": part.channel_begin,
        "operands": len(layer.operand_channels),
        "ragged_operands": sum(count % WORD_CHANNELS > 0 for count in layer.operand_channels),
        "pixels": pixels,
        "input_per_operation": input_bytes / operations,
        "output_per_operation": output_bytes / operations,
        "weights_per_output": weight_bytes / outputs,
        "weights_per_pixel": weight_bytes / pixels,
        "pixel_rest": pixels % PIXEL_TILE,
        "channel_rest": part.channels % CHANNEL_BLOCK,
        "ragged_channels": part.channels % WORD_CHANNELS,
        "touched_bytes": input_bytes + output_bytes + weight_bytes + step_bytes,
        "family": FAMILIES.index(layer.family),
    }


def gpu_features(layer: LayerShape, part: OutputPart, gpu: GpuFacts) -> tuple[str, Features]:
    """How a GPU computes a part.

    Words are those of one filter's window; their rest is left over where kernels count bits of
    eight at a time. Kernel operations are those with bits that only fill words.

    Returns:
        The kernel that does most of the work (the last that is not only packing), and the features.

    Source: Fine-Grained Co-execution (EPEW '25), section 3.2.
    """
    launches, compute_units = gpu.launches(layer, part), gpu.compute_units
    main = next(launch for launch in launches if launch.kernel == launch.choice.kernel)
    parameter = dict(main.choice.parameters)
    items = sum(launch.groups * launch.group_items for launch in launches)
    outputs, words = layer.outputs_of(part), layer.word_taps // WORD_CHANNELS
    tile_pixels, tile_filters = tile_of(main.choice)
    columns, rows = (-(-main.global_size[axis] // main.local_size[axis]) for axis in (0, 1))
    return main.kernel, {
        "launches": len(launches),
        "work_items": items,
        "group_items": main.group_items,
        "groups": sum(launch.groups for launch in launches),
        "groups_x": columns,
        "groups_y": rows,
        "waves": sum(-(-launch.groups // compute_units) for launch in launches),
        "last_wave_share": (main.groups % compute_units or compute_units) / compute_units,
        "work_of_item": layer.operations(part) / items,
        "padding_waste": items * tile_pixels * tile_filters / outputs,
        "tile_pixels": tile_pixels,
        "tile_filters": tile_filters,
        "vector_words": parameter.get("VECTOR_WORDS", 1),
        "split": parameter.get("SPLIT", 1),
        "count": parameter.get("COUNT", 0),
        "kernel_operations": outputs * layer.word_taps,
        "words": words,
        "word_rest": words % COUNTED_WORDS,
    }


def tile_of(choice: KernelChoice) -> tuple[int, int]:
    """Output pixels and channels of a work-item."""
    parameter = dict(choice.parameters)
    filters = parameter.get("TILE_FILTERS", parameter.get("TILE_CHANNELS", 1))
    return parameter.get("TILE_PIXELS", 1), filters


def cpu_features(
    layer: LayerShape, part: OutputPart, cpu: CpuFacts, threads: int
) -> tuple[str, Features]:
    """How a CPU computes a part: its kernel, and features of the units that its threads share."""
    kernel = cpu_kernel(layer, part, cpu, threads)
    pixels, channels = part.rows * layer.out_w, part.channels
    tiles, blocks = -(-pixels // kernel.pixel_tile), -(-channels // CHANNEL_BLOCK)
    units = tiles * blocks
    return kernel.name, {
        "pixel_tiles": tiles,
        "channel_blocks": blocks,
        "units": units,
        "rounds": -(-units // threads),
        "padding_waste": units * kernel.pixel_tile * CHANNEL_BLOCK / (pixels * channels),
        "kernel_operations": pixels * channels * kernel.window_operations,
    }


def features_of(
    device: DeviceFacts, threads: int, layer: LayerShape, side: Processor, part: OutputPart
) -> tuple[str, Features]:
    """The kernel of a part, and all features."""
    if side == Processor.GPU:
        kernel, dispatch = gpu_features(layer, part, device.gpu)
    else:
        kernel, dispatch = cpu_features(layer, part, device.cpu, threads)
    return kernel, geometry_features(layer, part) | dispatch
