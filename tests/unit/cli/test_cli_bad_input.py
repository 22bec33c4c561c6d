"""Bad input on the command line: one clear line, exit code 2, no traceback, nothing overwritten."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

from phonebit.cli.main import app
from phonebit.converter.convert import convert
from phonebit.errors import ConversionError, InputError, UnsupportedLayerError
from phonebit.images.image_files import _standard_input
from phonebit.images.labels import read_labels
from support.cli_process import Cli


@pytest.mark.parametrize("command", ["inspect", "bench"])
def test_a_missing_file_a_folder_and_a_truncated_file(
    cli: Cli, u8_file: Path, tmp_path: Path, command: str
) -> None:
    assert "no such file" in cli.refused(command, tmp_path / "no.pbit")
    assert "s a directory" in cli.refused(command, tmp_path)
    cut = tmp_path / "cut.pbit"
    for keep in (0, 10, 100, 5000):
        cut.write_bytes(u8_file.read_bytes()[:keep])
        assert "cut.pbit" in cli.refused(command, cut)


def test_an_image_where_a_network_should_be(cli: Cli, images: list[Path]) -> None:
    assert images[0].name in cli.refused("run", images[0], images[0])


def test_unreadable_images(cli: Cli, u8_file: Path, images: list[Path], tmp_path: Path) -> None:
    text = tmp_path / "text.png"
    text.write_text("no image")
    assert "not an image" in cli.refused("run", u8_file, text)
    cut = tmp_path / "cut.png"
    cut.write_bytes(images[0].read_bytes()[:100])
    assert "cut.png" in cli.refused("run", u8_file, cut)
    assert "no such file" in cli.refused("run", u8_file, tmp_path / "none.png")


def test_broken_images_among_others_are_listed(
    cli: Cli, u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    for name in ("a", "d"):
        (tmp_path / f"{name}.png").write_bytes(images[0].read_bytes())
    (tmp_path / "b.png").write_bytes(images[0].read_bytes()[:100])
    Image.new("LAB", (8, 8)).save(tmp_path / "c.tif")
    Image.new("L", (1, 65535)).save(tmp_path / "e.png")
    done = cli("run", u8_file, tmp_path)
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert done.err.splitlines()[-1] == "error: 3 of 5 images failed"
    assert all(str(tmp_path / name) in done.err for name in ("b.png", "c.tif", "e.png"))
    results = cli("run", u8_file, tmp_path, "--json").document["results"]
    assert ["error" in result for result in results] == [False, True, True, False, True]
    assert results[0]["top"] == results[3]["top"]


def test_an_empty_name_is_no_image(cli: Cli, u8_file: Path) -> None:
    assert "without a name" in cli.refused("run", u8_file, "")


def test_characters_that_an_encoding_lacks_are_escaped(
    u8_file: Path, images: list[Path], tmp_path: Path
) -> None:
    image = tmp_path / "ä.png"
    image.write_bytes(images[0].read_bytes())
    for arguments, shown in (([], r"\xe4.png"), (["--json"], r"\u00e4.png")):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "phonebit", "run", u8_file, image, *arguments],
            capture_output=True,
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert shown in done.stdout.decode("ascii")


def test_a_closed_standard_input_is_no_image(
    cli: Cli, u8_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in cli.refused("run", u8_file, "-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_labels_are_read_from_a_pipe_that_something_writes_to(tmp_path: Path) -> None:
    pipe = tmp_path / "labels"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="nothing writes"):
        read_labels(pipe)
    both = os.open(pipe, os.O_RDWR)
    writer = os.open(pipe, os.O_WRONLY)
    os.write(writer, b"cat\ndog\n")
    threading.Timer(0.1, os.close, [writer]).start()
    found: list[str] = []
    reading = threading.Thread(target=lambda: found.extend(read_labels(pipe)))
    reading.start()
    os.close(both)
    reading.join(10)
    assert found == ["cat", "dog"]


def test_a_file_name_is_never_markup(cli: Cli, u8_file: Path, tmp_path: Path) -> None:
    assert "[bold]x[/].png" in cli.refused("run", u8_file, tmp_path / "[bold]x[/].png")


def test_unknown_devices(cli: Cli, u8_file: Path, images: list[Path]) -> None:
    assert "gpu:999" in cli.refused("run", u8_file, images[0], "--device", "gpu:999")
    assert "cpu:scalar" in cli.refused("bench", u8_file, "--device", "npu")


def test_sources_that_are_no_larq_networks(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "out.pbit"
    target.write_bytes(b"PBIT precious")
    bare = tmp_path / "bare.h5"
    with h5py.File(bare, "w") as file:
        file["x"] = [1, 2, 3]
    text = tmp_path / "text.h5"
    text.write_text("not HDF5")
    for source in (bare, text, tmp_path, tmp_path / "none.h5"):
        message = cli.refused("convert", source, "-o", target)
        assert source.name in message
    assert target.read_bytes() == b"PBIT precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.h5", "out.pbit", "text.h5"]


def test_source_lines_are_shown_on_request(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        error = UnsupportedLayerError("a, b: aten.erf is not supported", where="net")
        error.add_note("a: aten.erf: net.py:3")
        raise error

    monkeypatch.setattr("phonebit.converter.convert.convert", refuse)
    command = ("convert", tmp_path / "net.pt2")
    assert cli.refused(*command) == "error: net: a, b: aten.erf is not supported\n"
    assert cli.refused(*command, "--verbose").endswith("supported\na: aten.erf: net.py:3\n")


def test_a_truncated_checkpoint_leaves_the_previous_output(
    cli: Cli, checkpoint: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.pbit"
    target.write_bytes(b"PBIT precious")
    cut = tmp_path / "cut.h5"
    content = checkpoint.read_bytes()
    for share in (0.1, 0.5, 0.9):
        cut.write_bytes(content[: int(len(content) * share)])
        cli.refused("convert", cut, "-o", target)
        assert target.read_bytes() == b"PBIT precious"


def test_options_that_contradict(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pbit"
    assert "--input-range" in cli.refused("convert", checkpoint, "-o", target, "--input", "u8")
    for bad in ("1", "a,b", "1,1", "nan,1", "0,1,2"):
        options = ("--input", "u8", f"--input-range={bad}")
        assert "--input-range" in cli.refused("convert", checkpoint, "-o", target, *options)
    for flag, bad in (
        ("--mean", "1,2"), ("--mean", "x"), ("--std", "0"), ("--color", "grey"),
        ("--resize", "crop"), ("--interpolation", "none"),
    ):  # fmt: skip
        flags = ("--input-range=0,1", flag, bad)
        assert flag[2:] in cli.refused("convert", checkpoint, "-o", target, *flags)
    assert "--input-range" in cli.refused("convert", checkpoint, "-o", target, "--color", "gray")
    rule = tmp_path / "rule.toml"
    rule.write_text("rang = [0, 1]")
    message = cli.refused("convert", checkpoint, "-o", target, "--preprocessing", rule)
    assert "rule.toml: unknown key rang" in message
    assert "no such file" in cli.refused(
        "convert", checkpoint, "--preprocessing", tmp_path / "none"
    )
    labels = tmp_path / "labels.txt"
    labels.write_text("only\ntwo\n")
    assert "10" in cli.refused("convert", checkpoint, "-o", target, "--labels", labels)
    labels.write_text("{broken")
    assert "JSON" in cli.refused("convert", checkpoint, "-o", target, "--labels", labels)
    assert "no such file" in cli.refused("convert", checkpoint, "--labels", tmp_path / "none")
    assert not target.exists()


def test_all_missing_options_of_a_checkpoint_are_named_at_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # nobody waits for it
    checkpoint = tmp_path / "weights.pth"
    checkpoint.write_bytes(b"")
    text = cli.refused("convert", checkpoint, "--mean", "0.5")
    assert "3 problems" in text
    assert all(option in text for option in ("--model", "--input-shape", "--input-range"))
    with pytest.raises(ConversionError, match=r"(?s)2 problems:.*--model.*--input-shape"):
        convert(checkpoint)


def test_a_url_is_no_path(cli: Cli) -> None:
    text = cli.refused("convert", "https://example.org/a.onnx")
    assert "https://example.org/a.onnx: URLs are not read; download the file first" in text


def test_usage_errors_are_json_documents_on_request(cli: Cli, u8_file: Path) -> None:
    done = cli("bench", u8_file, "--threads", -1, "--json")
    assert done.code == 2
    assert done.document["error"]["kind"] == "UsageError"
    assert "--threads" in done.document["error"]["message"]


def test_more_threads_than_cores_are_warned_of(cli: Cli, u8_file: Path) -> None:
    done = cli("bench", u8_file, "--runs", 1, "--warmup", 0, "--threads", 999)
    assert re.search(r"warning: 999 threads on \d+ usable cores", done.err)


def test_both_processors_are_named_by_the_message(cli: Cli, u8_file: Path) -> None:
    assert "gpu+cpu" in cli.refused("run", u8_file, u8_file, "--device", "both")


def test_an_output_folder_that_does_not_exist(cli: Cli, checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "no" / "out.pbit"
    assert "out.pbit" in cli.refused("convert", checkpoint, "-o", target, "--no-check")


def test_bad_verification_inputs(
    cli: Cli, checkpoint: Path, u8_file: Path, f32_file: Path, tmp_path: Path
) -> None:
    def refused(array: np.ndarray[Any, Any], file: Path = u8_file) -> str:
        np.savez(tmp_path / "x.npz", image=array)
        options = ("--inputs", tmp_path / "x.npz", "--interpreter")
        return cli.refused("verify", checkpoint, file, *options)

    assert "wrong shape" in refused(np.zeros((1, 20, 20, 1), np.uint8))
    assert "wrong element type" in refused(np.zeros((1, 28, 28, 1), np.int32))
    assert "empty" in refused(np.zeros((0, 28, 28, 1), np.uint8))
    assert "not finite" in refused(np.full((1, 28, 28, 1), np.nan, np.float32), f32_file)
    (tmp_path / "x.npz").write_text("no archive")
    options = ("--inputs", tmp_path / "x.npz", "--interpreter")
    assert "x.npz" in cli.refused("verify", checkpoint, u8_file, *options)
    empty = tmp_path / "empty"
    empty.mkdir()
    options = ("--inputs", empty, "--interpreter")
    assert "no images" in cli.refused("verify", checkpoint, u8_file, *options)


def test_usage_errors_end_with_code_2(cli: Cli, u8_file: Path) -> None:
    for args in (("inspect",), ("nonsense",), ("bench", u8_file, "--runs", 0), ("run", u8_file)):
        done = cli(*args)
        assert done.code == 2, args
        assert "Traceback" not in done.err


def test_debug_shows_the_traceback(cli: Cli, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        app(["--debug", "inspect", str(tmp_path / "no.pbit")])


# --- as a process ---


def phonebit(*args: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    code = "from phonebit.cli.main import main; main()"
    command = [sys.executable, "-P", "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_process_results_go_to_stdout_and_errors_to_stderr(u8_file: Path, tmp_path: Path) -> None:
    good = phonebit("inspect", u8_file, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["file"] == str(u8_file)
    bad = phonebit("inspect", tmp_path / "no.pbit")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == f"error: {tmp_path / 'no.pbit'}: no such file; check the path\n"


def test_process_survives_a_closed_pipe(u8_file: Path) -> None:
    code = "from phonebit.cli.main import main; main()"
    command = [sys.executable, "-P", "-c", code, "inspect", str(u8_file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert b"Traceback" not in errors


def test_errors_are_documents_under_json(cli: Cli, u8_file: Path, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("no model")
    errors = {
        ("bench", u8_file, "--device", "tpu"): "DeviceError",
        ("convert", tmp_path / "model.txt"): "ConversionError",
        ("inspect", tmp_path / "none.pbit"): "FileNotFoundError",
        ("run", u8_file, tmp_path / "model.txt"): "InputError",
    }
    for arguments, kind in errors.items():
        cli.refused(*arguments, "--json")
        assert cli(*arguments, "--json").document["error"]["kind"] == kind
    error = cli("bench", u8_file, "--threads", 5000, "--json").document["error"]
    assert (error["where"], error["got"]) == ("threads", "5000")
    assert "1024" in error["expected"]
