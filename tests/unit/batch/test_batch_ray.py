"""``phonebit batch`` on Ray Data: an interrupted start, then one whose actor is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from phonebit.batch.pipeline import Workers, run_batch
from phonebit.converter.writer import to_bytes
from support.cli_process import Cli
from support.detector_graph import CELL, SIDE, cell_detector

pytestmark = pytest.mark.ray
ray = pytest.importorskip("ray", reason="Ray is not installed")
FILES, ROWS = 12, 200


@pytest.fixture(scope="module", autouse=True)
def small_ray() -> Iterator[None]:
    ray.init(
        "local", num_cpus=2, object_store_memory=100 << 20, include_dashboard=False,
        log_to_driver=False,
    )  # fmt: skip
    yield
    ray.shutdown()


def test_a_killed_actor_and_an_interruption_lose_and_repeat_nothing(
    u8_file: Path, pictures: list[Path], tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    contents = [picture.read_bytes() for picture in pictures] + [b"broken"]
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    for file in range(FILES):
        ids = list(range(file * ROWS, (file + 1) * ROWS))
        table = {"id": ids, "image": [contents[i % len(contents)] for i in ids]}
        pq.write_table(pa.table(table), source / f"{file}.parquet")
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
            str(source), out, u8_file, options={}, workers=Workers(batch=50), progress=progress
        )

    with pytest.raises(KeyboardInterrupt):
        start(interrupt)
    before = pq.read_table(out).num_rows
    assert 0 < before < FILES * ROWS
    summary = start(kill)
    assert killed and (summary.done_before, summary.images) == (before, FILES * ROWS - before)
    found = pq.read_table(out).to_pydict()
    assert sorted(found["id"]) == list(range(FILES * ROWS))
    broken = [i for i, error in zip(found["id"], found["error"], strict=True) if error]
    assert sorted(broken) == list(range(len(pictures), FILES * ROWS, len(contents)))
    classes: dict[int, set[int]] = {}
    for number, index in zip(found["id"], found["class_index"], strict=True):
        classes.setdefault(number % len(contents), set()).add(index)
    assert all(len(indices) == 1 for indices in classes.values()) and len(classes) == len(contents)
    assert start(interrupt).images == 0


def own_actor() -> int:
    import psutil  # Ray brings it

    return next(
        process.pid
        for process in psutil.Process().children(recursive=True)
        if "BatchPredictor" in process.name() + " ".join(process.cmdline())
    )


def test_boxes_of_files_by_the_command(cli: Cli, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "cells.pbit").write_bytes(to_bytes(cell_detector()))
    (tmp_path / "images").mkdir()
    levels = np.zeros((SIDE, SIDE, 3), np.uint8)
    Image.fromarray(levels).save(tmp_path / "images" / "a.png")
    levels[:CELL, :CELL] = (255, 0, 0)
    Image.fromarray(levels).save(tmp_path / "images" / "b.png")
    (tmp_path / "images" / "c.png").write_text("broken")
    command = ("batch", tmp_path / "images", "-o", tmp_path / "out", "--batch", 1, "--model",
               tmp_path / "cells.pbit")  # fmt: skip
    done = cli(*command, "--json")
    assert done.code == 0, done.err
    assert (done.document["images"], done.document["errors"]) == (3, 1)
    found = pq.read_table(tmp_path / "out").to_pydict()
    assert [Path(path).name for path in found["path"]] == ["a.png", "b.png", "c.png"]
    assert [len(boxes) for boxes in found["detections"]] == [0, 1, 0]
    assert found["detections"][1][0]["box"] == [0.0, 0.0, CELL, CELL]
    assert "3 done before" in cli(*command).out
    assert "another limits" in cli.refused(*command, "--score", 0.5)
    assert "no such reader" in cli.refused(*command, "--reader", "pictures")
