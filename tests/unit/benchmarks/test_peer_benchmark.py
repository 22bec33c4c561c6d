"""The benchmark with other engines, with workers that behave and workers that do not."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import ROOT
from benchmarks.command_line import last_error
from benchmarks.peers import document as tables
from benchmarks.peers import machines
from benchmarks.peers.formats import export
from benchmarks.peers.harness import files as files_module
from benchmarks.peers.harness import measure as measure_module
from benchmarks.peers.harness.catalogue import (
    KINDS,
    SUBJECTS,
    Contender,
    Subject,
    contenders_for,
    kinds_for,
)
from benchmarks.peers.harness.files import ExportError, Files
from benchmarks.peers.harness.measure import compare_results, measure
from benchmarks.peers.harness.worker_process import WorkerError, WorkerProcess
from benchmarks.rounds import take_turns

pytestmark = pytest.mark.slow

QUIET_LIMIT_S = 60.0
"""For a Python process to start and import NumPy on a busy machine."""

WORKER = """
import itertools, json, os, sys, time
import numpy as np
from benchmarks.peers.worker import Engine, planes

def load(task):
    print("engines print things")
    mode = task.variant
    if mode == "absent":
        import an_engine_that_is_not_installed
    def prepare(pictures):
        given = planes(pictures) if mode == "planes" else pictures
        passes = itertools.count()
        def forward():
            count = next(passes)
            if count == 3 and mode == "crash":
                print("out of ideas", file=sys.stderr, flush=True)
                os.abort()
            if count == 3 and mode == "slow":
                time.sleep(1000)
            if count == 3 and mode == "error":
                raise ValueError("the third pass is one too many")
            return given * (2 if mode == "wrong" else 1)
        return forward
    return Engine(
        prepare, "1.5", task.model, mode == "planes", ("a note",), {"programs": 3},
        nodes_ms=(lambda: [("conv1", 0.5), ("copy", 0.25)]) if mode == "nodes" else None,
    )
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return write_worker(tmp_path, monkeypatch)


def write_worker(folder: Path, patch: pytest.MonkeyPatch, text: str = WORKER) -> str:
    """The name of a module that processes started from now on find."""
    (folder / "fakes").mkdir()
    (folder / "fakes" / "fake_worker.py").write_text(text)
    patch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    return "fakes.fake_worker"


def task(folder: Path, variant: str = "") -> dict[str, Any]:
    image = folder / "image.npy"
    np.save(image, np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3))
    model = folder / "network.bin"
    model.write_bytes(b"12345")
    (folder / "libengine.so.1").write_bytes(bytes(100))
    return {"model": str(model), "image": str(image), "threads": 1, "cores": [],
            "variant": variant}  # fmt: skip


def test_a_worker_answers_every_request(module: str, tmp_path: Path) -> None:
    worker = WorkerProcess(module, task(tmp_path, "nodes"), QUIET_LIMIT_S)
    assert (worker.ready["version"], worker.ready["notes"]) == ("1.5", ["a note"])
    assert worker.ready["startup"] == {"programs": 3}
    assert worker.start_ms > worker.ready["load_ms"] > 0
    assert worker.ask("batch 1", QUIET_LIMIT_S)["first_ms"] > 0
    (once,) = worker.ask("run 0 0", QUIET_LIMIT_S)["ms"]
    often = worker.ask(f"run 0 {100 * once / 1e3}", QUIET_LIMIT_S)["ms"]
    assert once > 0 and min(often) > 0 and sum(often) >= 100 * once
    assert worker.ask(f"output {tmp_path / 'out.npy'}", QUIET_LIMIT_S) == {"shape": [1, 2, 4, 3]}
    assert worker.ask("nodes", QUIET_LIMIT_S)["ms"] == [["conv1", 0.5], ["copy", 0.25]]
    assert worker.ask("device 5", QUIET_LIMIT_S) == {"ms": None}
    worker.ask("batch 3", QUIET_LIMIT_S)
    worker.ask(f"output {tmp_path / 'three.npy'}", QUIET_LIMIT_S)
    first, three = np.load(tmp_path / "out.npy"), np.load(tmp_path / "three.npy")
    assert np.array_equal(three, np.repeat(first, 3, axis=0)), "one image, three times"
    end = worker.ask("end", QUIET_LIMIT_S)
    assert end["peak_mib"] > 1
    assert (end["library_bytes"], end["loaded_library_bytes"]) == (100, 0)
    worker.stop()


@pytest.mark.parametrize("request_line", ["jump", "run 1", "batch two"])
def test_a_worker_reports_what_it_does_not_understand(
    module: str, tmp_path: Path, request_line: str
) -> None:
    worker = WorkerProcess(module, task(tmp_path), QUIET_LIMIT_S)
    with pytest.raises(WorkerError, match=request_line.split()[-1]):
        worker.ask(request_line, QUIET_LIMIT_S)


def test_results_with_channels_first_are_compared_with_channels_last(
    module: str, tmp_path: Path
) -> None:
    worker = WorkerProcess(module, task(tmp_path, "planes"), QUIET_LIMIT_S)
    worker.ask("batch 1", QUIET_LIMIT_S)
    worker.ask(f"output {tmp_path / 'out.npy'}", QUIET_LIMIT_S)
    worker.stop()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.load(tmp_path / "image.npy"))


def test_an_engine_that_is_not_installed_is_named(module: str, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="an_engine_that_is_not_installed"):
        WorkerProcess(module, task(tmp_path, "absent"), QUIET_LIMIT_S)


def test_a_crash_names_the_signal_and_the_last_words(module: str, tmp_path: Path) -> None:
    worker = WorkerProcess(module, task(tmp_path, "crash"), QUIET_LIMIT_S)
    worker.ask("batch 1", QUIET_LIMIT_S)
    with pytest.raises(WorkerError, match=r"signal 6 at 'run 0 0'.*out of ideas"):
        for _ in range(4):
            worker.ask("run 0 0", QUIET_LIMIT_S)


def test_an_exception_in_an_inference_is_the_reason(module: str, tmp_path: Path) -> None:
    worker = WorkerProcess(module, task(tmp_path, "error"), QUIET_LIMIT_S)
    worker.ask("batch 1", QUIET_LIMIT_S)
    with pytest.raises(WorkerError, match="ValueError: the third pass"):
        for _ in range(4):
            worker.ask("run 0 0", QUIET_LIMIT_S)


def test_a_worker_that_hangs_is_stopped(module: str, tmp_path: Path) -> None:
    worker = WorkerProcess(module, task(tmp_path, "slow"), QUIET_LIMIT_S)
    worker.ask("batch 1", QUIET_LIMIT_S)
    worker.ask("run 0 0", QUIET_LIMIT_S)
    with pytest.raises(WorkerError, match=r"no answer to 'run 0 0' within 0.2 s"):
        worker.ask("run 0 0", 0.2)
    assert worker._process.returncode is not None


@pytest.mark.parametrize("answer", ["hello", "[1, 2]", ""])
def test_an_answer_that_is_no_json_object_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    text = f"import time; print({answer!r}, flush=True); time.sleep(1000)"
    module = write_worker(tmp_path, monkeypatch, text)
    with pytest.raises(WorkerError, match="no JSON object in answer to 'start'"):
        WorkerProcess(module, {}, QUIET_LIMIT_S)


def test_an_interpreter_that_is_not_there_is_a_reason(module: str, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="/no/python cannot be started"):
        WorkerProcess(module, task(tmp_path), QUIET_LIMIT_S, python="/no/python")


def times(*values: float) -> Any:
    endless = itertools.cycle(values)
    return lambda: next(endless)


def test_engines_take_turns_until_the_time_is_used_up() -> None:
    order: list[str] = []
    clock = itertools.count(step=1.0)

    def turn(name: str) -> Any:
        return lambda: (order.append(name), {"total": 1.0})[1]

    candidates = {"a": turn("a"), "b": turn("b")}
    rounds = take_turns(
        candidates, 5, maximum=40, budget_s=12, noise_ms=times(1.0), clock=lambda: next(clock)
    )
    assert order == ["a", "b"] * len(rounds.noise_ms)
    assert 5 < len(rounds.noise_ms) < 40
    assert len(take_turns(candidates, 5, maximum=40, noise_ms=times(1.0)).noise_ms) == 5


def test_a_failing_engine_leaves_and_the_others_go_on() -> None:
    turns = iter([{"total": 1.0}, {"total": 1.0}])

    def failing() -> dict[str, float]:
        try:
            return next(turns)
        except StopIteration:
            raise WorkerError("gone") from None

    candidates = {"good": lambda: {"total": 2.0}, "bad": failing}
    rounds = take_turns(candidates, 5, expected=(WorkerError,), noise_ms=times(1.0))
    assert list(rounds.times) == ["good"]
    assert str(rounds.failures["bad"]) == "gone"
    assert len(rounds.noise_ms) == 5


def test_disturbed_rounds_do_not_count() -> None:
    ours, peer = times(1, 1, 50, 1, 1), times(10, 12, 10, 14, 16)
    noise_ms = times(1.0, 1.0, 1.0, 1.3, 1.0, 1.1)  # the third and the fourth round have the 1.3
    candidates = {"ours": lambda: {"total": ours()}, "peer": lambda: {"total": peer()}}
    rounds = take_turns(candidates, 5, noise_ms=noise_ms)
    assert rounds.counted == rounds.steady == [0, 1, 4]
    summary = rounds.summary("peer", "ours")
    assert (summary["median_ms"], summary["min_ms"], summary["ratio"]) == (12, 10, 12)
    assert (summary["p10_ms"], summary["p90_ms"]) == pytest.approx((10.4, 15.2))


def test_if_hardly_a_round_is_quiet_all_count_and_it_is_said() -> None:
    noise_ms = times(1.0, 1.0, 2.0, 2.0, 2.0, 2.0)
    rounds = take_turns({"ours": lambda: {"total": 1.0}}, 5, noise_ms=noise_ms)
    assert rounds.steady == [0]
    assert rounds.counted == list(range(5))


def test_results_are_judged_by_their_largest_difference() -> None:
    reference = np.array([[1, 2, 4]], np.float32)
    close = compare_results(reference + np.float32([0, 0.004, 0]), reference)
    assert close == {
        "equal": False,
        "finite": True,
        "difference": pytest.approx(1e-3, rel=1e-3),
    }
    assert compare_results(reference * 2, reference)["difference"] == 1
    assert compare_results(reference, reference)["equal"]
    assert compare_results(reference * np.nan, reference) == {"equal": False, "finite": False}
    with pytest.raises(WorkerError, match="2 numbers, expected 3"):
        compare_results(reference[:, :2], reference)


# --- files ----------------------------------------------------------------------------------------

ZOO = Subject("fake", "Fake", None, "fake", 4)


def exporter(folder: Path, body: str) -> Files:
    """Files whose Python is a shell script: -m MODULE KIND NETWORK FOLDER ..."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\necho $3 >> {folder / 'calls'}\n{body}\n")
    python.chmod(0o755)
    names = ("phonebit", "peers", "tensorflow")
    return Files(folder / "work", dict.fromkeys(names, str(python)), "f16")  # type: ignore[arg-type]


def test_files_are_written_once(tmp_path: Path) -> None:
    files = exporter(tmp_path, 'echo made > "$5/float.onnx"')
    for _ in range(2):
        files.ensure(ZOO, KINDS["onnx"])
    assert (tmp_path / "calls").read_text() == "onnx\n"
    assert files.size_bytes(ZOO, "onnx") == 5


def test_files_are_written_again_if_their_sources_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = exporter(tmp_path, "")
    files.ensure(ZOO, KINDS["onnx"])
    monkeypatch.setattr(files_module, "_hash", lambda paths: "other")
    files.ensure(ZOO, KINDS["onnx"])
    assert (tmp_path / "calls").read_text() == "onnx\nonnx\n"


def test_the_last_exception_is_the_reason() -> None:
    text = "KeyError: 1\n\nDuring handling\nnncf.errors.ValidationError: no\n  such op: Conv\n"
    assert last_error(text) == "nncf.errors.ValidationError: no such op: Conv"
    assert last_error("one\ntwo\n") == "two"
    assert last_error("") == ""


def test_a_failed_export_gives_its_exception(tmp_path: Path) -> None:
    files = exporter(tmp_path, "echo Traceback >&2; echo 'ValueError: no such op' >&2; exit 1")
    with pytest.raises(ExportError, match=r"float.onnx failed: ValueError: no such op"):
        files.ensure(ZOO, KINDS["onnx"])
    with pytest.raises(ExportError, match=r"float.onnx, from which it is made, is not there"):
        files.ensure(ZOO, KINDS["onnx_int8"])


def test_every_file_has_a_writer() -> None:
    own = {name.removeprefix("write_") for name in vars(export) if name.startswith("write_")}
    assert own | export.SAVERS.keys() == KINDS.keys()
    assert not own & export.SAVERS.keys()


def test_every_file_comes_after_those_that_it_needs() -> None:
    for subject in SUBJECTS:
        names = [kind.name for kind in kinds_for(subject, contenders_for(subject))]
        assert len(names) == len(set(names))
        for index, name in enumerate(names):
            assert set(KINDS[name].needs) <= set(names[:index])
        assert ("zoo" in names) == (subject.zoo is not None)
        assert ("reference" in names) == (subject.definition is not None)


# --- a whole measurement --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Results of five engines, of which two are sound, as JSON."""
    tmp_path = tmp_path_factory.mktemp("measured")
    files = exporter(tmp_path, "")
    python = dict.fromkeys(files.pythons, sys.executable)
    files = Files(files.work, python, "f16")  # type: ignore[arg-type]
    folder = files.folder(ZOO)
    folder.mkdir(parents=True)
    np.save(folder / "image_f32.npy", np.ones((1, 2, 4, 3), np.float32))
    for name in ("network.pbit", "larq.tflite"):
        (folder / name).write_bytes(bytes(1000))

    def contender(engine: str, kind: str, variant: str) -> Contender:
        return Contender(engine, engine.title(), "fake", "binary", "phonebit", kind, variant)

    contenders = [
        contender("phonebit", "pbit", ""),
        contender("larq", "larq", ""),
        contender("larq_wrong", "larq", "wrong"),
        contender("larq_crash", "larq", "crash"),
        contender("openvino", "openvino_binary", ""),
    ]
    failures = {"openvino_binary": "no | converter"}
    with pytest.MonkeyPatch.context() as patch:
        write_worker(tmp_path, patch)
        patch.setattr(measure_module, "WORKERS", "fakes")
        cases = [measure(ZOO, 1, batch, contenders, files, failures, 0) for batch in (1, 2)]
    context = {"date": "2026-01-01", "cpu": "A CPU", "cores": 1, "phonebit": "1", "commit": ""}
    settings = {"canary_limit": 1.15, "float_weights": "f16"}
    return json.dumps({"context": context, "settings": settings, "cases": cases})


@pytest.fixture
def document(measured: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same, for one test to change."""
    monkeypatch.setattr(tables, "SUBJECTS", (ZOO,))
    result: dict[str, Any] = json.loads(measured)
    return result


def test_a_measurement_has_a_row_for_every_engine(document: dict[str, Any]) -> None:
    for case in document["cases"]:
        ours, larq, wrong, crash, absent = case["rows"]
        assert (ours["ratio"], ours["agreement"], ours["model_bytes"]) == (1, None, 1000)
        assert larq["agreement"]["agrees"] and larq["median_ms"] > 0
        assert not wrong["agreement"]["agrees"] and wrong["median_ms"] > 0
        assert "signal 6" in crash["reason"] and "median_ms" not in crash
        assert absent["reason"] == "no | converter"


def test_the_page_shows_numbers_and_reasons(document: dict[str, Any]) -> None:
    page = tables.render(document)
    assert "### Fake, 4x4, batch 1" in page and "### Fake, 4x4, batch 2" in page
    assert "| Larq_Wrong | binary |" in page and "**differs** 1e+00" in page
    assert "- Larq_Crash, binary, 1 thread: died of signal 6" in page
    assert "- Openvino, binary, 1 thread: no | converter" in page


def test_ratios_and_times_have_no_exponents() -> None:
    assert [tables.times_faster(ratio) for ratio in (0.5, 9.94, 10.2, 174.8)] == [
        "0.5x", "9.9x", "10x", "175x"]  # fmt: skip
    assert [tables.three_digits(ms) for ms in (0.1234, 12.34, 2368.4)] == ["0.123", "12.3", "2368"]


def test_cases_with_fewer_engines_stand_in_the_same_table(document: dict[str, Any]) -> None:
    second = document["cases"][1]
    second |= {"batch": 1, "threads": 2, "rows": second["rows"][:1]}
    page = tables.render(document)
    assert "- Larq, binary, 2 threads: not asked for" in page


def test_streams_are_measured_in_batches_only() -> None:
    def engines(batch: int) -> set[str]:
        return {each.engine for each in contenders_for(SUBJECTS[0]) if each.runs(batch)}

    assert engines(8) - engines(1) == {"openvino_streams"}


def case_of(network: str, batch: int, threads: int, **ratios: float) -> dict[str, Any]:
    """Rows by ``engine__precision``; PhoneBit takes 2 ms on one thread."""
    rows = [
        {
            "engine": key.split("__")[0],
            "title": key,
            "precision": key.split("__")[1].replace("_", ", "),
            "ratio": ratio,
            "median_ms": ratio * 2 / threads,
            "agreement": None,
        }
        for key, ratio in {"phonebit__binary": 1.0, **ratios}.items()
    ]
    return {"network": network, "batch": batch, "threads": threads, "rows": rows}


def test_goals_are_judged_by_the_engine_that_they_name() -> None:
    cases = [
        case_of("quicknet", 1, 1, phonebit__binary_int8=0.5, openvino__binary=1.2),
        case_of("quicknet", 1, 2),
        case_of("quicknet", 8, 2, openvino__binary=3.0, openvino_streams__binary=1.5),
        case_of("alexnet", 8, 2, openvino__int8=5.0, openvino_streams__int8=4.2, openvino__f32=9.0),
    ]
    document = {"cases": cases}
    text = machines.goals(document)
    assert text.startswith("Goals: 3 of 16 met (bold), 2 not, 11 not measured.")
    cells = "1.20x of 1.4x | **2.40x of 2x** | **2.00x of 1.6x** | 1.50x of 2x |  |"
    assert f"| QuickNet | {cells}" in text
    assert "| AlexNet |  |  | - of 1.6x |  | **4.20x of 4x** |" in text
    assert machines.short_table(document).splitlines()[2:] == [
        "| AlexNet | 8 | 2 | 1 | - | - | - | 5 **5.0x** | 4.2 **4.2x** | 9 **9.0x** |",
        "| QuickNet | 1 | 1 | 2 | 1 **0.5x** | 2.4 **1.2x** | - | - | - | - |",
        "| QuickNet | 1 | 2 | 1 | - | - | - | - | - | - |",
        "| QuickNet | 8 | 2 | 1 | - | 3 **3.0x** | 1.5 **1.5x** | - | - | - |",
    ]


def test_readme_compares_with_the_fastest_that_is_right(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = document["cases"][0]["rows"]
    rows[0]["median_ms"], rows[1]["median_ms"], rows[2]["median_ms"] = 2.0, 40.04, 0.001
    monkeypatch.setattr(tables, "read_results", lambda _file: document)
    line = tables.readme_table().splitlines()[2]
    assert line == "| Fake | - | - | - / 40 | 2 |"
