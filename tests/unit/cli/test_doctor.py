"""``phonebit doctor``: text and JSON of a machine, also of one where something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import phonebit
from phonebit import DeviceError, Network, PhoneBitWarning
from phonebit.devices.gpus import APIS, device_name, gpu_devices
from phonebit.devices.runtime import instruction_sets
from support.cli_process import Cli


@pytest.fixture
def devices() -> set[str]:
    isas = {f"cpu:{isa.name}" for isa in instruction_sets() if isa.supported}
    return isas | {device_name(device) for api in APIS for device in gpu_devices(api)}


def test_everything_is_told(cli: Cli, devices: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEBIT_PLACE", os.path.expanduser("~/folder"))  # noqa: PTH111
    monkeypatch.setenv("SECRET", "hush")
    done = cli("doctor")
    assert done.code == 0, done.out
    lines = [line.split(maxsplit=1) for line in done.out.splitlines()]
    assert done.out.count("runs the demo's network: right") == len(devices)
    assert {name for name, text in lines if text.startswith("runs the demo")} == devices
    texts = dict(lines)
    assert texts["phonebit"].startswith(f"{phonebit.__version__}, ")
    assert f"numpy {np.__version__}" in texts["packages"]
    assert "pyopencl" in texts["[opencl]"] and "lightgbm" in texts["[planner]"]
    assert texts["environment"] != "" and "PHONEBIT_PLACE=~/folder" in done.out
    assert "hush" not in done.out
    for name in ("python", "runtime", "cpu", "energy", "frameworks"):
        assert texts[name]


def test_what_is_wrong_is_told_with_code_1(
    cli: Cli, devices: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last device fails; the one before it gives other results and warns."""
    load, allclose, (*_, wrong, failing) = Network.load, np.allclose, sorted(devices)
    current = ""

    def loaded(file: Any, device: str) -> Any:
        nonlocal current
        current = device
        if device == failing:
            raise DeviceError("no driver")
        network = load(file, device="cpu")
        if device == wrong:
            warnings.warn("a slow kernel", PhoneBitWarning, stacklevel=2)
        return network

    monkeypatch.setattr(Network, "load", loaded)
    monkeypatch.setattr(np, "allclose", lambda *a, **b: current != wrong and allclose(*a, **b))
    done = cli("doctor", "--json")
    assert done.code == 1
    found = done.document["demo"]
    assert found[failing] == {"error": "no driver", "warnings": []}
    assert found[wrong]["warnings"] == ["a slow kernel"]
    assert found[wrong]["error"].startswith("results differ from those of cpu:")
    assert sum(outcome["error"] is not None for outcome in found.values()) == 2


def test_without_the_runtime_it_says_so() -> None:
    code = (
        "import sys; sys.modules['phonebit._runtime'] = None\n"
        "from phonebit.cli.main import app; app(['doctor'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "the compiled runtime cannot be loaded" in done.stdout
    assert "numpy" in done.stdout
