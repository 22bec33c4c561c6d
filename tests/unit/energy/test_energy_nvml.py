"""NVML with a stand-in for its Python module, and which GPU is whose."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from phonebit.energy.choice import choose_source
from phonebit.energy.discovery import Finding
from phonebit.energy.nvml import NvmlCounter, NvmlPower, find_nvml, matching_gpu
from phonebit.energy.opencl_address import BUS_ID, DOMAIN_ID, SLOT_ID, pci_address
from phonebit.energy.source import EnergyError, EnergySource, NoSourceError, Rail


class NVMLError(Exception):
    """As pynvml has it."""


class FakeNvml:
    """What the sources use of pynvml: GPUs as (name, bus)."""

    NVMLError = NVMLError

    def __init__(self, gpus: list[tuple[str | bytes, int]], has_counter: bool = True) -> None:
        self.gpus = gpus
        self.has_counter = has_counter
        self.energy_mj = 1000
        self.lost = False

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.gpus and not self.has_counter:
            raise NVMLError("NVML Shared Library Not Found")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str | bytes:  # noqa: N802
        return self.gpus[handle][0]

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(domain=0, bus=self.gpus[handle][1], device=0)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        if self.lost:
            raise NVMLError("GPU is lost")
        if not self.has_counter:
            raise NVMLError("Not Supported")
        return self.energy_mj

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 70_000


def install(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml | None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)


TWO = [("NVIDIA H200", 0x17), (b"NVIDIA H200", 0x3A)]


def test_each_gpu_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(TWO)
    install(monkeypatch, nvml)
    sources = find_nvml()
    assert [source.name for source in sources] == ["nvml:0", "nvml:1"]
    assert sources[1].description == "NVIDIA H200 at PCI 0000:3a:00, NVML energy counter"
    assert all(isinstance(source, NvmlCounter) for source in sources)
    nvml.energy_mj = 1234
    assert sources[0].read() == (1234.0,)
    nvml.lost = True
    with pytest.raises(EnergyError, match="nvml:0: NVML: GPU is lost"):
        sources[0].read()


def test_power_is_sampled_only_without_a_counter_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, FakeNvml(TWO[:1], has_counter=False))
    [source] = find_nvml()
    assert isinstance(source, NvmlPower)
    assert (source.name, source.kind) == ("nvml-power:0", "power")
    assert "sampled (energy counter: Not Supported)" in source.description
    assert source.read() == (70_000.0,)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    with pytest.raises(EnergyError, match=r"nvidia-ml-py is not installed.*phonebit\[energy\]"):
        find_nvml()
    install(monkeypatch, FakeNvml([], has_counter=False))
    with pytest.raises(EnergyError, match="Library Not Found"):
        find_nvml()
    install(monkeypatch, FakeNvml([]))
    with pytest.raises(EnergyError, match="no GPU"):
        find_nvml()


def test_a_gpu_is_matched_by_address_then_name_then_place(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeNvml([*TWO, ("NVIDIA T4", 0x50)]))
    sources = find_nvml()
    assert matching_gpu(sources, "NVIDIA H200", (0, 0x3A, 0), 0) == (sources[1], "same PCI address")
    assert matching_gpu(sources, "NVIDIA H200", (0, 0x99, 0), 0) is None
    only = (sources[2], "the only one of this name")
    assert matching_gpu(sources, "NVIDIA T4", None, 0) == only
    assert matching_gpu(sources, "NVIDIA T4", (0, 0x99, 0), 0) == only
    found = matching_gpu(sources, "NVIDIA H200", None, 1)
    assert found is not None
    assert found[0] is sources[1]
    assert "by index" in found[1]
    assert matching_gpu(sources, "NVIDIA H200", None, 2) is None
    assert matching_gpu(sources, "NVIDIA A100", None, 0) is None


def test_opencl_tells_where_a_gpu_sits(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {BUS_ID: 0x3A, SLOT_ID: (5 << 3) | 1, DOMAIN_ID: 2}

    def query(_device: int, key: int, _size: int, result: Any, _written: object) -> int:
        if key not in values:
            return -30  # CL_INVALID_VALUE
        result._obj.value = values[key]
        return 0

    library = SimpleNamespace(clGetDeviceInfo=query)
    monkeypatch.setattr("phonebit.energy.opencl_address.ctypes.CDLL", lambda path: library)
    device: Any = SimpleNamespace(id=1)
    assert pci_address(device) == (2, 0x3A, 5)
    del values[DOMAIN_ID]  # older drivers
    assert pci_address(device) == (0, 0x3A, 5)
    del values[BUS_ID]
    assert pci_address(device) is None


class Named(EnergySource):
    """A source with a name and nothing else."""

    kind, unit_mj, period_s = "power", 0.0, 1.0

    def __init__(self, name: str) -> None:
        super().__init__(name, name, (Rail("all"),))

    def read(self) -> tuple[float, ...]:
        return (1.0,)


def board(*present: str) -> list[Finding]:
    kinds = ("nvml", "rapl", "ina", "odpm", "battery")
    return [
        Finding(kind, [Named(kind)]) if kind in present else Finding(kind, [], f"no {kind} here")
        for kind in kinds
    ]


def opencl(
    monkeypatch: pytest.MonkeyPatch, platform: str, is_gpu: bool = True, is_unified: bool = False
) -> None:
    facts = {
        "name": "NVIDIA H200",
        "platform": platform,
        "is_gpu": is_gpu,
        "api": "opencl",
        "capabilities": {"unified_memory": is_unified},
    }
    devices = [SimpleNamespace(index=i, **facts) for i in range(2)]
    monkeypatch.setattr("phonebit.energy.choice.gpu_devices", lambda api: devices)
    monkeypatch.setattr("phonebit.energy.choice.pci_address", lambda device: None)


def test_the_cpu_is_measured_by_rapl_or_else_by_the_board() -> None:
    everything = board("rapl", "ina", "odpm", "battery")
    assert choose_source("cpu:avx2", everything)[0].name == "rapl"
    assert choose_source("cpu:neon", board("battery", "odpm"))[0].name == "odpm"
    assert choose_source("cpu:neon", board("battery"))[0].name == "battery"


def test_an_nvidia_gpu_is_measured_by_its_own_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    opencl(monkeypatch, "NVIDIA CUDA")
    install(monkeypatch, FakeNvml(TWO))
    findings = [Finding("nvml", find_nvml()), *board("rapl", "battery")[1:]]
    for device, name in (
        ("gpu:0 NVIDIA H200", "nvml:0"),
        ("gpu:1 NVIDIA H200", "nvml:1"),
        ("gpu NVIDIA H200", "nvml:0"),
    ):
        source, chosen = choose_source(device, findings)
        assert (source.name, chosen) == (name, "by index: PCI address unknown")
        assert choose_source(device, findings, "nvml")[0].name == name
    assert choose_source("gpu:0 NVIDIA H200", findings, "nvml:1")[0].name == "nvml:1"
    assert choose_source("gpu:0 NVIDIA H200", findings, "rapl") == (
        findings[1].sources[0],
        "as asked",
    )


class Counter(Named):
    """Counts mJ of a package and, in that, of its cores."""

    kind, unit_mj, period_s = "counter", 0.06, 0.01

    def __init__(self) -> None:
        EnergySource.__init__(self, "rapl", "packages", (Rail("package-0"), Rail("core", False)))

    def read(self) -> tuple[float, ...]:
        return 500.0, 300.0


def test_both_processors_are_measured_by_the_sum_of_their_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opencl(monkeypatch, "NVIDIA CUDA")
    nvml = FakeNvml(TWO)
    install(monkeypatch, nvml)
    findings = [Finding("nvml", find_nvml()), Finding("rapl", [Counter()])]
    source, chosen = choose_source("gpu:1 NVIDIA H200 + cpu:avx2", findings)
    assert (source.name, source.kind) == ("nvml:1+rapl", "counter")
    assert chosen == "the GPU (by index: PCI address unknown) and the CPU"
    rails = [Rail("nvml:1 board"), Rail("rapl package-0"), Rail("rapl core", counted=False)]
    assert list(source.rails) == rails
    assert source.read() == (1000.0, 500.0, 300.0)
    assert (source.unit_mj, source.period_s) == (1.0, 0.01)


def test_neither_processor_stands_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    opencl(monkeypatch, "NVIDIA CUDA")
    install(monkeypatch, FakeNvml(TWO))
    findings = [Finding("nvml", find_nvml()), *board("battery")[1:]]
    both = "gpu:0 NVIDIA H200 + cpu:avx2"
    assert choose_source(both, findings)[0].name == "battery"  # which sees everything
    with pytest.raises(NoSourceError) as caught:
        choose_source(both, [findings[0], *board()[1:]])
    assert caught.value.looked_for["nvml"] == "nvml:0, nvml:1 sees only a GPU"
    install(monkeypatch, FakeNvml(TWO, has_counter=False))
    with pytest.raises(NoSourceError) as caught:
        choose_source(
            both, [Finding("nvml", find_nvml()), Finding("rapl", [Counter()]), *board()[2:]]
        )
    assert "power that is sampled cannot be added" in caught.value.looked_for["nvml"]


def test_a_package_with_its_gpu_is_measured_by_rapl(monkeypatch: pytest.MonkeyPatch) -> None:
    both = "gpu:0 UHD + cpu:avx2"
    opencl(monkeypatch, "Intel(R) OpenCL Graphics", is_unified=True)
    assert choose_source(both, board("rapl", "battery"))[0].name == "rapl"
    opencl(monkeypatch, "AMD Accelerated Parallel Processing")
    assert choose_source(both, board("rapl", "battery"))[0].name == "battery"
    opencl(monkeypatch, "Portable Computing Language", is_gpu=False)
    assert choose_source(both, board("rapl"))[0].name == "rapl"


def test_rapl_never_stands_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    opencl(monkeypatch, "Intel(R) OpenCL Graphics")
    with pytest.raises(NoSourceError, match="no source") as caught:
        choose_source("gpu:0 UHD", board("rapl", "nvml"))
    assert "only a processor's package" in caught.value.looked_for["rapl"]
    assert caught.value.looked_for["battery"] == "no battery here"
    assert choose_source("gpu:0 UHD", board("rapl", "ina"))[0].name == "ina"
    opencl(monkeypatch, "Portable Computing Language", is_gpu=False)
    assert choose_source("gpu:0 cpu-zen4", board("rapl"))[0].name == "rapl"


def test_an_absent_source_that_was_asked_for_tells_why_and_which_there_are() -> None:
    with pytest.raises(NoSourceError, match=r"'odpm'.*no odpm here.*choose one of rapl") as caught:
        choose_source("cpu:avx2", board("rapl"), "odpm")
    assert list(caught.value.looked_for) == ["odpm"]
    with pytest.raises(NoSourceError, match="'sun'"):
        choose_source("cpu:avx2", board("rapl"), "sun")
