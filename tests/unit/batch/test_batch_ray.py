"""``phonebit batch`` on Ray Data: an interrupted start, then one whose actor is killed."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phonebit import DeviceError, InputError
from phonebit.batch import BatchPredictor, pipeline
from phonebit.batch.pipeline import Workers, run_batch
from phonebit.batch.results import ResultFolder
from phonebit.batch.sources import _rest, open_table

pytestmark = pytest.mark.ray
ray = pytest.importorskip("ray", reason="Ray is not installed")
IMAGES = 1500
CRASHING = """
import os
from pathlib import Path
from phonebit.batch.pipeline import ActorsBatchPredictor

class CrashingBatchPredictor(ActorsBatchPredictor):
    # As if an image's content ended the process that decodes it.
    def _read(self, images):
        contents = [Path(image).read_bytes() for image in images]
        if b"crash" in contents:
            os._exit(1)
        if b"raise" in contents:
            raise RuntimeError("out of luck")
        return super()._read(images)
"""


@pytest.fixture(scope="module", autouse=True)
def small_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Actors import from where Ray was started, and a checkout has no compiled package.
        folder = tmp_path_factory.mktemp("ray")
        (folder / "crashing.py").write_text(CRASHING)
        patch.syspath_prepend(folder)
        patch.chdir(folder)
        ray.init(
            "local", num_cpus=1, object_store_memory=100 << 20, include_dashboard=False,
            log_to_driver=False,
        )  # fmt: skip
        yield
        ray.shutdown()


def test_a_killed_actor_and_an_interruption_lose_and_repeat_nothing(
    u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (tmp_path / "broken").write_text("broken")
    files = [*images, tmp_path / "broken"]
    for number in range(IMAGES):
        (source / f"{number}.png").symlink_to(files[number % len(files)])
    killed: list[int] = []

    def interrupt(total: int | None, rows: int) -> None:
        if rows:
            raise KeyboardInterrupt

    def kill(total: int | None, rows: int) -> None:
        if rows and not killed:
            killed.append(own_actor())
            os.kill(killed[0], signal.SIGKILL)

    def start(progress: Any) -> Any:
        return run_batch(
            str(source), out, u8_file, options={}, workers=Workers(batch=15), progress=progress
        )

    with pytest.raises(KeyboardInterrupt):
        start(interrupt)
    before = pq.read_table(out).num_rows
    assert 0 < before < IMAGES
    summary = start(kill)
    assert killed and (summary.done_before, summary.images) == (before, IMAGES - before)
    found = pq.read_table(out).to_pydict()
    numbers = [int(Path(path).stem) for path in found["path"]]
    assert sorted(numbers) == list(range(IMAGES))
    broken = [n for n, error in zip(numbers, found["error"], strict=True) if error]
    assert sorted(broken) == list(range(len(images), IMAGES, len(files)))
    classes: dict[int, set[int]] = {}
    for number, index in zip(numbers, found["class_index"], strict=True):
        classes.setdefault(number % len(files), set()).add(index)
    assert all(len(indices) == 1 for indices in classes.values()) and len(classes) == len(files)
    assert start(interrupt).images == 0


def own_actor() -> int:
    import psutil  # Ray brings it

    return next(
        process.pid
        for process in psutil.Process().children(recursive=True)
        if "BatchPredictor" in " ".join(process.cmdline())
    )


def crashing_predictor() -> type[BatchPredictor]:
    kind: type[BatchPredictor] = importlib.import_module("crashing").CrashingBatchPredictor
    return kind


def test_an_exception_in_an_actor_ends_the_batch(
    u8_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ActorsBatchPredictor", crashing_predictor())
    (tmp_path / "0.png").write_bytes(b"raise")
    with pytest.raises(DeviceError, match=r"ended early \(got out of luck\)"):
        run_batch(str(tmp_path), tmp_path / "out", u8_file, options={}, workers=Workers())


def test_an_image_that_ends_its_worker_is_a_row_with_an_error(
    u8_file: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr(pipeline, "ActorsBatchPredictor", crashing_predictor())
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "4.png").write_bytes(b"crash")
    for number in {*range(24)} - {4}:
        (source / f"{number}.png").symlink_to(images[number % len(images)])

    def start() -> Any:
        return run_batch(str(source), out, u8_file, options={}, workers=Workers(batch=2))

    summary = start()
    assert (summary.images, summary.errors) == (24, 1)
    found = pq.read_table(out).to_pydict()
    errors = {Path(p).stem: text for p, text in zip(found["path"], found["error"], strict=True)}
    assert sorted(errors, key=int) == [str(number) for number in range(24)]
    assert "ended, 3 times" in errors["4"] and [n for n, text in errors.items() if text] == ["4"]
    assert start().images == 0


def test_workers_that_always_end_end_the_batch(
    u8_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ActorsBatchPredictor", crashing_predictor())
    monkeypatch.setattr(pipeline, "PROBED", 1)
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(b"crash")
    with pytest.raises(DeviceError, match=r"ended early.*process ended before it had a result"):
        run_batch(str(tmp_path), tmp_path / "out", u8_file, options={}, workers=Workers(batch=2))


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with (
            pytest.raises(DeviceError, match=rf"^{address}: no Ray cluster there .*refused"),
            pipeline._connected(Workers(address)),
        ):
            pass


def test_tables_without_done_rows_and_boxes_in_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "image": [b"", b"", b""]})
    assert _rest(table, "id", [ray.put(pa.array([3, 1, 9]))])["id"].to_pylist() == [2]
    folder = ResultFolder(tmp_path / "out", "parquet", "id", {})
    box = {"index": 0, "label": "car", "score": 0.5, "box": [0.0, 1.0, 2.0, 3.0]}
    for number, boxes in enumerate(([], [box])):
        folder.add({"id": [number], "detections": [boxes], "error": [""]})
        folder.write()
    assert pq.read_table(folder.path)["detections"].to_pylist() == [[], [box]]
    assert folder.done() == [0, 1]
    with pytest.raises(InputError, match=r"no such reader .*parquet"):
        open_table("x", "pictures", None, None)
