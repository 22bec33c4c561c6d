"""What decides about kernels on a device, asked of the runtime before samples are taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from phonebit.planner.predict.kernels import CpuFacts, GpuFacts
from phonebit.planner.predict.layer_shape import LayerShape
from phonebit.planner.predict.samples import DeviceFacts

if TYPE_CHECKING:
    from phonebit import _runtime

PROBE: Final = LayerShape(
    op="binary_conv2d", in_h=14, in_w=14, in_c=256, out_h=14, out_w=14, out_c=64, input="bit",
    operand_channels=(256,), kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, bits=True,
    thresholds=True, weight_bits=1,
)  # fmt: skip
"""A layer whose CPU kernel tells whether there is a matrix unit, and whether lookups are fast."""


def gpu_facts(device: _runtime.OpenClDevice, tuning: str) -> GpuFacts:
    """Facts about a GPU.

    Args:
        device: One of ``phonebit.devices.opencl.opencl_devices()``.
        tuning: Lines that go before the built-in table's: what ``phonebit tune`` found.
    """
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
    return with_tuning(facts, tuning)


def with_tuning(gpu: GpuFacts, tuning: str) -> GpuFacts:
    """A GPU with the lines of tuning tables that fit it.

    Args:
        gpu: The GPU.
        tuning: Lines that go before the built-in table's.
    """
    return replace(gpu, tuning=tuple(gpu.fitting_lines(tuning)))


def device_facts(
    gpu: GpuFacts, isa: str, cores: int, probe_kernel: str, keys: Mapping[int, str]
) -> DeviceFacts:
    """Facts about both processors.

    Args:
        gpu: The GPU's.
        isa: The instruction set that serves, "avx512".
        cores: That the process may use.
        probe_kernel: The kernel that serves ``PROBE`` on the CPU.
        keys: What plans are kept under, by number of CPU threads.
    """
    has_tiles, counts = "_tiles__" in probe_kernel, "neoncnt" in probe_kernel
    return DeviceFacts(dict(keys), gpu, CpuFacts(isa, cores, has_tiles, not counts))
