"""Which kernels can serve a layer on a GPU, in the order in which the runtime tries them.

The C++ half: ``serves`` in ``runtime/opencl/*_layer.cpp``, and ``choose_layer`` there. Limits that
OpenCL reports only to programs (sizes of images, registers of a compiled kernel) are not known
here; what the runtime refused because of them is in the profile's ``refused``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from phonebit.errors import InputError
from phonebit.kernel_choice import KernelChoice
from phonebit.planner.predictors.kernel_table import TableLine, choices
from phonebit.planner.predictors.layer_shape import LayerShape

KERNELS: Final[dict[str, tuple[str, ...]]] = {
    "binary_conv2d": (
        "bconv2d_tiled", "bconv2d_mma", "bconv2d_image", "bgemv", "bconv2d_split", "bconv2d_byte",
        "bconv2d_accumulate", "bconv2d_lanes", "bconv2d_grouped",
    ),
    "binary_depthwise_conv2d": ("bdepthwise2d",),
    "conv2d_u8": ("conv2d_u8_planes", "conv2d_u8_direct"),
    "conv2d_f32": ("conv2d_f32_dot", "conv2d_f32_staged", "conv2d_f32"),
    "conv2d_f32_grouped": ("conv2d_f32_grouped",),
    "depthwise_conv2d_f32": ("depthwise_f32",),
    "max_pool2d": ("pool",),
    "max_pool2d_bits": ("max_pool_bits",),
    "average_pool2d": ("pool",),
    "elementwise": ("elementwise",),
    "concat": ("concat",),
    "concat_bits": ("concat_bits",),
    "pad": ("pad",),
    "reshape": ("concat",),
    "select_channels": ("select_channels",),
    "softmax": ("softmax",),
    "log_softmax": ("softmax",),
}  # fmt: skip
"""``LayerShape.family`` to the kernels that the runtime tries behind those of the tuning table."""

_MMA_FAMILIES: Final = ("ampere", "ada", "hopper", "blackwell")
_LONGEST_16_BIT: Final = 65536
_LISTS: Final = ("tuning", "refused", "refused_for_cuts")
_LOCAL_WORDS: Final = 8192
_MOST_MMA_TAPS: Final = 15


@dataclass(frozen=True)
class GpuFacts:
    """A GPU as far as it decides about kernels and work sizes.

    Args:
        name: As its driver calls it.
        vendor: As tuning tables call it.
        family: Likewise.
        driver: Its version.
        compute_units: How many work-groups run side by side, at least.
        clock_mhz: Its highest clock; 0: unknown.
        local_bytes: Local memory of a work-group.
        has_images: Whether it reads images.
        tuning: Lines of the tuning table that fit it, in force.
        refused: Choices, written out, that the runtime would not use.
        refused_for_cuts: Likewise, for parts of a layer's channels: those are programs of their
            own, with a self-test of their own.
    """

    name: str
    vendor: str
    family: str
    driver: str
    compute_units: int
    clock_mhz: int
    local_bytes: int
    has_images: bool
    tuning: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    refused_for_cuts: tuple[str, ...] = ()

    @cached_property
    def table(self) -> tuple[TableLine, ...]:
        """The tuning lines, parsed."""
        return tuple(TableLine.parse(line) for line in self.tuning)

    @cached_property
    def refused_choices(self) -> frozenset[KernelChoice]:
        """What is never chosen for whole layers and their rows."""
        return frozenset(KernelChoice.parse(text) for text in self.refused)

    @cached_property
    def refused_choices_for_cuts(self) -> frozenset[KernelChoice]:
        """What is never chosen for parts of the channels."""
        return frozenset(KernelChoice.parse(text) for text in self.refused_for_cuts)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, keys as the attributes."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTS}}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> GpuFacts:
        """The inverse.

        Raises:
            InputError: Fields are missing or unknown.
        """
        lists = {name: tuple(record.get(name, ())) for name in _LISTS}
        try:
            return cls(**{**record, **lists})
        except TypeError as error:
            raise InputError("facts about a GPU", got=str(error)) from None


def serving_choices(layer: LayerShape, gpu: GpuFacts) -> list[KernelChoice]:
    """Choices that can compute a layer, best first, whether or not the runtime refuses some.

    Args:
        layer: What is to be served.
        gpu: Where.
    """
    defaults = [KernelChoice.parse(kernel) for kernel in KERNELS[layer.family]]
    return [
        choice
        for choice in dict.fromkeys(choices(gpu.table, layer) + defaults)
        if can_serve(layer, gpu, choice)
    ]


def can_serve(layer: LayerShape, gpu: GpuFacts, choice: KernelChoice) -> bool:
    """Whether a kernel can compute a whole layer exactly."""
    parameter = dict(choice.parameters)
    if choice.kernel not in KERNELS[layer.family]:
        return False
    if layer.op == "binary_conv2d":
        return _serves_binary(layer, gpu, choice.kernel, parameter)
    tile = parameter.get("TILE_FILTERS", parameter.get("TILE_CHANNELS"))
    if tile is not None and layer.bits and tile < 8:  # work-items own whole bytes of packed bits
        return False
    if layer.family == "conv2d_u8":
        return choice.kernel == "conv2d_u8_direct" or layer.groups == 1
    if layer.family == "conv2d_f32":
        return _serves_float(layer, gpu, choice.kernel, parameter)
    return parameter.get("FUSED", 1) == 1


def reaches_padding(layer: LayerShape) -> bool:
    """Whether some window reaches over the map's edge."""
    if layer.pad_top > 0 or layer.pad_left > 0:
        return True
    last_y = (layer.out_h - 1) * layer.stride_h + (layer.kernel_h - 1) * layer.dilation_h
    last_x = (layer.out_w - 1) * layer.stride_w + (layer.kernel_w - 1) * layer.dilation_w
    return last_y >= layer.in_h or last_x >= layer.in_w


def is_dense(layer: LayerShape) -> bool:
    """Whether the window is the whole map, so that there is one output pixel."""
    return (
        layer.out_h * layer.out_w == 1
        and (layer.kernel_h, layer.kernel_w) == (layer.in_h, layer.in_w)
        and layer.dilation_h == layer.dilation_w == 1
        and not reaches_padding(layer)
    )


def _serves_binary(
    layer: LayerShape, gpu: GpuFacts, kernel: str, parameter: dict[str, int]
) -> bool:
    if kernel == "bconv2d_grouped":
        return True
    if layer.groups != 1 or (parameter.get("ACCUMULATOR") == 1 and layer.taps >= _LONGEST_16_BIT):
        return False
    if kernel == "bconv2d_mma":
        return _serves_tensor_cores(layer, gpu, parameter)
    if kernel == "bconv2d_image":
        return gpu.has_images and -(-layer.in_c // 32) % 4 == 0
    if kernel == "bconv2d_accumulate":
        return layer.thresholds
    return kernel != "bgemv" or is_dense(layer)


def _serves_tensor_cores(layer: LayerShape, gpu: GpuFacts, parameter: dict[str, int]) -> bool:
    tile = parameter["TILE_PIXELS"] * parameter["TILE_FILTERS"]
    warps, split = parameter["WARPS"], parameter["SPLIT"]
    short = max(layer.kernel_h, layer.kernel_w) <= _MOST_MMA_TAPS
    return (
        gpu.vendor == "nvidia"
        and gpu.family in _MMA_FAMILIES
        and tile <= 4096
        and warps * split <= 8
        and (split == 1 or warps * split * tile <= _LOCAL_WORDS)
        and (short or not reaches_padding(layer))
    )


def _serves_float(layer: LayerShape, gpu: GpuFacts, kernel: str, parameter: dict[str, int]) -> bool:
    if kernel == "conv2d_f32_dot" or parameter.get("FUSED", 1) == 0:
        return False
    if kernel == "conv2d_f32":
        return parameter["ARITHMETIC"] == 0
    pixels, filters = parameter["TILE_PIXELS"], parameter["TILE_FILTERS"]
    staged_words = 2 * parameter["CHUNK"] * (pixels + filters) + pixels * filters
    is_pixel = layer.kernel_h == layer.kernel_w == 1
    is_run = layer.dilation_h == layer.dilation_w == 1 and layer.kernel_w == layer.in_w
    return (
        not reaches_padding(layer) and (is_pixel or is_run) and 4 * staged_words <= gpu.local_bytes
    )
