"""By which launches a GPU computes a part of a layer, reckoned from the kernels' headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import prod
from typing import Final

from phonebit.bnn_kernels.sources import tunables
from phonebit.errors import InputError
from phonebit.kernel_choice import KernelChoice
from phonebit.planner.plan import OutputPart
from phonebit.planner.predictors.kernel_rules import GpuFacts, serving_choices
from phonebit.planner.predictors.layer_shape import LayerShape
from phonebit.planner.predictors.work_sizes import Extent, work_sizes

_DEFINES: Final = (
    "in_h", "in_w", "in_c", "out_h", "out_w", "out_c", "kernel_h", "kernel_w", "stride_h",
    "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left", "groups",
)  # fmt: skip
_BEFORE: Final = {"conv2d_u8_planes": "split_planes"}
_BEHIND: Final = {"bconv2d_accumulate": "pack_thresholds"}
"""Kernels that work in two launches."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Args:
        kernel: The kernel file's name.
        choice: The layer's choice with its parameters.
        global_size: Work-items in three directions.
        local_size: Work-items of a group.
    """

    kernel: str
    choice: KernelChoice
    global_size: Extent
    local_size: Extent

    @cached_property
    def group_items(self) -> int:
        """Work-items of a group."""
        return prod(self.local_size)

    @cached_property
    def groups(self) -> int:
        """Work-groups."""
        return prod(
            -(-side // local) for side, local in zip(self.global_size, self.local_size, strict=True)
        )


class NoKernelError(InputError):
    """No kernel of the GPU computes such a part of a layer."""


class GpuDispatch:
    """The launches of parts on one GPU.

    Args:
        gpu: Which.
    """

    def __init__(self, gpu: GpuFacts) -> None:
        self.gpu = gpu
        self._choices = lru_cache(maxsize=None)(lambda layer: serving_choices(layer, gpu))

    def choice(self, layer: LayerShape, part: OutputPart) -> KernelChoice | None:
        """What computes a part; None: no kernel does."""
        gpu = self.gpu
        refused = gpu.refused_choices_for_cuts if is_cut(layer, part) else gpu.refused_choices
        serving = (choice for choice in self.candidates(layer, part) if choice not in refused)
        return next(serving, None)

    def candidates(self, layer: LayerShape, part: OutputPart) -> Iterator[KernelChoice]:
        """What can compute a part, best first, whether or not the runtime refuses it."""
        for choice in self._choices(layer):
            if not is_cut(layer, part) or _serves_from(choice, part.channel_begin):
                yield choice

    def launches(self, layer: LayerShape, part: OutputPart) -> tuple[Launch, ...]:
        """The launches of a part, in order.

        Args:
            layer: What is computed.
            part: Which part of it.

        Raises:
            NoKernelError: No kernel can compute the part.
        """
        choice = self.choice(layer, part)
        if choice is None:
            raise NoKernelError(
                f"no kernel serves {layer.family} on this GPU", where=self.gpu.name, got=str(part)
            )
        return tuple(_launches(layer, part, choice))


def is_cut(layer: LayerShape, part: OutputPart) -> bool:
    """Whether a part has some of the channels only: then it needs another program."""
    return (part.channel_begin, part.channel_end) != (0, layer.out_c)


def _serves_from(choice: KernelChoice, channel: int) -> bool:
    grain = _channel_grain(choice)
    return grain > 0 and channel % grain == 0


@cache
def _channel_grain(choice: KernelChoice) -> int:
    return work_sizes(choice.kernel).channel_grain(dict(choice.parameters))


def _launches(layer: LayerShape, part: OutputPart, choice: KernelChoice) -> Iterator[Launch]:
    names = _names(layer, part)
    kernel = choice.kernel
    if kernel in _BEFORE:
        yield _launch(_BEFORE[kernel], choice, names)
    if layer.op == "concat":
        for channels in layer.operand_channels:
            words = -(-channels // 32)
            yield _launch(kernel, choice, {**names, "IN_C": channels, "IN_WORDS": words})
    else:
        yield _launch(kernel, choice, names)
    if kernel in _BEHIND:
        yield _launch(_BEHIND[kernel], choice, names)


def _launch(kernel: str, choice: KernelChoice, names: Mapping[str, int]) -> Launch:
    parameters = {tunable.name: tunable.default for tunable in tunables(kernel)}
    if kernel == choice.kernel:
        parameters.update(choice.parameters)
    work, group = work_sizes(kernel).evaluate({**names, **parameters})
    return Launch(kernel, choice, work, group)


def _names(layer: LayerShape, part: OutputPart) -> dict[str, int]:
    """What ``@geometry`` lines may use; a reshape is a copy of what it writes."""
    names = {name.upper(): int(getattr(layer, name)) for name in _DEFINES}
    if layer.op == "reshape":
        names["IN_C"] = layer.out_c
    names["IN_WORDS"] = -(-names["IN_C"] // 32)
    names["OUT_WORDS"] = -(-layer.out_c // 32)
    names["WINDOW_WORDS"] = -(-layer.taps // 32)
    names["pixels"] = (part.row_end - part.row_begin) * layer.out_w
    names["channels"] = part.channel_end - part.channel_begin
    return names
