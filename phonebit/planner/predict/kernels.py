"""Which kernels compute a part of a layer, and by which launches: asked of the runtime.

The rules are those that the runtime itself follows, in C++ (``cpu_backend/select.h``,
``runtime/gpu/include/gpu/kernel_selection.h``), and need no device: processors are described by
facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from typing import Any, Final, NamedTuple

from phonebit.compiled import load_runtime
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import OutputPart
from phonebit.planner.predict.layer_shape import LayerShape

_runtime = load_runtime()

CHANNEL_BLOCK: Final = _runtime.CHANNEL_BLOCK
"""Output channels of a unit of a CPU's work, on every instruction set."""
PIXEL_TILE: Final = 4
"""Its pixels, of kernels that are not told apart."""

FAMILIES: Final = tuple(family for family, _ in _runtime.gpu_kernel_families())
"""What ``LayerShape.family`` may be. The number of a family is its place here: new ones come last,
so that cost models stay valid."""

parse_choice = cache(KernelChoice.parse)


@dataclass(frozen=True)
class CpuFacts:
    """A CPU as far as it decides about kernels.

    Args:
        isa: A name of ``_runtime.isa_names()``, as "neon_dotprod".
        is_64_bit: Of Arm's: has the registers for sums that filters share.
    """

    isa: str
    cores: int
    is_64_bit: bool = True


@dataclass(frozen=True)
class GpuFacts:
    """A GPU as far as it decides about kernels and work sizes.

    Args:
        vendor: As tuning tables call it.
        compute_units: How many work-groups run side by side, at least.
        clock_mhz: Its highest clock; 0: unknown.
        local_bytes: Local memory of a work-group.
        tuning: Lines of the tuning table that fit it, in force.
        refused: Choices, written out, that the runtime would not use: they failed their self-test,
            or a limit that only drivers know.
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

    def with_tuning(self, tuning: str) -> GpuFacts:
        """The same with the lines of tables that fit: of ``tuning``, then of the built-in one."""
        whole = replace(self, tuning=(tuning, _runtime.built_in_tuning_table()))
        return replace(self, tuning=tuple(whole.kernels.tuning_lines()))

    @cached_property
    def kernels(self) -> Any:
        """The runtime's rules for it."""
        facts = (self.name, self.vendor, self.family, self.local_bytes, self.has_images)
        return _runtime.GpuKernels(*facts, "\n".join(self.tuning))

    @cached_property
    def _candidates_of(self) -> Callable[[LayerShape, bool], list[tuple[str, int]]]:
        """Choices for a layer, in exact precision or below, with the grains of their cuts."""
        return cache(self.kernels.candidates)

    @cached_property
    def _refused(self) -> list[set[KernelChoice]]:
        """For whole channels, and for parts of them."""
        return [set(map(parse_choice, of)) for of in (self.refused, self.refused_for_cuts)]

    def candidates(
        self, layer: LayerShape, part: OutputPart, *, is_exact: bool = True
    ) -> Iterator[str]:
        """What can compute a part, best first, whether or not the runtime refuses it."""
        cut = is_cut(layer, part)
        for text, grain in self._candidates_of(layer, is_exact):
            if not cut or (grain > 0 and part.channel_begin % grain == 0):
                yield text

    def launches(
        self, layer: LayerShape, part: OutputPart, *, is_exact: bool = True
    ) -> tuple[Launch, ...]:
        """The launches of a part, in order; ``NoKernelError``: none can compute it."""
        for text in self.candidates(layer, part, is_exact=is_exact):
            if parse_choice(text) not in self._refused[is_cut(layer, part)]:
                pixels = part.rows * layer.out_w
                found = self.kernels.launches(layer, text, pixels, part.channels)
                return tuple(
                    Launch(kernel, parse_choice(text), tuple(work), tuple(group))
                    for kernel, work, group in found
                )
        what = f"no kernel supports {layer.family} on this GPU"
        raise NoKernelError(what, where=self.name, got=str(part))


@dataclass(frozen=True)
class DeviceFacts:
    """Both processors, and the keys that plans are kept under, by number of CPU threads."""

    keys: Mapping[int, str]
    gpu: GpuFacts
    cpu: CpuFacts


class CpuKernel(NamedTuple):
    """The kernel of a part on a CPU.

    Args:
        name: As "binary_conv2d carry_save", or the layer's family.
        pixel_tile: Output pixels that it works on at a time.
        window_operations: Multiply-accumulates that it makes for one output: with those that only
            fill its words, or its steps.
    """

    name: str
    pixel_tile: int
    window_operations: int


def cpu_kernel(layer: LayerShape, part: OutputPart, cpu: CpuFacts, threads: int) -> CpuKernel:
    """The kernel of a part on so many threads of a CPU."""
    if layer.op != "binary_conv2d":
        return CpuKernel(layer.family, PIXEL_TILE, layer.word_taps)
    if layer.groups > 1:
        return CpuKernel("binary_conv2d grouped", PIXEL_TILE, layer.word_taps)
    facts = cpu.isa, threads, cpu.is_64_bit
    name, *work = _runtime.cpu_kernel(*facts, layer, part.rows, part.channels)
    return CpuKernel(f"binary_conv2d {name}", *work)


@dataclass(frozen=True)
class Launch:
    """One kernel launch on a GPU, by the layer's choice with its parameters."""

    kernel: str
    choice: KernelChoice
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]

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


def is_cut(layer: LayerShape, part: OutputPart) -> bool:
    """Whether a part has some of the channels only: then it needs another program."""
    return (part.channel_begin, part.channel_end) != (0, layer.out_c)
