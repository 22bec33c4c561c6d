"""``phonebit batch`` on Ray Data: an interrupted start, then one whose actor is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phonebit import DeviceError, InputError
from phonebit.batch import pipeline
from phonebit.batch.pipeline import Workers, run_batch
from phonebit.batch.results import ResultFolder
from phonebit.batch.sources import _rest, open_table

pytestmark = pytest.mark.ray
ray = pytest.importorskip("ray", reason="Ray is not installed")
IMAGES = 1500


@pytest.fixture(scope="module", autouse=True)
def small_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Actors import from where Ray was started, and a checkout has no compiled package.
        patch.chdir(tmp_path_factory.mktemp("ray"))
        ray.init(
            "local", num_cpus=1, object_store_memory=100 << 20, include_dashboard=False,
            log_to_driver=False,
        )  # fmt: skip
        yield
        ray.shutdown()


def test_a_killed_actor_and_an_interruption_lose_and_repeat_nothing(
    u8_file: Path, pictures: list[Path], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (tmp_path / "broken").write_text("broken")
    files = [*pictures, tmp_path / "broken"]
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
    assert sorted(broken) == list(range(len(pictures), IMAGES, len(files)))
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
