"""The folder of results without Ray: parts, another start, what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from phonebit import InputError
from phonebit.batch import results
from phonebit.batch.results import ResultFolder, missing
from phonebit.batch.sources import listed_paths
from support.cli_process import Cli

JOB = {"model_sha256": "1", "precision": "exact"}


def rows(*ids: str) -> dict[str, list[object]]:
    errors = ["broken" if one == "bad" else "" for one in ids]
    return {"path": [*ids], "probability": [np.nan] * len(ids), "error": [*errors]}


def test_another_start_finds_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new" / "out"
    monkeypatch.setattr(results, "PART_ROWS", 3)
    first = ResultFolder(folder, "jsonl", "path", JOB)
    assert first.done() == []
    first.add(rows("a", "bad"))
    assert not list(folder.glob("part-*"))
    first.add(rows("c"))  # a whole part; what comes after it is lost with the process
    first.add(rows("d"))
    assert (first.rows, first.errors) == (4, 1)
    (folder / ".part-0.jsonl.1-ab").write_text("cut sh")  # left by a process that was killed
    second = ResultFolder(folder, "jsonl", "path", JOB)
    assert second.done() == ["a", "bad", "c"]
    assert missing(["d", "a", "e", "d"], second.done()) == ["d", "e"]
    second.add(rows("d", "e"))
    second.write()
    second.write()
    lines = [line for part in folder.glob("part-*") for line in part.read_text().splitlines()]
    assert sorted(json.loads(line)["path"] for line in lines) == ["a", "bad", "c", "d", "e"]
    assert json.loads(lines[0])["probability"] is None


def test_folders_of_something_else_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ResultFolder(folder, "jsonl", "path", JOB)
    with pytest.raises(InputError, match="another model_sha256"):
        ResultFolder(folder, "jsonl", "path", {**JOB, "model_sha256": "2"})
    with pytest.raises(InputError, match="another format, id"):
        ResultFolder(folder, "parquet", "id", JOB)
    (folder / "part-1.jsonl").write_text('{"path": ')
    with pytest.raises(InputError, match="damaged part"):
        ResultFolder(folder, "jsonl", "path", JOB).done()
    with pytest.raises(InputError, match="not empty"):
        ResultFolder(tmp_path, "jsonl", "path", JOB)


def test_folders_and_lists_name_images(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.png", "deep/a.jpg", "notes.md"):
        (tmp_path / name).touch()
    (tmp_path / "list.txt").write_text("b.png\n\n deep/a.jpg \ngone.png\n")
    found = [str(tmp_path / name) for name in ("b.png", "deep/a.jpg")]
    assert listed_paths(str(tmp_path)) == found
    assert listed_paths(str(tmp_path / "list.txt")) == [*found, str(tmp_path / "gone.png")]
    (tmp_path / "x.parquet").touch()
    assert listed_paths(str(tmp_path)) is None
    (tmp_path / "list.txt").write_text("\n")
    with pytest.raises(InputError, match="no images in it"):
        listed_paths(str(tmp_path / "list.txt"))


def test_without_ray_the_command_says_how_to_install_it(
    cli: Cli, u8_file: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    command = ("batch", u8_file, images[0].parent, "-o", tmp_path / "out")
    assert "pip install 'phonebit[ray]'" in cli.refused(*command)
    assert "what boxes the output means" in cli.refused(*command, "--score", 0.5)
    gone = cli.refused("batch", u8_file, tmp_path / "gone", "-o", tmp_path / "out")
    assert "gone: no such file" in gone
    assert "--id" in cli.refused(*command, "--id", "path", "--json")
    assert not (tmp_path / "out").exists()
