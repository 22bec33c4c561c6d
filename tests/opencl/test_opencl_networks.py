"""Whole networks on an OpenCL device: precision, tuning, start-up caches, faults found.

That all values have the CPU's bits is in tests/conformance and tests/cpp/test_opencl_networks.cpp.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import bnn_kernels
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D
from phonebit.converter.writer import to_bytes
from phonebit.devices.gpus import gpu_devices, gpu_error, gpu_runtime
from phonebit.errors import DeviceError, InputError
from support.engine_net import SAME3, Net
from support.golden import golden_graph, integer_inputs
from support.opencl_device import check_warnings, driver_fault

_runtime = gpu_runtime()


@pytest.fixture(scope="module", autouse=True)
def _needs_a_device() -> None:
    if not gpu_devices():
        pytest.skip(f"no OpenCL device: {gpu_error()}")


@pytest.fixture(name="cache", scope="module")
def _cache(kernel_cache: str) -> str:
    return kernel_cache


def write(name: str, folder: Path) -> Path:
    path = folder / f"{name}.pbit"
    path.write_bytes(to_bytes(golden_graph(name), {}))
    return path


def inputs_of(name: str) -> list[Any]:
    return list(integer_inputs(golden_graph(name), batch=3).values())


def test_half_precision_stays_close_and_keeps_the_inputs_and_outputs_as_floats(
    cache: str, tmp_path: Path
) -> None:
    path = write("residual_block_64", tmp_path)
    inputs = inputs_of("residual_block_64")
    exact = _runtime.Network(path, device="gpu", cache_directory=cache)
    half = _runtime.Network(path, device="gpu", cache_directory=cache, precision="f16")
    assert half.memory["arena_bytes"] < exact.memory["arena_bytes"]
    for want, got in zip(exact.forward(inputs), half.forward(inputs), strict=True):
        if want.dtype == np.int8:  # a bit may flip where its float is within half's rounding of 0
            assert np.mean(want == got) > 0.99
        else:
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, want, rtol=2**-8, atol=2**-6 * np.abs(want).max())


def test_fast_is_half_precision_on_a_gpu(cache: str, tmp_path: Path) -> None:
    path = write("byte_weights", tmp_path)
    inputs = inputs_of("byte_weights")
    half = _runtime.Network(path, device="gpu", cache_directory=cache, precision="f16")
    fast = _runtime.Network(path, device="gpu", cache_directory=cache, precision="fast")
    for want, got in zip(half.forward(inputs), fast.forward(inputs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("window", "is_offered"),
    [
        (Window((1, 1), strides=(2, 2)), True),
        (Window((2, 6), pads=(1, 0, 0, 0)), False),
        (SAME3, False),
        (Window((3, 3)), False),
        (Window((2, 6)), True),  # rows as wide as the map
        (Window((2, 6), dilation=(2, 1)), False),
        (Window((5, 6)), True),  # dense
    ],
)
def test_chains_are_staged_where_windows_are_one_run_of_the_map(
    window: Window, is_offered: bool, cache: str, tmp_path: Path
) -> None:
    net = Net("staged")
    weights = net.dyadic(9, *window.kernel, 7)
    graph = net.done(net.op("conv", Conv2D(weights, window), net.input("x", (5, 6, 7))))
    path = tmp_path / "staged.pbit"
    path.write_bytes(to_bytes(graph, {}))
    x = np.random.default_rng(3).standard_normal((3, 5, 6, 7), np.float32)
    gpu = _runtime.Network(path, device="gpu", cache_directory=cache)
    line = gpu.tuning_line(0, "conv2d_f32_staged TILE_FILTERS=16 CHUNK=64")
    gpu = _runtime.Network(path, device="gpu", cache_directory=cache, tuning=line)
    check_warnings(gpu.warnings)
    assert gpu.layers[0].kernel.startswith("conv2d_f32_staged") == is_offered
    offered = {choice.split()[0] for choice in gpu.candidates(0)}
    assert ("conv2d_f32_staged" in offered) == is_offered
    expected = _runtime.Network(path, device="cpu").forward([x])[0]
    np.testing.assert_array_equal(gpu.forward([x])[0], expected)


def test_the_second_start_builds_and_tests_nothing(tmp_path: Path) -> None:
    path = write("pooled_bits_5", tmp_path)
    folder = tmp_path / "cache"
    first = _runtime.Network(path, device="gpu", cache_directory=str(folder)).startup
    assert first["programs_built"] > 0
    second = _runtime.Network(path, device="gpu", cache_directory=str(folder)).startup
    assert second["programs_built"] == 0
    assert second["self_tests_run"] == 0
    assert second["programs_loaded"] > 0


def test_damaged_cache_entries_are_found_and_built_again(tmp_path: Path) -> None:
    path = write("pooled_bits_5", tmp_path)
    folder = tmp_path / "cache"
    inputs = inputs_of("pooled_bits_5")
    want = _runtime.Network(path, device="gpu", cache_directory=str(folder)).forward(inputs)
    for index, entry in enumerate(sorted(file for file in folder.rglob("*") if file.is_file())):
        content = bytearray(entry.read_bytes())
        content[len(content) // 2] ^= 1
        entry.write_bytes(content if index % 2 else content[: len(content) // 3])
    again = _runtime.Network(path, device="gpu", cache_directory=str(folder))
    assert again.startup["cache_entries_rejected"] > 0
    assert again.startup["programs_built"] > 0
    for expected, got in zip(want, again.forward(inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


FAULT_SCRIPT = """
import json, sys
import numpy as np
from phonebit.devices.gpus import gpu_runtime
_runtime = gpu_runtime()
path, cache = sys.argv[1:]
x = [np.load(path + ".npy")]
gpu = _runtime.Network(path, device="gpu", cache_directory=cache)
# Whatever the device's table says, the broken kernel is to serve.
lines = [gpu.tuning_line(i, "bconv2d_tiled") for i in (1, 2)]
gpu = _runtime.Network(path, device="gpu", cache_directory=cache, tuning="\\n".join(lines))
cpu = _runtime.Network(path, device="cpu")
equal = all(np.array_equal(a, b) for a, b in zip(gpu.forward(x), cpu.forward(x)))
print(json.dumps({
    "equal": equal,
    "warnings": gpu.warnings,
    "kernels": [layer.kernel.split()[0] for layer in gpu.layers],
}))
"""


@pytest.mark.slow
def test_the_self_test_disables_a_wrong_kernel_and_the_next_one_runs(tmp_path: Path) -> None:
    """A fault planted into the main kernel's counting: or instead of exclusive or."""
    kernels = tmp_path / "kernels"
    shutil.copytree(Path(bnn_kernels.__file__).parent, kernels)
    source = kernels / "binary" / "bconv2d_tiled.cl"
    text = source.read_text()
    right, wrong = "count_bits(map_words[p] ^ b)", "count_bits(map_words[p] | b)"
    assert right in text
    source.write_text(text.replace(right, wrong))
    name = "binary_conv_threshold_64_64_pad0"
    path = write(name, tmp_path)
    np.save(f"{path}.npy", inputs_of(name)[0])
    environment = os.environ | {"PHONEBIT_KERNELS": str(kernels)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", FAULT_SCRIPT, str(path), str(tmp_path / "cache")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["equal"], "the kernel that took over computes what the CPU computes"
    failed = [text for text in document["warnings"] if "failed the self-test" in text]
    assert failed
    assert all("bconv2d_tiled" in text for text in failed)
    assert "bconv2d_tiled" not in document["kernels"]


def test_a_broken_kernel_error_names_kernel_options_and_build_log(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    shutil.copytree(Path(bnn_kernels.__file__).parent, kernels)
    for source in kernels.glob("values/elementwise.cl"):
        source.write_text(source.read_text() + "\nthis is no C\n")
    path = write("residual_block_31", tmp_path)
    script = (
        "import sys\nfrom phonebit.devices.gpus import gpu_runtime\n"
        "_runtime = gpu_runtime()\n"
        "try:\n    _runtime.Network(sys.argv[1], device='gpu', cache_directory=sys.argv[2])\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(path), str(tmp_path / "cache")],
        env=os.environ | {"PHONEBIT_KERNELS": str(kernels)},
        capture_output=True,
        text=True,
        check=True,
    )
    for part in ("DeviceError", "elementwise", "clBuildProgram", "-cl-std=CL1.2", "build log"):
        assert part in done.stdout


@pytest.mark.slow
def test_a_layer_can_be_measured_with_every_candidate(cache: str, tmp_path: Path) -> None:
    path = write("binary_conv_threshold_64_64_pad0", tmp_path)
    network = _runtime.Network(path, device="gpu", cache_directory=cache)
    candidates = network.candidates(1)
    assert len(candidates) == len(set(candidates)) > 100
    assert {text.split()[0] for text in candidates} >= {"bconv2d_tiled", "bconv2d_grouped"}
    by_kernel = {text.split()[0]: text for text in candidates}
    for choice in by_kernel.values():
        time_ms, is_equal = network.measure_choice(1, choice, 2, 2)
        assert time_ms > 0
        if not is_equal:
            driver_fault(f"{choice}: other results than the CPU's")
    with pytest.raises(InputError, match="cannot serve"):
        network.measure_choice(1, "conv2d_u8_direct", 1, 1)


def test_a_tuning_line_makes_its_kernel_run(cache: str, tmp_path: Path) -> None:
    path = write("binary_conv_threshold_64_64_pad0", tmp_path)
    network = _runtime.Network(path, device="gpu", cache_directory=cache)
    line = network.tuning_line(1, "bconv2d_byte GRANULARITY=64 COMPARE=1")
    tuned = _runtime.Network(path, device="gpu", cache_directory=cache, tuning=line)
    assert tuned.layers[1].kernel.startswith("bconv2d_byte GRANULARITY=64 COMPARE=1")
    inputs = inputs_of("binary_conv_threshold_64_64_pad0")
    for want, got in zip(network.forward(inputs), tuned.forward(inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_bad_device_names_say_what_there_is(tmp_path: Path) -> None:
    path = write("pooled_bits_5", tmp_path)
    with pytest.raises(DeviceError, match="gpu:0"):
        _runtime.Network(path, device="gpu:99")
    with pytest.raises(InputError, match="gpu:<index>"):
        _runtime.Network(path, device="gpu:first")
