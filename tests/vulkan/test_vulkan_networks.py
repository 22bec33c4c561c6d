"""Networks on a device of Vulkan, Mesa's lavapipe included, against the CPU: the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import DeviceError, Network
from phonebit.devices.gpus import gpu_devices, gpu_error
from phonebit.format.reader import read_contents
from phonebit.planner import ExecutionPlan, Processor
from support.golden import FOLDER, golden_graph, integer_inputs
from support.random_plans import halves_plan

NAMES = (
    "tiny_classifier",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "binary_conv_groups3_93_33",
            "binary_conv_threshold_33_31_pad-1",
            "binary_depthwise_70_pad0",
            "byte_weights",
            "float_layers",
            "log_softmax",
            "pooled_bits_33",
            "residual_block_64",
            "selected_channels",
            "two_slopes_31",
            "u8_first_layer_1_33",
        )
    ),
)
CLASSIFIER = FOLDER / "tiny_classifier.pbit"

pytestmark = pytest.mark.filterwarnings("ignore:.*has no plan for:phonebit.PhoneBitWarning")


@pytest.fixture(autouse=True)
def _cache(kernel_cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are tested once for all of these tests."""
    if not gpu_devices("vulkan"):
        pytest.skip(f"no Vulkan device: {gpu_error('vulkan')}")
    monkeypatch.setenv("PHONEBIT_CACHE_DIR", kernel_cache)


def inputs_of(name: str, batch: int) -> Any:
    return dict(integer_inputs(golden_graph(name), batch=batch))


def assert_same(got: Any, expected: Any) -> None:
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("name", NAMES)
def test_the_cpus_bits_in_batches_and_streams(name: str) -> None:
    path = FOLDER / f"{name}.pbit"
    with Network.load(path, device="cpu") as cpu, Network.load(path, device="vulkan") as gpu:
        assert gpu.device.startswith("vulkan:0 ")
        for batch in (3, 1, 3):
            x = inputs_of(name, batch)
            assert_same(gpu.forward(x), cpu.forward(x))
        batches = [inputs_of(name, batch) for batch in (2, 1, 2, 2)]
        for x, got in zip(batches, gpu.stream(batches), strict=True):
            assert_same(got, cpu.forward(x))
        x = inputs_of(name, 1)
        assert_same(gpu.activations(x), cpu.activations(x))


def by_rows(plan: ExecutionPlan) -> ExecutionPlan:
    """The CPU computes layers whole that the plan cuts by channels."""
    parts = []
    for part in plan.parts:
        others = [p for p in plan.parts if p.layer == part.layer and p is not part]
        whole = max([part.part.channel_end, *(p.part.channel_end for p in others)])
        if part.part.channel_begin == 0 and part.part.channel_end == whole:
            parts.append(part)
        elif part.part.channel_begin == 0:
            full = part.part._replace(channel_end=whole)
            parts.append(replace(part, processor=Processor.CPU, part=full))
    return replace(plan, parts=tuple(parts))


@pytest.mark.parametrize("sharing", ["map", "copy"])
@pytest.mark.parametrize("name", NAMES)
def test_both_processors_together(name: str, sharing: Any) -> None:
    path = FOLDER / f"{name}.pbit"
    x = inputs_of(name, 2)
    with Network.load(path, device="cpu") as cpu:
        expected = cpu.forward(x)
    plan = by_rows(halves_plan(read_contents(path), by_rows=True))
    with Network.load(path, device="vulkan+cpu", plan=plan, sharing=sharing) as both:
        for _ in range(2):
            assert_same(both.forward(x), expected)
        assert both.coexec["sharing"] == sharing
        assert both.coexec["synchronization"] == "events"
        assert not both.coexec["is_on_cpu_alone"]


def test_parts_of_channels_are_told() -> None:
    plan = halves_plan(read_contents(CLASSIFIER), by_rows=False)
    with pytest.raises(DeviceError, match="cut the layer by rows"):
        Network.load(CLASSIFIER, device="vulkan+cpu", plan=plan)


def test_layers_have_times() -> None:
    with Network.load(CLASSIFIER, device="vulkan") as network:
        profile = network.profile(inputs_of("tiny_classifier", 2))
    assert [layer.latency_ms >= 0 for layer in profile] == [True] * len(profile)


@pytest.mark.parametrize(
    ("device", "options", "reason"),
    [
        ("vulkan:99", {}, r"no such device.*vulkan:0 \("),
        ("vulkan:x", {}, "unknown device"),
        ("vulkan+cpu", {"sharing": "svm"}, "has no fine-grained shared virtual memory"),
        ("vulkan+cpu", {"synchronization": "polling"}, "has no fine-grained shared virtual memory"),
        ("vulkan+cpu", {"synchronization": "user_events"}, "cannot wait for the host"),
    ],
)
def test_what_it_has_not_is_told(device: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeviceError, match=reason):
        Network.load(CLASSIFIER, device=device, **options)


def test_there_is_no_queue_of_opencl() -> None:
    with (
        Network.load(CLASSIFIER, device="vulkan") as network,
        pytest.raises(DeviceError, match=r"runs on vulkan:0 .*has no OpenCL queue"),
    ):
        _ = network.queue


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "phonebit", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_the_command_line(tmp_path: Path) -> None:
    listed = json.loads(run_cli("devices", "--json").stdout)
    assert listed["vulkan"][0]["device"] == "vulkan:0"
    ran = run_cli("bench", str(CLASSIFIER), "--device", "vulkan", "--runs", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["device"].startswith("vulkan:0 ")


def test_a_library_that_is_not_there_is_told() -> None:
    ran = run_cli(
        "bench", str(CLASSIFIER), "--device", "vulkan", PHONEBIT_VULKAN_LIBRARY="/no/libvulkan.so"
    )
    assert ran.returncode == 2
    assert "no Vulkan library could be loaded" in ran.stderr
    assert "/no/libvulkan.so" in ran.stderr
