"""Where numbers are from: the processor apart from others of its name, the commit, its age."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from benchmarks import ROOT, results_page
from benchmarks.peers.gpu import document
from benchmarks.records import provenance, run_context
from phonebit.devices import environment


def test_a_machine_is_told_from_others_of_its_name() -> None:
    context = {"cpu": "AMD EPYC", "cpu_generation": "family 25 model 17", "cores": 2,
               "commit": "abc", "date": "2026-01-01"}  # fmt: skip
    assert provenance(context, "run") == (
        "AMD EPYC (family 25 model 17), 2 cores; commit abc; 2026-01-01: `run`"
    )
    del context["cpu_generation"]
    assert provenance(context, "run").startswith("AMD EPYC, 2 cores; ")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="Arm has parts, others have neither")
def test_a_results_file_has_the_processors_family_and_the_checkouts_commit() -> None:
    context = run_context()
    assert context["cpu_generation"].startswith("family ")
    assert context["commit"] == environment.commit(ROOT)  # wherever PhoneBit is installed


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n", "family 25 model 17"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0b\n", "part 0xd0b"),
        ("processor\t: 0\n", ""),
    ],
)
def test_generations_are_read(text: str, generation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _path: text)
    assert environment.cpu_generation() == generation


def test_readmes_table_is_of_a_commit_of_late(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is of no commit" in results_page.staleness({})
    assert "is of a-dirty, which is none" in results_page.staleness({"commit": "a-dirty"})
    monkeypatch.setattr(results_page, "commits_since", lambda commit: int(commit))
    assert results_page.staleness({"commit": "100"}) == ""
    assert "101 commits ago, expected 100 at most" in results_page.staleness({"commit": "101"})


def test_no_time_of_the_device_is_above_host_to_host() -> None:
    row = {"median_ms": 0.2, "device_ms": 0.1}
    assert document._host_and_device(row) == "0.2 (0.1)"
    assert document._host_and_device(row | {"device_ms": 0.3}) == "0.2"
    assert document._host_and_device(row | {"device_ms": None}) == "0.2"
