"""What tests make of an OpenCL driver that computes wrongly: planted here."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import support.opencl_device
from support.opencl_device import (
    FAULT,
    SOUND_DRIVERS,
    check_warnings,
    driver_fault,
    judging_the_driver,
)

SELF_TEST = "kernel bgemv failed the self-test on X and is disabled: 3 of 4 words differ"


@pytest.fixture(autouse=True)
def _driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    platform = SimpleNamespace(name="Platform")
    device = SimpleNamespace(
        platform=platform, driver_version="3.1", name="Device ", version="OpenCL 3.0 X"
    )
    monkeypatch.setattr(support.opencl_device, "pyopencl_device", lambda: device)
    monkeypatch.delenv(SOUND_DRIVERS, raising=False)
    yield


def test_a_fault_is_a_skip_that_names_the_driver() -> None:
    expected = rf"{FAULT} Platform 3\.1 \(Device, OpenCL 3\.0 X\): bgemv: 1 word"
    with pytest.raises(pytest.skip.Exception, match=expected):
        driver_fault("bgemv: 1 word")


def test_a_fault_of_a_driver_known_as_sound_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOUND_DRIVERS, "1")
    for blame in (lambda: driver_fault("x"), lambda: check_warnings([SELF_TEST])):
        with pytest.raises(pytest.fail.Exception, match=FAULT):
            blame()


def test_only_the_self_tests_warnings_are_the_drivers() -> None:
    check_warnings([])
    with pytest.raises(pytest.skip.Exception, match="bgemv failed the self-test"):
        check_warnings([SELF_TEST])
    with pytest.raises(AssertionError, match="another"):
        check_warnings([SELF_TEST, "another"])


def test_results_are_the_drivers_once_a_kernel_ran() -> None:
    is_skipped = pytest.raises(pytest.skip.Exception, match="bgemv: 3 words differ")
    with is_skipped, judging_the_driver({"bgemv"}):
        raise AssertionError("\n3 words differ\nat 7")
    with pytest.raises(AssertionError, match="3 words differ"), judging_the_driver(set()):
        raise AssertionError("3 words differ")
    with pytest.raises(ValueError, match="other"), judging_the_driver({"bgemv"}):
        raise ValueError("other")
