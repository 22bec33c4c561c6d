"""How much of a map is lost when it is stored in fewer bits, and what the study says of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import ROOT, stored_types
from benchmarks.records import read_results


def test_bytes_are_multiples_of_a_127th_of_the_largest() -> None:
    maps = np.array([[-12.7, 0.04, 6.36], [1.27, -0.004, 0.5]], np.float32)
    found = stored_types.ways(maps, 6.35)
    per_image = [[-12.7, 0.0, 6.4], [1.27, 0.0, 0.5]]
    np.testing.assert_allclose(found["bytes, scaled per image"], per_image, atol=1e-6)
    fixed = [[-6.35, 0.05, 6.35], [1.25, 0.0, 0.5]]
    np.testing.assert_allclose(found["bytes, scale fixed by training images"], fixed, atol=1e-6)
    assert found["halves"][0, 1] == np.float16(0.04)


def test_a_loss_is_relative_and_counts_signs() -> None:
    """-0.004 becomes 0, whose sign is +1."""
    maps = np.array([[3.0, -4.0, -0.004, 0.0]], np.float32)
    stored = np.array([[3.0, -4.0, 0.0, 0.0]], np.float32)
    error, signs = stored_types.loss(maps, stored)
    assert error == pytest.approx(0.004 / 5, abs=1e-6)
    assert signs == 0.25


def test_the_study_says_what_was_measured() -> None:
    rows = read_results(stored_types.FILE)["networks"]
    text = (ROOT / "docs" / "studies" / "halves.md").read_text()
    for way in dict.fromkeys(row["stored"] for row in rows):
        own = [row for row in rows if row["stored"] == way]
        assert {row["network"] for row in own} == set(stored_types.NETWORKS)
        largest = (max(row[what] for row in own) for what in ("error", "signs"))
        error, signs = (100 * share for share in largest)
        said = re.search(
            rf"^\| {re.escape(way)} \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE
        )
        assert said, way
        assert float(said[1]) == pytest.approx(error, rel=0.06)
        assert float(said[2]) == pytest.approx(signs, abs=0.051)
