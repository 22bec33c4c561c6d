"""``phonebit android``: from the command line to a (fake) phone and back."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from support.android_phones import PHONE_FOLDER, FakePhones, PlayedBench, tool_stubs
from support.cli_process import Cli, Done


@pytest.fixture
def phones(tmp_path: Path) -> FakePhones:
    return FakePhones(tmp_path)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return tool_stubs(tmp_path / "tools", "arm64-v8a")


class Android:
    """Runs ``phonebit android`` with a fake adb and tools."""

    def __init__(self, cli: Cli, phones: FakePhones, tools: Path) -> None:
        self._cli = cli
        self._options = ("--adb", phones.adb, "--tools", tools)

    def __call__(self, *arguments: object) -> Done:
        return self._cli("android", *arguments, *self._options)

    def refused(self, *arguments: object) -> str:
        return self._cli.refused("android", *arguments, *self._options)


@pytest.fixture
def android(cli: Cli, phones: FakePhones, tools: Path) -> Android:
    return Android(cli, phones, tools)


@pytest.fixture
def measured_here(cli: Cli, tiny_file: Path) -> Any:
    """A document of ``phonebit bench``, whose field names are also phonebit_bench's."""
    flags = ("--device", "cpu", "--threads", 1, "--runs", 3, "--warmup", 1, "--profile")
    return cli("bench", tiny_file, *flags, "--json").document


def test_push_sends_tools_and_files_once(
    android: Android, phones: FakePhones, tiny_file: Path
) -> None:
    root = phones.attach("R58M")
    done = android("push", tiny_file)
    assert done.code == 0, done.err
    assert "Pixel 8, Android 14, Google Tensor G3, arm64-v8a: 3 files sent" in done.out
    folder = root / PHONE_FOLDER.lstrip("/")
    assert sorted(file.name for file in folder.iterdir()) == [
        "phonebit_bench", "phonebit_run", "tiny.pbit",
    ]  # fmt: skip
    assert (folder / "tiny.pbit").read_bytes() == tiny_file.read_bytes()
    for name in ("phonebit_bench", "phonebit_run"):
        assert (folder / name).stat().st_mode & stat.S_IXUSR
    assert "0 files sent (0 B), 3 there already" in android("push", tiny_file).out


def test_push_refuses_what_would_overwrite_each_other(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path
) -> None:
    phones.attach("R58M")
    other = tmp_path / tiny_file.name
    other.write_bytes(b"other")
    assert "the same name on the device" in android.refused("push", tiny_file, other)
    assert "no such file" in android.refused("push", tmp_path / "absent.pbit")


def test_tools_are_looked_for_where_the_preset_of_the_phone_builds_them(
    cli: Cli, phones: FakePhones, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phones.attach("R58M")
    monkeypatch.chdir(tmp_path)
    text = cli.refused("android", "push", "--adb", phones.adb)
    assert "build/android-arm64-v8a/runtime/tools/phonebit_bench" in text
    assert "cmake --preset android-arm64-v8a" in text
    (tmp_path / "build/android-arm64-v8a/runtime").mkdir(parents=True)
    tool_stubs(tmp_path / "build/android-arm64-v8a/runtime/tools", "arm64-v8a")
    assert cli("android", "push", "--adb", phones.adb).code == 0


def test_tools_of_another_processor_are_refused(
    cli: Cli, phones: FakePhones, tmp_path: Path
) -> None:
    phones.attach("R58M")
    options = ("--adb", phones.adb, "--tools")
    wrong = tool_stubs(tmp_path / "x86", "x86_64")
    text = cli.refused("android", "push", *options, wrong)
    assert "expected arm64-v8a or armeabi-v7a, got x86_64" in text
    also_right = tool_stubs(tmp_path / "arm", "armeabi-v7a")
    assert cli("android", "push", *options, also_right).code == 0
    (wrong / "phonebit_bench").write_text("#!/bin/sh\n")
    assert "no program of Linux" in cli.refused("android", "push", *options, wrong)


def test_bench_prints_what_the_phone_measured_as_bench_does(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path, measured_here: Any
) -> None:
    played = PlayedBench(tmp_path, {**measured_here, "file": "/data/local/tmp/phonebit/tiny.pbit"})
    phones.attach("R58M", plays=played.plays)
    done = android("bench", tiny_file)
    assert done.code == 0, done.err
    estimated = "Mali-G715"  # what a Pixel 8 has
    for text in ("Pixel 8, Android 14", str(tiny_file), "median", "FPS", "noise probe", "conv",
                 estimated, "modelled, not measured"):  # fmt: skip
        assert text in done.out
    assert f"{measured_here['median_ms']:.3f} ms" in done.out
    document = android("bench", tiny_file, "--json").document
    assert document["phone"] == {
        "model": "Pixel 8", "android": "14", "api": 34, "soc": "Google Tensor G3",
        "abis": ["arm64-v8a", "armeabi-v7a"],
    }  # fmt: skip
    assert document["estimate"]["phone"] == "pixel-8"
    assert {name: document[name] for name in measured_here} == measured_here


def test_bench_hands_its_options_on(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path, measured_here: Any
) -> None:
    played = PlayedBench(tmp_path, measured_here)
    phones.attach("R58M", plays=played.plays)
    options = (
        "--device", "gpu+cpu", "--threads", 2, "--cores", "4,5", "--hint", "performance",
        "--precision", "f16", "--runs", 7, "--warmup", 1, "--batch", 2, "--profile",
        "--cooldown", 0.5, "--energy", "--energy-source", "odpm", "--energy-seconds", 4,
        "--no-idle",
    )  # fmt: skip
    assert android("bench", tiny_file, *options, "--library-path", "/vendor/lib64").code == 0
    assert played.arguments[0].endswith("/data/local/tmp/phonebit/tiny.pbit")
    given = " ".join(played.arguments[1:])
    assert "--json --cache " in given
    for text in (
        "--device gpu+cpu --threads 2 --cores 4,5 --hint performance --precision f16",
        "--runs 7 --warmup 1 --batch 2 --cooldown-s 0.5 --profile --energy",
        "--energy-source odpm --energy-seconds 4.0 --no-idle",
    ):
        assert text in given
    assert played.library_path == "/vendor/lib64"
    assert android("bench", tiny_file).code == 0
    assert played.library_path == ""


@pytest.mark.parametrize(
    ("document", "code", "said", "text"),
    [
        ("", 2, "phonebit_bench: --cores: got 'x'\nexpected numbers", "got 'x'\nexpected numbers"),
        ("", 139, "order 2 of 9", "failed on the phone: it crashed; order 2 of 9"),
        ("", 134, "phonebit_bench: warning: a", "failed on the phone: it aborted; phonebit_bench"),
        ("", 137, "", "failed on the phone: the system ended it, most likely for want of memory"),
        ("no JSON", 0, "", "something else than JSON"),
    ],
)
def test_a_bench_that_fails_on_the_phone_is_one_error_here(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path,
    document: str, code: int, said: str, text: str,
) -> None:  # fmt: skip
    phones.attach("R58M", plays=PlayedBench(tmp_path, document, code, said).plays)
    assert text in android.refused("bench", tiny_file)


def test_warnings_on_the_phone_are_warnings_here(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path, measured_here: Any
) -> None:
    said = "phonebit_bench: warning: kernel x failed its self-test"
    phones.attach("R58M", plays=PlayedBench(tmp_path, measured_here, said=said).plays)
    done = android("bench", tiny_file)
    assert done.code == 0
    assert "warning: phonebit_bench: warning: kernel x failed" in done.err


ENERGY = {
    "measured": True, "source": "odpm", "description": "power monitor", "chosen": "as asked",
    "kind": "counter", "resolution_mj": 0.5, "window_s": 3.0, "idle_window_s": 3.0, "frames": 600,
    "energy_mj": 3000.0, "mean_mw": 1000.0, "idle_mw": 400.0, "mj_per_frame": 5.0, "fps": 200.0,
    "fps_per_watt": 200.0, "uncertainty": 0.01, "net_mw": 600.0, "net_mj_per_frame": 3.0,
    "net_fps_per_watt": 333.3, "net_uncertainty": 0.02,
}  # fmt: skip


def test_energy_and_heat_of_a_phone_are_printed(
    android: Android, phones: FakePhones, tiny_file: Path, tmp_path: Path, measured_here: Any
) -> None:
    zones = {
        "before": [{"zone": "cpu-0", "celsius": 31.0}, {"zone": "skin", "celsius": 29.0}],
        "after": [{"zone": "cpu-0", "celsius": 52.5}, {"zone": "skin", "celsius": 30.0}],
    }
    document = {**measured_here, "thermal": zones, "energy": ENERGY}
    phones.attach("R58M", plays=PlayedBench(tmp_path, document).plays)
    text = android("bench", tiny_file, "--energy").out
    for part in (
        "cpu-0 31.0 -> 52.5 °C", "1,000 mW, 5 mJ/frame, 200 FPS/W (±1.0 % by resolution)",
        "idle 400 mW; above it 600 mW, 3 mJ/frame", "source odpm (as asked)", "600 frames",
    ):  # fmt: skip
        assert part in text
    document["energy"] = {
        "measured": False, "reason": "not measured: no source", "error": "not measured: no source",
        "sources": {"odpm": "no iio:device of kind odpm"},
    }  # fmt: skip
    phones.attach("R58M", plays=PlayedBench(tmp_path, document).plays)
    text = android("bench", tiny_file, "--energy").out
    assert "energy not measured: no source" in text
    assert "odpm: no iio:device" in text


def test_details_of_an_energy_that_was_not_asked_for_are_refused_before_the_phone_is_asked(
    android: Android, tiny_file: Path
) -> None:
    assert "--energy" in android.refused("bench", tiny_file, "--energy-seconds", 3)
