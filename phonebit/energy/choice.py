"""Which source measures the processor that runs a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from phonebit.devices.gpus import api_of, gpu_devices
from phonebit.energy.discovery import Finding
from phonebit.energy.nvml import NvmlSource, matching_gpu
from phonebit.energy.opencl_address import pci_address
from phonebit.energy.source import EnergyError, EnergySource, NoSourceError
from phonebit.energy.summed import SummedSource

if TYPE_CHECKING:
    from phonebit import _runtime

WHOLE_BOARD = ("ina", "odpm", "battery")
"""These see every processor of a phone or a board, best first."""
UNIFIED_MEMORY = "unified_memory"
SEE_GPU = "only a GPU"
SEE_CPU = "only a processor's package, which a GPU may be a part of: --energy-source rapl to use it"

Chosen = tuple[EnergySource, str]


def choose_source(device: str, findings: Sequence[Finding], wanted: str = "auto") -> Chosen:
    """Find the source for a network.

    Args:
        device: what runs the network, as ``Network.device`` says.
        findings: of ``discover``.
        wanted: "auto": the one that sees this device and as little else as possible, for both
            processors together the sum of theirs; or a source's name, or a kind: "rapl", "nvml",
            "nvml:1".

    Returns:
        The source, and why it was chosen, for people.

    Raises:
        NoSourceError: if there is none.
    """
    if wanted != "auto":
        return _named(device, findings, wanted)
    opencl = _gpu_device(device)
    is_pair = " + cpu:" in device
    unfit: dict[str, str] = {}
    if opencl is None or not opencl.is_gpu:
        kinds: Iterable[str] = ("rapl", *WHOLE_BOARD)
        unfit["nvml"] = SEE_GPU
    elif _is_nvidia(opencl):
        found = _nvidia(opencl, findings)
        if is_pair:
            found = _with_cpu(found, findings, unfit)
        else:
            unfit["rapl"] = SEE_CPU
        if found is not None:
            return found
        kinds = WHOLE_BOARD
    elif is_pair and opencl.capabilities[UNIFIED_MEMORY]:
        kinds = ("rapl", *WHOLE_BOARD)  # the GPU is in the processor's package
        unfit["nvml"] = "only NVIDIA's GPUs"
    else:
        kinds = WHOLE_BOARD
        unfit |= {"nvml": "only NVIDIA's GPUs", "rapl": SEE_CPU}
    by_kind = {finding.kind: finding for finding in findings}
    for kind in kinds:
        if by_kind[kind].sources:
            return by_kind[kind].sources[0], f"it sees {device}"
    raise NoSourceError(device, _looked_for(findings, unfit))


def _named(device: str, findings: Sequence[Finding], wanted: str) -> Chosen:
    everything = [source for finding in findings for source in finding.sources]
    for source in everything:
        if source.name == wanted:
            return source, "as asked"
    of_kind = [source for source in everything if source.name.partition(":")[0] == wanted]
    opencl = _gpu_device(device)
    if wanted.startswith("nvml") and opencl is not None and _is_nvidia(opencl):
        found = _nvidia(opencl, findings)
        if found is not None and found[0] in of_kind:
            return found
    elif len(of_kind) == 1:
        return of_kind[0], "as asked"
    names = ", ".join(source.name for source in everything)
    kind = wanted.partition(":")[0].partition("-")[0]
    of_this = [finding for finding in findings if finding.kind == kind]
    raise NoSourceError(
        f"energy source '{wanted}'",
        _looked_for(of_this or findings, {}),
        hint=f"choose one of {names}" if names else None,
    )


def _with_cpu(
    gpu: Chosen | None, findings: Sequence[Finding], unfit: dict[str, str]
) -> Chosen | None:
    """A graphics card's source and the processor's as one; without either none."""
    of_cpu = [found for of in findings if of.kind == "rapl" for found in of.sources]
    unfit["nvml"], unfit["rapl"] = SEE_GPU, "only a processor's package"
    if gpu is None or not of_cpu:
        return None
    source, why = gpu
    try:
        return SummedSource([source, of_cpu[0]]), f"the GPU ({why}) and the CPU"
    except EnergyError as error:
        unfit["nvml"] = f"{SEE_GPU}: {error.what}"
        return None


def _looked_for(findings: Sequence[Finding], unfit: dict[str, str]) -> dict[str, str]:
    looked_for = {}
    for finding in findings:
        names = ", ".join(source.name for source in finding.sources)
        sees = f" sees {unfit[finding.kind]}" if finding.kind in unfit else ""
        looked_for[finding.kind] = finding.absent or names + sees
    return looked_for


def _gpu_device(label: str) -> _runtime.GpuDevice | None:
    """The device of "gpu:0 NVIDIA H200"; "gpu NVIDIA H200", made by pyopencl, by its name alone."""
    kind, _, name = label.partition(" ")
    family, _, index = kind.partition(":")
    api = api_of(family)
    if api is None:
        return None
    devices = gpu_devices(api)
    if index:
        return devices[int(index)]
    return next((device for device in devices if device.name == name), None)


def _is_nvidia(device: _runtime.GpuDevice) -> bool:
    maker = device.name if device.platform == "Vulkan" else device.platform
    return maker.startswith("NVIDIA")


def _nvidia(device: _runtime.GpuDevice, findings: Sequence[Finding]) -> Chosen | None:
    sources = [
        source
        for finding in findings
        for source in finding.sources
        if isinstance(source, NvmlSource)
    ]
    same = [
        other
        for other in gpu_devices(device.api)
        if _is_nvidia(other) and other.name == device.name and other.index < device.index
    ]
    return matching_gpu(sources, device.name, pci_address(device), len(same))
