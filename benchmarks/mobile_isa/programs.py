"""The OpenCL programs of a layer as the runtime makes them, on a machine without its GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from math import gcd
from typing import Final

from benchmarks.coexec.testbed import pocl_device
from benchmarks.layer_shapes import temporary_file
from phonebit.bnn_kernels.sources import tunables
from phonebit.devices.gpus import gpu_device, gpu_runtime
from phonebit.devices.kernel_choice import KernelChoice
from phonebit.devices.tuning_store import cache_folder
from phonebit.errors import DeviceError
from phonebit.planner.measure.sampled_files import layer_index
from phonebit.planner.predict.layer_shape import LayerShape

INEXACT: Final = ("conv2d_f32_dot",)
"""Kernels that run below exact precision only."""
HALF_ARITHMETIC: Final = "ARITHMETIC", 1
"""A parameter's value that PoCL cannot run, since it lacks cl_khr_fp16."""
_NUMBER: Final = re.compile(r"#define (\w+) (-?\d+)")


@dataclass(frozen=True)
class Program:
    """One kernel of a layer."""

    kernel: str  # its name
    text: str  # what a driver compiles; it begins with what is known of the layer

    @cached_property
    def defines(self) -> dict[str, int]:
        """Those that are numbers; common/words.clh makes loads as short as a pixel's words."""
        head = takewhile(lambda line: line.startswith("#define "), self.text.splitlines())
        found = {one[1]: int(one[2]) for one in filter(None, map(_NUMBER.fullmatch, head))}
        if "VECTOR_WORDS" in found:
            found["VECTOR_WORDS"] = gcd(found["VECTOR_WORDS"], found["IN_WORDS"])
        return found

    @property
    def parameters(self) -> dict[str, int]:
        """Values of its tunables."""
        return {tunable.name: self.defines[tunable.name] for tunable in tunables(self.kernel)}


@cache
def programs(layer: LayerShape, choice: KernelChoice) -> tuple[Program, ...]:
    """The programs by which a choice computes a layer that it can run, in order.

    They are made for PoCL: a choice's programs are the same on all devices. Those of half
    arithmetic are the programs of floats with other defines. Layers whose weights permit halves
    read and write halves, as between layers below exact precision.
    """
    name = pocl_device()
    pocl = gpu_device(name)
    has_halves = HALF_ARITHMETIC in choice.parameters
    parameters = dict(choice.parameters) | ({"ARITHMETIC": 0} if has_halves else {})
    wanted = " ".join([choice.kernel, *(f"{key}={value}" for key, value in parameters.items())])
    with temporary_file(layer) as path:
        network = gpu_runtime().Network(
            str(path),
            device=name,
            precision="f16" if choice.kernel in INEXACT else "exact",
            tuning=f"{layer.family} * {pocl.vendor} {pocl.family} * {wanted}",
            cache_directory=str(cache_folder() or ""),
        )
    index = layer_index(layer)
    found = network.layers[index].kernel
    if KernelChoice.parse(found) != KernelChoice.parse(wanted):
        raise DeviceError("another kernel runs", where=pocl.name, expected=wanted, got=found)
    texts = network.programs(index)
    if layer.input == "f32" and layer.weight_bits in (8, 16):
        texts = [(kernel, in_halves(text, has_halves)) for kernel, text in texts]
    return tuple(Program(kernel, text) for kernel, text in texts)


def in_halves(text: str, has_half_arithmetic: bool) -> str:
    """A program whose tensors are halves, and its multiply-adds if that is so."""
    names = "INPUT_HALF|VALUES_HALF" + "|ARITHMETIC" * has_half_arithmetic
    return re.sub(rf"^#define ({names}) 0$", r"#define \1 1", text, flags=re.MULTILINE)
