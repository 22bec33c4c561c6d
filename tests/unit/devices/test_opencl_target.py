"""What ``device=`` stands for, and how a file is opened there: on a runtime that only pretends."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from phonebit import DeviceError, InputError, Network, PhoneBitWarning
from phonebit.devices.gpus import gpu_devices, gpu_error
from phonebit.devices.target import find_gpu_target, find_target
from phonebit.devices.tuning_store import store_tuning


@dataclass(frozen=True)
class FakeDevice:
    index: int
    name: str
    platform: str = "Some Platform"
    is_gpu: bool = True
    driver_version: str = "1.0"
    version: str = "OpenCL 3.0"
    id: int = 0
    api: str = "opencl"


@dataclass(eq=False)
class FakeRuntime:
    """The part of the compiled module that finds devices and opens files."""

    devices: list[FakeDevice] = field(default_factory=list)
    vulkan: list[FakeDevice] | None = field(default_factory=list)
    error: str = ""
    libraries: list[str] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def use_opencl_library(self, path: str) -> None:
        self.libraries.append(path)

    def gpu_devices(self, api: str) -> list[FakeDevice]:
        if api == "opencl":
            return self.devices
        assert self.vulkan is not None, "Vulkan is not to be loaded"
        return self.vulkan

    def gpu_error(self, api: str) -> str:
        return self.error if api == "opencl" else "libvulkan.so.1: not found"

    def GpuHandles(self, *handles: int) -> tuple[int, ...]:  # noqa: N802
        return handles

    def isas(self) -> list[tuple[str, str, bool]]:
        return [("avx2", "AVX2", True), ("scalar", "", True)]

    def Network(self, path: str, **options: Any) -> Any:  # noqa: N802
        self.opened.append(options)
        for reason, error in self.failures.items():
            if reason in (options["device"], options["tuning"]):
                raise error
        return SimpleNamespace(
            inputs=[],
            outputs=[],
            layers=[],
            preprocessing=[],
            detection=[],
            labels=[],
            metadata="",
            warnings=self.warnings,
            opencl_queue=0,
            device=options["device"],
            threads=1,
        )


NVIDIA = FakeDevice(0, "NVIDIA H200")
POCL = FakeDevice(1, "cpu-haswell", "Portable Computing Language", is_gpu=False)
OCLGRIND = FakeDevice(0, "Oclgrind Simulator", "Oclgrind")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime([NVIDIA, POCL])
    for module in ("runtime", "gpus", "loading"):
        monkeypatch.setattr(f"phonebit.devices.{module}.load_runtime", lambda: fake)
    return fake


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.pbit"
    path.touch()
    return path


def test_auto_is_the_first_real_gpu(runtime: FakeRuntime) -> None:
    assert find_target("auto").device == "gpu:0"
    runtime.devices = [OCLGRIND, FakeDevice(1, "Adreno"), POCL]
    assert find_target("auto").device == "gpu:1"


@pytest.mark.parametrize("devices", [[], [POCL], [OCLGRIND, POCL]])
def test_auto_is_the_cpu_where_there_is_no_gpu(
    runtime: FakeRuntime, devices: list[FakeDevice]
) -> None:
    runtime.devices = devices
    target = find_target("auto")
    assert (target.device, target.is_gpu) == ("cpu", False)


def test_cpu_names_do_not_touch_opencl(
    runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeRuntime, "gpu_devices", None)
    assert find_target("cpu").device == "cpu"
    assert find_target("cpu:avx2").device == "cpu:avx2"


def test_gpu_counts_all_devices_and_avoids_simulators(runtime: FakeRuntime) -> None:
    assert find_target("gpu").device == "gpu:0"
    assert find_target("gpu:1").device == "gpu:1"
    assert find_target("gpu:1").key == "cpu-haswell | Portable Computing Language | 1.0"
    runtime.devices = [OCLGRIND, POCL]
    assert find_target("gpu").device == "gpu:1"
    assert find_target("gpu:0").device == "gpu:0"
    runtime.devices = [OCLGRIND]
    assert find_target("gpu").device == "gpu:0"


MALI = FakeDevice(0, "Mali-G710", "Vulkan", api="vulkan")
LAVAPIPE = FakeDevice(1, "llvmpipe", "Vulkan", is_gpu=False, api="vulkan")


def test_a_gpu_by_opencl_comes_first_and_keeps_vulkan_unloaded(runtime: FakeRuntime) -> None:
    runtime.vulkan = None
    for name in ("auto", "gpu", "gpu:0", "gpu+cpu"):
        assert str(find_target(name).device).startswith("gpu:0")


def test_then_comes_a_gpu_by_vulkan_then_what_is_none(runtime: FakeRuntime) -> None:
    runtime.devices, runtime.vulkan = [POCL], [MALI, LAVAPIPE]
    assert find_target("auto").device == find_target("gpu").device == "vulkan:0"
    assert find_target("gpu+cpu").device == "vulkan:0+cpu"
    assert find_target("auto").key == "Mali-G710 | Vulkan | 1.0"
    runtime.vulkan = [replace(LAVAPIPE, index=0)]
    assert find_target("auto").device == "cpu"
    assert find_target("gpu").device == "gpu:1"
    runtime.devices = []
    assert find_target("gpu").device == "vulkan:0"


def test_vulkan_counts_its_own_devices(runtime: FakeRuntime) -> None:
    runtime.vulkan = [MALI, LAVAPIPE]
    assert find_target("vulkan").device == "vulkan:0"
    assert find_target("vulkan:1").device == "vulkan:1"
    assert find_target("vulkan:1+cpu:avx2").device == "vulkan:1+cpu:avx2"
    with pytest.raises(DeviceError, match=r"vulkan:0 \(Mali-G710\), vulkan:1 \(llvmpipe\)"):
        find_target("vulkan:2")
    with pytest.raises(DeviceError, match="unknown device"):
        find_target("vulkan:x")


def test_no_vulkan_says_why(runtime: FakeRuntime) -> None:
    with pytest.raises(DeviceError, match=r"no device of Vulkan here.*libvulkan\.so\.1: not found"):
        find_target("vulkan")
    runtime.devices, runtime.error = [], "libOpenCL.so.1: not found"
    with pytest.raises(DeviceError, match=r"OpenCL or Vulkan.*libOpenCL.*\n.*libvulkan"):
        find_target("gpu")


def test_a_number_too_large_lists_what_is_there(runtime: FakeRuntime) -> None:
    with pytest.raises(DeviceError, match=r"gpu:0 \(NVIDIA H200\), gpu:1 \(cpu-haswell\)"):
        find_target("gpu:2")


@pytest.mark.parametrize("name", ["gpu:", "gpu:-1", "gpu:x", "gpu:1:2", "gpu:²"])
def test_a_malformed_number_is_refused(runtime: FakeRuntime, name: str) -> None:
    with pytest.raises(DeviceError, match="unknown device"):
        find_target(name)


@pytest.mark.parametrize("name", ["gpu", "gpu:0"])
def test_no_opencl_says_why_and_what_to_install(runtime: FakeRuntime, name: str) -> None:
    runtime.devices, runtime.error = [], "libOpenCL.so.1: not found"
    with pytest.raises(DeviceError, match=r"libOpenCL\.so\.1: not found.*phonebit\[opencl\]"):
        find_target(name)


GENERIC = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic"


@pytest.fixture
def linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A linker, all that the PATH has."""
    path = tmp_path / "bin" / "ld"
    path.parent.mkdir()
    path.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(path.parent))
    return path


def test_a_driver_that_cannot_compile_here_is_left_out(runtime: FakeRuntime, linker: Path) -> None:
    """PoCL ends the process where ld is missing; where it does not know the processor, it fails."""
    known = GENERIC.replace("generic", "haswell")
    arm = GENERIC.replace("x86_64", "aarch64")
    pocl = replace(POCL, driver_version="3.0-rc2", version=GENERIC)
    runtime.devices = [NVIDIA, pocl, replace(pocl, index=2, version=known)]
    assert [device.index for device in gpu_devices()] == [0, 2]
    assert find_target("gpu:2").device == "gpu:2"
    with pytest.raises(DeviceError, match=r"PoCL 3.0-rc2 is older than.*install pocl-opencl-icd"):
        find_target("gpu:1")
    runtime.devices = [replace(pocl, version=arm)]
    assert gpu_devices() and not gpu_error()
    linker.unlink()
    assert not gpu_devices()
    with pytest.raises(DeviceError, match=r"cpu-haswell: PoCL 3.*program ld.*install binutils"):
        find_target("gpu")
    runtime.devices = [replace(pocl, driver_version="6.0", version=known)]
    assert gpu_devices() and not gpu_error()


@pytest.mark.parametrize("name", ["tpu", "GPU", "", "cpu:sse9", "cuda:0"])
def test_unknown_names_are_refused_with_the_known_ones(runtime: FakeRuntime, name: str) -> None:
    with pytest.raises(DeviceError, match=r"auto, cpu, cpu:avx2, cpu:scalar, gpu, gpu:<n>"):
        find_target(name)


@pytest.mark.parametrize("device", [None, 0, object()])
def test_what_is_no_device_is_refused(runtime: FakeRuntime, device: Any) -> None:
    with pytest.raises(DeviceError, match="not a device"):
        find_target(device)


def test_the_cpu_is_refused_where_only_opencl_makes_sense(runtime: FakeRuntime) -> None:
    with pytest.raises(DeviceError, match=r"tuning is for GPUs.*--device gpu"):
        find_gpu_target("cpu", "tuning")


def test_stored_tuning_and_cache_folder_reach_the_runtime(
    runtime: FakeRuntime, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path / "cache"))
    target = find_target("gpu:1")
    line = "binary_conv2d a pocl cpu cpu-haswell bgemv"
    store_tuning(target.key, [line])
    for device in ("gpu:0", "gpu:1", "cpu"):
        Network.load(file, device=device, precision="f16")
    tunings = [options["tuning"] for options in runtime.opened]
    assert [line in tuning for tuning in tunings] == [False, True, False]
    assert {options["cache_directory"] for options in runtime.opened} == {str(tmp_path / "cache")}
    assert {options["precision"] for options in runtime.opened} == {"f16"}


def test_damaged_tuning_is_left_out_with_a_warning(
    runtime: FakeRuntime, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", str(tmp_path / "cache"))
    path = store_tuning(find_target("gpu").key, ["nonsense"])
    assert path is not None
    runtime.failures[path.read_text()] = InputError("expected op, shape", where="tuning:2")
    with pytest.warns(PhoneBitWarning, match=r"tuning is ignored: tuning:2.*phonebit tune"):
        Network.load(file, device="gpu")
    assert runtime.opened[-1]["tuning"] == ""


def test_auto_falls_back_to_the_cpu_with_a_warning(runtime: FakeRuntime, file: Path) -> None:
    runtime.failures["gpu:0"] = DeviceError("CL_OUT_OF_HOST_MEMORY")
    with pytest.warns(PhoneBitWarning, match=r"the CPU runs it.*CL_OUT_OF_HOST_MEMORY"):
        Network.load(file)
    assert [options["device"] for options in runtime.opened] == ["gpu:0", "cpu"]


def test_gpu_does_not_fall_back(runtime: FakeRuntime, file: Path) -> None:
    runtime.failures["gpu:0"] = DeviceError("CL_OUT_OF_HOST_MEMORY")
    with pytest.raises(DeviceError, match="CL_OUT_OF_HOST_MEMORY"):
        Network.load(file, device="gpu")
    assert len(runtime.opened) == 1


def test_the_runtimes_warnings_name_the_callers_line(runtime: FakeRuntime, file: Path) -> None:
    runtime.warnings = ["kernel bgemv failed the self-test and is not used"]
    with pytest.warns(PhoneBitWarning, match="bgemv failed") as caught:
        Network.load(file, device="gpu")
    assert caught[0].filename == __file__


def test_an_unknown_precision_is_refused(runtime: FakeRuntime, file: Path) -> None:
    with pytest.raises(InputError, match=r"precision.*'exact' or 'f16'.*'int8'"):
        Network.load(file, precision="int8")  # type: ignore[arg-type]


@dataclass
class PretendedDevice:
    name: str = "Adreno"
    int_ptr: int = 11
    driver_version: str = "2 "
    platform: Any = field(default_factory=lambda: SimpleNamespace(name=" Qualcomm"))


@dataclass
class PretendedContext:
    devices: list[PretendedDevice]
    int_ptr: int = 22


@dataclass
class PretendedQueue:
    context: PretendedContext
    device: PretendedDevice
    properties: int = 0
    int_ptr: int = 33


@pytest.fixture
def pretended_pyopencl(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    module: Any = ModuleType("pyopencl")
    module.Device, module.Context = PretendedDevice, PretendedContext
    module.CommandQueue = PretendedQueue
    module.command_queue_properties = SimpleNamespace(OUT_OF_ORDER_EXEC_MODE_ENABLE=1)
    monkeypatch.setitem(sys.modules, "pyopencl", module)
    return runtime


def test_pyopencl_objects_become_handles(pretended_pyopencl: FakeRuntime) -> None:
    device = PretendedDevice()
    context = PretendedContext([device])
    for given, handles in (
        (device, (22, 11, 0)),
        (context, (22, 11, 0)),
        (PretendedQueue(context, device), (22, 11, 33)),
    ):
        target = find_target(given)  # type: ignore[arg-type]
        assert target.device == handles
        assert target.key == "Adreno | Qualcomm | 2"
        assert isinstance(target.owner, PretendedContext)


def test_a_known_device_has_the_runtimes_key(pretended_pyopencl: FakeRuntime) -> None:
    pretended_pyopencl.devices = [FakeDevice(0, "Adreno (TM)", id=11)]
    assert find_target(PretendedDevice()).key == find_target("gpu").key  # type: ignore[arg-type]


def test_an_out_of_order_queue_is_refused(pretended_pyopencl: FakeRuntime) -> None:
    context = PretendedContext([PretendedDevice()])
    queue: Any = PretendedQueue(context, context.devices[0], properties=3)
    with pytest.raises(DeviceError, match=r"out of order.*in-order"):
        find_target(queue)


def test_a_context_of_several_devices_is_refused(pretended_pyopencl: FakeRuntime) -> None:
    context: Any = PretendedContext([PretendedDevice(), PretendedDevice("Mali")])
    with pytest.raises(DeviceError, match=r"several devices.*Adreno, Mali.*CommandQueue"):
        find_target(context)
