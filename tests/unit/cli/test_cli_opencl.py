"""The commands on an OpenCL device: tables with made-up devices, the rest for real."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import phonebit
from phonebit import DeviceError, PhoneBitWarning
from phonebit.compiled import load_runtime
from phonebit.devices import tuning
from phonebit.format.reader import read_contents
from phonebit.format.writer import file_bytes
from phonebit.planner import Processor, with_plan
from support.cli_process import Cli
from support.random_plans import whole_plan


@dataclass(frozen=True)
class FakeDevice:
    index: int = 0
    name: str = "Imaginary [GPU]"
    platform: str = "Imaginary"
    vendor: str = "imaginary"
    family: str = "unknown"
    version: str = "OpenCL 3.0"
    driver_version: str = "7"
    is_gpu: bool = True
    compute_units: int = 12
    clock_mhz: int = 900
    global_bytes: int = 8_000_000_000
    local_bytes: int = 32768
    capabilities: dict[str, bool] = field(
        default_factory=lambda: {"images": True, "command_buffer": False}, hash=False
    )
    kernels: dict[str, str] = field(
        default_factory=lambda: {"binary_conv2d window": "bconv2d_tiled TILE_PIXELS=2"}, hash=False
    )
    id: int = 1
    api: str = "opencl"


class FakeRuntime(ModuleType):
    """The compiled module with devices that do not exist."""

    def __init__(self, devices: list[FakeDevice], tests: list[tuple[str, str, bool, str]]) -> None:
        super().__init__("fake_runtime")
        self._devices, self._tests = devices, tests
        self.self_tests: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(load_runtime(), name)

    def use_opencl_library(self, path: str) -> None:
        pass

    def gpu_devices(self, api: str) -> list[FakeDevice]:
        return self._devices if api == "opencl" else []

    def gpu_error(self, api: str) -> str:
        if api == "vulkan":
            return "libvulkan.so.1: cannot open [shared] object"
        return "" if self._devices else "libOpenCL.so.1: cannot open [shared] object"

    def gpu_self_test(self, *args: Any) -> list[tuple[str, str, bool, str]]:
        self.self_tests.append(args)
        return self._tests


PASSED = ("binary_conv2d", "bconv2d_tiled TILE_PIXELS=2 TILE_FILTERS=8", True, "")
FAILED = ("binary_conv2d", "bgemv GROUP_SIZE=64", False, "7 of 96 bits differ")


def pretend(
    monkeypatch: pytest.MonkeyPatch,
    *devices: FakeDevice,
    tests: tuple[tuple[str, str, bool, str], ...] = (),
) -> FakeRuntime:
    runtime = FakeRuntime(list(devices), list(tests))
    monkeypatch.setattr("phonebit.devices.gpus.load_runtime", lambda: runtime)
    return runtime


def test_devices_shows_capabilities_and_kernels(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeDevice(), FakeDevice(1, "Other", is_gpu=False))
    done = cli("devices")
    assert done.code == 0, done.err
    for text in (
        "gpu:0  Imaginary [GPU]  in use", "gpu:1  Other\n", "imaginary/unknown", "has images",
        "lacks command buffer", "binary_conv2d window", "bconv2d_tiled TILE_PIXELS=2", "8.00 GB",
        "12 compute units at 900 MHz", "in use device cpu",
    ):  # fmt: skip
        assert text in done.out
    document = cli("devices", "--json").document
    assert document["auto"] == "gpu:0"
    assert [device["device"] for device in document["opencl"]] == ["gpu:0", "gpu:1"]
    assert document["opencl"][0]["capabilities"] == {"images": True, "command_buffer": False}
    assert document["opencl_error"] == ""


def test_devices_says_why_there_is_no_opencl(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    done = cli("devices")
    text = " ".join(done.out.split())
    assert "cannot open [shared] object" in text
    assert "pip install 'phonebit[opencl]'" in text
    document = cli("devices", "--json").document
    assert (document["auto"], document["opencl"]) == ("cpu", [])
    assert "shared" in document["opencl_error"]


@pytest.mark.parametrize("command", ["devices", "doctor"])
def test_a_driver_that_cannot_compile_is_named(
    command: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    pocl = FakeDevice(
        name="pthread", driver_version="3.0-rc2", version="PoCL HSTR: x86_64-linux-gnu-generic"
    )
    pretend(monkeypatch, pocl)
    done = cli(command)
    assert done.code == 0
    (line,) = (line for line in done.out.splitlines() if line.startswith("opencl"))
    assert "pthread: PoCL 3.0-rc2 is older than this processor" in line
    assert "\\n" not in done.out


def test_selftest_shows_the_table_and_ends_with_1_when_one_failed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    runtime = pretend(monkeypatch, FakeDevice(), tests=(PASSED, FAILED))
    done = cli("selftest")
    assert done.code == 1
    for text in ("bgemv", "GROUP_SIZE=64", "failed", "7 of 96 bits differ", "1 of 2 variants"):
        assert text in done.out
    again = cli("selftest", "--device", "gpu:0", "--again", "--json")
    assert again.code == 1
    assert again.document["failed"] == 1
    assert again.document["tests"][1]["detail"] == "7 of 96 bits differ"
    assert [args[0] for args in runtime.self_tests] == ["gpu:0", "gpu:0"]
    assert [args[1] for args in runtime.self_tests] == [str(cache_folder)] * 2
    assert [args[2] for args in runtime.self_tests] == [False, True]


def test_selftest_ends_with_0_when_all_passed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, FakeDevice(), tests=(PASSED,))
    done = cli("selftest")
    assert done.code == 0
    assert "all 1 variants passed" in done.out


@pytest.mark.parametrize("command", ["selftest", "tune FILE", "kernels show FILE 0"])
def test_commands_for_opencl_refuse_the_cpu_and_its_absence(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, u8_file: Path, command: str
) -> None:
    pretend(monkeypatch)
    arguments = [u8_file if word == "FILE" else word for word in command.split()]
    assert "phonebit[opencl]" in cli.refused(*arguments)
    assert "is for GPUs" in cli.refused(*arguments, "--device", "cpu")


def test_an_unknown_level_is_a_usage_error(cli: Cli, u8_file: Path) -> None:
    assert cli("tune", u8_file, "--level", "heroic").code == 2


def test_warnings_are_one_line_without_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn() -> list[Any]:
        warnings.warn("kernel bgemv failed [badly]", PhoneBitWarning, stacklevel=1)
        raise DeviceError("the end")

    monkeypatch.setattr("phonebit.cli.devices.instruction_sets", warn)
    done = cli("devices")
    assert done.err.splitlines() == ["warning: kernel bgemv failed [badly]", "error: the end"]


# From here on, a real device.


def test_devices_lists_the_real_device(cli: Cli, gpu: str, opencl_queue: Any) -> None:
    document = cli("devices", "--json").document
    (device,) = (entry for entry in document["opencl"] if entry["device"] == gpu)
    assert device["name"] in opencl_queue.device.name
    assert any("binary_conv2d" in shape for shape in device["kernels"])
    assert device["name"] in cli("devices").out


def test_run_gives_the_same_classes(cli: Cli, gpu: str, u8_file: Path, images: list[Path]) -> None:
    done = cli("run", u8_file, *images[:3], "--device", gpu, "--json")
    assert done.code == 0, done.err
    expected = cli("run", u8_file, *images[:3], "--device", "cpu", "--json").document
    assert done.document["device"].startswith(gpu)
    assert done.document["isa"] == "opencl"
    for got, right in zip(done.document["results"], expected["results"], strict=True):
        assert [guess["index"] for guess in got["top"]] == [g["index"] for g in right["top"]]
    assert gpu in cli("run", u8_file, images[0], "--device", gpu).out


def test_bench_shows_the_device(cli: Cli, gpu: str, u8_file: Path) -> None:
    options = ("--device", gpu, "--runs", 10, "--warmup", 1, "--profile")
    done = cli("bench", u8_file, *options, "--json")
    assert done.code == 0, done.err
    assert done.document["device"].startswith(gpu)
    assert len(done.document["layers"]) > 1
    text = cli("bench", u8_file, *options, "--precision", "f16").out
    assert gpu in text


def test_bench_measures_after_the_auto_selection_of_a_plan(
    cli: Cli, gpu: str, tiny_file: Path, tmp_path: Path
) -> None:
    contents = read_contents(tiny_file)
    with pytest.warns(PhoneBitWarning, match="no plan"):
        key = phonebit.Network.load(tiny_file, device=f"{gpu}+cpu", threads=1).plan_key
    plan = replace(whole_plan(contents, Processor.GPU), device=key)
    planned = tmp_path / "planned.pbit"
    planned.write_bytes(file_bytes(with_plan(contents, plan)))
    options = ("--device", f"{gpu}+cpu", "--threads", 1, "--runs", 10, "--warmup", 0)
    found = cli("bench", planned, *options, "--json").document["coexec"]
    assert not found["is_on_trial"]
    assert min(found[f"{name}_ms"] for name in ("plan", "cpu", "gpu")) > 0
    is_alone = {"CPU": found["is_on_cpu_alone"], "GPU": found["is_on_gpu_alone"]}
    winner = next((f"the {side} alone" for side, alone in is_alone.items() if alone), "the plan")
    # The choice is kept: the same runs again.
    text = " ".join(cli("bench", planned, *options).out.split())
    assert "auto-selection: the plan " in text and f"; measured: {winner}" in text


def test_verify_passes(cli: Cli, gpu: str, checkpoint: Path, u8_file: Path) -> None:
    done = cli("verify", checkpoint, u8_file, "--samples", 2, "--interpreter", "--device", gpu)
    assert done.code == 0, done.out + done.err


@pytest.mark.parametrize("name", ["gpu:99", "gpu:x"])
def test_a_device_that_is_not_there_is_refused(
    cli: Cli, gpu: str, u8_file: Path, name: str
) -> None:
    assert gpu in cli.refused("bench", u8_file, "--device", name)


def test_tune_keeps_and_exports_what_it_finds(
    cli: Cli, gpu: str, tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    cache_folder: Path,
) -> None:  # fmt: skip
    from phonebit import Network

    for constant in ("REPEATS", "COMPARISON_ROUNDS", "LARGE_BATCH_REPEATS"):  # found, however well
        monkeypatch.setattr(tuning, constant, 1)
    table = tmp_path / "tuning.table"
    table.write_text("# mine\n")
    options = ("--device", gpu, "--level", "rapid", "--export", table)
    done = cli("tune", tiny_file, *options, "--json")
    assert done.code == 0, done.err
    document = done.document
    kept = Path(document["kept_in"])
    assert kept.parent == cache_folder / "tuning"
    assert document["layers"]
    for entry in document["layers"]:
        assert entry["after_ms"] <= entry["before_ms"]
        assert entry["line"] in kept.read_text().splitlines()
        assert entry["line"] in table.read_text().splitlines()
    assert table.read_text().startswith("# mine\n")
    tuned = Network.load(tiny_file, device=gpu)
    in_use = {layer.name: tuned.candidates(i)[:1] for i, layer in enumerate(tuned.layers)}
    for entry in document["layers"]:
        assert in_use[entry["layers"][0]] == [entry["after"]]
