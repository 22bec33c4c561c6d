"""NVML: the energy counter of NVIDIA GPUs, through the vendor's package nvidia-ml-py.

The counter (Volta and newer) counts mJ of the whole board, memory included, since the driver was
loaded. Where it cannot be read power is sampled instead, and the source's name says so.

nvidia-ml-py is a thin wrapper of the driver's library without dependencies. zeus, which measures
training runs, was considered: it reads the same counter, but brings some twenty packages (pandas,
scikit-learn, httpx, ...), tells no resolution, and knows neither batteries, ODPM nor hwmon.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from phonebit.energy.source import EnergyError, EnergySource, Rail


class NvmlSource(EnergySource):
    """Base of both: one GPU.

    Args:
        name: of the source.
        nvml: the module pynvml, initialised.
        index: NVML's number of the GPU.
        what: is read, for people.

    Raises:
        pynvml.NVMLError: if the GPU has no such reading.
    """

    def __init__(self, name: str, nvml: Any, index: int, what: str) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.gpu_name = _text(nvml.nvmlDeviceGetName(self._handle))
        pci = nvml.nvmlDeviceGetPciInfo(self._handle)
        self.pci_address = (int(pci.domain), int(pci.bus), int(pci.device))
        domain, bus, device = self.pci_address
        place = f"PCI {domain:04x}:{bus:02x}:{device:02x}"
        super().__init__(f"{name}:{index}", f"{self.gpu_name} at {place}, {what}", (Rail("board"),))
        self._reading()

    def read(self) -> tuple[float, ...]:
        """The board's mJ or mW."""
        try:
            return (float(self._reading()),)
        except self._nvml.NVMLError as error:
            raise EnergyError(f"NVML: {error}", where=self.name) from error

    @abstractmethod
    def _reading(self) -> int:
        """What the driver says: mJ of a counter, mW of power."""


class NvmlCounter(NvmlSource):
    """The energy counter of one GPU."""

    kind = "counter"
    unit_mj = 1.0
    period_s = 0.02

    def __init__(self, nvml: Any, index: int) -> None:
        super().__init__("nvml", nvml, index, "NVML energy counter")

    def _reading(self) -> int:
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))


class NvmlPower(NvmlSource):
    """The power of one GPU whose counter cannot be read; ``why`` not."""

    kind = "power"
    unit_mj = 0.0
    period_s = 0.02

    def __init__(self, nvml: Any, index: int, why: str) -> None:
        super().__init__("nvml-power", nvml, index, f"NVML power, sampled (energy counter: {why})")

    def _reading(self) -> int:
        return int(self._nvml.nvmlDeviceGetPowerUsage(self._handle))


def find_nvml() -> list[NvmlSource]:
    """A source for each NVIDIA GPU, in NVML's order.

    Raises:
        EnergyError: if there is none, or NVML cannot be used.
    """
    try:
        nvml = import_module("pynvml")
    except ImportError as error:
        raise EnergyError(
            "package nvidia-ml-py is not installed", hint="pip install 'phonebit[energy]'"
        ) from error
    try:
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        raise EnergyError(f"NVML: {error}", hint="it comes with NVIDIA's driver") from error
    if count == 0:
        raise EnergyError("NVML: no GPU")
    return [_open(nvml, index) for index in range(count)]


def matching_gpu(
    sources: Sequence[NvmlSource], name: str, address: tuple[int, int, int] | None, place: int
) -> tuple[NvmlSource, str] | None:
    """The source of a GPU that OpenCL knows.

    Args:
        sources: all of NVML, in its order.
        name: of the OpenCL device.
        address: its PCI domain, bus and device, if OpenCL tells.
        place: its place among OpenCL's NVIDIA GPUs of this name.

    Returns:
        The source and how it was found, for people; None if no GPU fits.
    """
    for source in sources:
        if address is not None and source.pci_address == address:
            return source, "same PCI address"
    # In a virtual machine OpenCL and NVML may number the bus differently: of one GPU no address is
    # needed, of several a wrong address is no reason to guess.
    same = [source for source in sources if source.gpu_name == name]
    if len(same) == 1:
        return same[0], "the only one of this name"
    if address is None and place < len(same):
        return same[place], "by index: PCI address unknown"
    return None


def _open(nvml: Any, index: int) -> NvmlSource:
    try:
        try:
            return NvmlCounter(nvml, index)
        except nvml.NVMLError as error:
            return NvmlPower(nvml, index, str(error))
    except nvml.NVMLError as error:
        raise EnergyError(f"NVML: {error}", where=f"GPU {index}") from error


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
