"""The instruction sets of the compiled runtime's CPU backend, and their names for users."""

from __future__ import annotations

import os
from dataclasses import dataclass

from phonebit.compiled import load_runtime
from phonebit.errors import DeviceError

FORCING_VARIABLE = "PHONEBIT_CPU"


@dataclass(frozen=True)
class InstructionSet:
    """One path of the CPU backend.

    Attributes:
        name: "scalar", "avx2", "avx512" or "neon".
        features: what a processor must have for it.
        supported: whether this machine's has.
    """

    name: str
    features: str
    supported: bool


def instruction_sets() -> list[InstructionSet]:
    """All that this build has, best first.

    Raises:
        DeviceError: if the compiled module cannot be loaded.
    """
    return [InstructionSet(*entry) for entry in load_runtime().isas()]


def usable_cores() -> int:
    """Logical CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def forced_isa() -> str | None:
    """The instruction set that the environment variable PHONEBIT_CPU names, if it is set."""
    return os.environ.get(FORCING_VARIABLE) or None


def isa_in_use(known: list[InstructionSet]) -> str:
    """The instruction set that device "cpu" stands for.

    Args:
        known: all of this build, best first.

    Returns:
        Its name.

    Raises:
        DeviceError: if PHONEBIT_CPU names one that does not exist here.
    """
    supported = [isa.name for isa in known if isa.supported]
    forced = forced_isa()
    if forced is not None and forced not in supported:
        raise DeviceError(
            "not an instruction set of this machine",
            where=f"environment variable {FORCING_VARIABLE}",
            expected=", ".join(supported),
            got=forced,
            hint="set it to one of these, or unset it",
        )
    return forced or supported[0]


def checked_cpu(device: str) -> str:
    """The name of a CPU device, as the runtime takes it.

    Args:
        device: "cpu", or "cpu:<instruction set>".

    Returns:
        The same.

    Raises:
        DeviceError: if it is something else.
    """
    if device == "cpu":
        return device
    kind, _, isa = device.partition(":")
    names = [known.name for known in instruction_sets()]
    if kind != "cpu" or isa not in names:
        kinds = ["auto", "cpu", *(f"cpu:{name}" for name in names), "gpu", "gpu:<n>", "gpu+cpu"]
        kinds += ["vulkan", "vulkan:<n>", "vulkan+cpu"]
        expected = ", ".join(kinds)
        raise DeviceError("unknown device", where=f"device '{device}'", expected=expected)
    return device
