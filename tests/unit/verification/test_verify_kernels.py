"""Where a framework's default kernels do not give what its reference kernels give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import phonebit
from phonebit.verification import VerificationReport
from phonebit.verification.default_kernels import DefaultKernels

LCE = Path(__file__).parents[2] / "converter" / "fixtures" / "lce"


def verified(name: str, tmp_path: Path) -> VerificationReport:
    pytest.importorskip("larq_compute_engine", reason="Larq Compute Engine is not installed")
    phonebit.convert(LCE / f"{name}.tflite", tmp_path / "net.pbit")
    return phonebit.verify(LCE / f"{name}.tflite", tmp_path / "net.pbit", device="cpu")


@pytest.mark.framework
def test_kernels_of_larq_compute_engine_that_disagree_are_named(tmp_path: Path) -> None:
    """Its default kernels are wrong on maps that are smaller than a kernel and padded with 0."""
    report = verified("real_results", tmp_path)
    assert report.passed  # PhoneBit equals the reference kernels
    assert report.default_kernels is not None
    differing = {name for name, count in report.default_kernels.differing.items() if count}
    assert differing & set(report.default_kernels.outputs)
    assert "default kernels differ from its reference kernels" in report.default_kernels.text
    assert not report.to_dict()["default_kernels"]["equal"]


@pytest.mark.framework
def test_kernels_that_agree_are_not_mentioned(tmp_path: Path) -> None:
    report = verified("integers", tmp_path)
    assert report.passed
    assert report.default_kernels is not None
    assert report.default_kernels.samples == report.samples
    assert report.default_kernels.text == ""


def test_differences_are_counted_over_batches_and_the_first_value_is_named() -> None:
    def values(conv: list[float], scores: list[list[float]]) -> dict[str, np.ndarray]:
        shape = (len(scores), 1, 1, -1)
        return {"conv": np.array(conv).reshape(shape), "scores": np.array(scores).reshape(shape)}

    found = DefaultKernels(["scores"])
    found.add(values([1, 2], [[1, 0], [1, 0]]), values([1, 2], [[1, 0.5], [1, 0]]))
    found.add(values([1, 2], [[1, 0], [0, 1]]), values([1, 3], [[1, 0], [2, 1]]))
    assert (found.differing, found.samples) == ({"conv": 1, "scores": 2}, 4)
    assert "first at conv (1 of 4 elements), in 2 of 8 elements of the outputs" in found.text
    assert "in the class of 1 of 4 inputs" in found.text
