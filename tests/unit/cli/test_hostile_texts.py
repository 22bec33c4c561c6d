"""Texts from people: damaged, endless, nested, or with names that steer a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import phonebit
from phonebit.converter.writer import to_bytes
from phonebit.display import escape_html, escape_markup, printable, printable_lines
from phonebit.errors import InputError
from phonebit.images.preprocessing import Preprocessing
from phonebit.text_files import MAX_BYTES, read_text
from support.cli_process import Cli
from support.golden import tiny_classifier
from support.made_up_profile import made_up_profile

DEEP_TOML = "a=" + "[" * 100_000 + "]" * 100_000
DEEP_JSON = '{"a":' * 100_000 + "1" + "}" * 100_000
DIGITS = "9" * 5000
"""More than Python makes a number of; of 4000 it makes one that no float holds."""

# --- texts ---


@pytest.mark.parametrize(
    "text",
    [DEEP_TOML, f"range = [0, {DIGITS}]", f"range = [0, {DIGITS[:4000]}]", "\0", "range = ["],
)
def test_no_toml_file_ends_in_a_traceback(
    cli: Cli, checkpoint: Path, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "rule.toml"
    path.write_text(text)
    assert "rule.toml" in cli.refused("convert", checkpoint, "--preprocessing", path)
    path.write_text(text.replace("range", "anchors"))
    refused = cli.refused("convert", checkpoint, "-o", tmp_path / "x.pbit", "--detection", path)
    assert "rule.toml" in refused or "anchors" in refused
    assert [file.name for file in tmp_path.iterdir()] == ["rule.toml"]


@pytest.mark.parametrize("text", [DEEP_JSON, f"[{DIGITS}]", "[1e999]", '["a", \x01]', "\ud800"])
def test_no_label_file_ends_in_a_traceback(
    cli: Cli, checkpoint: Path, tmp_path: Path, text: str
) -> None:
    path, target = tmp_path / "labels.txt", tmp_path / "x.pbit"
    path.write_bytes(text.encode(errors="surrogatepass"))
    assert cli.refused("convert", checkpoint, "-o", target, "--labels", path)
    rule = tmp_path / "rule.toml"
    rule.write_text('range = [0, 1]\nlabels_file = "labels.txt"')
    assert cli.refused("convert", checkpoint, "-o", target, "--preprocessing", rule)
    assert not target.exists()


RECORDS = [
    DEEP_JSON,
    "[" * 100_000,
    f'{{"phonebit_profile": {DIGITS}}}',
    '{"phonebit_profile": 4, "device": {"keys": {"1": "a"}, "gpu": {"compute_units": 1e999}}}',
    f'{{"device": {{"keys": {{"{DIGITS}": "a"}}}}}}',
    f'{{"processors": ["gpu"], "threads": [1], "layers": {DIGITS[:4000]}}}',
    "1",
    "null",
    '"text"',
    "\0" * 1000,
    "\xff",
]


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_no_record_ends_in_a_traceback(
    cli: Cli, tiny_file: Path, tmp_path: Path, number: int
) -> None:
    path = tmp_path / "record"
    path.write_text(RECORDS[number] + "\n", encoding="latin-1")
    before, planned = path.read_bytes(), tmp_path / "planned.pbit"
    assert "record" in cli.refused("plan", tiny_file, "--cost-model", path, "-o", planned)
    assert "record" in cli.refused("train-predictor", path)
    assert cli.refused("collect", "-o", path, "--resume", "--device", "gpu:77+cpu")
    orders = tmp_path / "orders"
    orders.mkdir()
    (orders / "plan.json").write_bytes(before)
    (orders / "orders.txt").write_bytes(before)
    samples = tmp_path / "samples.jsonl"
    back = ("collect", "--orders", orders, "--results", path, "-o", samples)
    assert cli.refused(*back)
    assert path.read_bytes() == before and not samples.exists()


def test_results_of_a_measurement_job_end_in_no_traceback(cli: Cli, tmp_path: Path) -> None:
    orders, results = tmp_path / "orders", tmp_path / "results.jsonl"
    assert cli("collect", "--orders", orders, "--samples", 1).code == 0
    for record in RECORDS:
        results.write_text(record + "\n", encoding="latin-1")
        back = ("collect", "--orders", orders, "--results", results, "-o", tmp_path / "s.jsonl")
        assert "results.jsonl" in cli.refused(*back)


def test_endless_files_are_refused(cli: Cli, checkpoint: Path, tiny_file: Path) -> None:
    endless = Path("/dev/zero")
    for option in ("--labels", "--preprocessing", "--detection"):
        assert "too large" in cli.refused("convert", checkpoint, "-o", "x.pbit", option, endless)
    assert "too large" in cli.refused("train-predictor", endless)
    with pytest.raises(InputError, match="too large for a list"):
        read_text(endless, "a list")


def test_the_limit_is_the_last_size_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a" * MAX_BYTES)
    assert len(read_text(path, "a text")) == MAX_BYTES
    with path.open("ab") as file:
        file.write(b"a")
    with pytest.raises(InputError, match=r"too large for a text \(expected at most 16 MiB\)"):
        read_text(path, "a text")


def test_long_numbers_in_options(cli: Cli, checkpoint: Path, tiny_file: Path) -> None:
    flags = ("--input-range=0,1", "--resize")
    for how in ("shorter:", "letterbox:"):
        refused = cli.refused("convert", checkpoint, "-o", "x.pbit", *flags, how + DIGITS)
        assert "not a way to resize" in refused
    refused = cli.refused("convert", checkpoint, "-o", "x.pbit", "--input-shape", DIGITS)
    assert "--input-shape" in refused
    assert "device" in cli.refused("bench", tiny_file, "--device", f"gpu:{DIGITS}")
    for option in ("--samples", "--cuts", "--turns", "--rounds"):
        refused = cli.refused("collect", "--orders", "absent", option, "9" * 400)
        assert "at most" in refused
    with pytest.raises(InputError, match=r"expected numbers, got 1000.*…"):
        Preprocessing((0.0, 1.0), 10**4000)


def test_a_folder_is_no_source(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for source in (".", "..", "/", tmp_path):
        assert cli.refused("convert", source)
    assert list(tmp_path.iterdir()) == []


# --- names ---

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202ereversed\u2066[bold]<b>\r"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def test_what_steers_a_terminal_is_shown_as_an_escape() -> None:
    assert printable("\x1b[2J\u202e\x85\x7f\ud800\n") == r"\x1b[2J\u202e\x85\x7f\ud800\n"
    assert printable_lines("a\n\tb\x07\u2028") == "a\n\tb\\x07\\u2028"
    assert printable("Größe, 大きさ, حجم, גודל, 👩‍👩‍👧") == "Größe, 大きさ, حجم, גודל, 👩‍👩‍👧"
    assert escape_markup("\x07[bold]") == r"\x07\[bold]"
    assert escape_html("\x07<b>&") == r"\x07&lt;b&gt;&amp;"


@pytest.fixture
def hostile_file(tmp_path: Path) -> Path:
    """Layers, inputs, outputs, labels and metadata with such names."""
    graph = tiny_classifier()
    graph.name = HOSTILE
    for node in graph.nodes:
        node.name += HOSTILE
    graph.labels = [HOSTILE] * 10
    graph.preprocessing = {graph.inputs[0]: Preprocessing((0.0, 1.0))}
    path = tmp_path / "hostile.pbit"
    path.write_bytes(to_bytes(graph, {"producer": HOSTILE, HOSTILE: {"a": HOSTILE}}))
    return path


def test_commands_show_names_without_letting_them_act(
    cli: Cli, hostile_file: Path, images: list[Path], tmp_path: Path
) -> None:
    image = tmp_path / f"{HOSTILE.replace('/', '')}.png"
    image.write_bytes(images[0].read_bytes())
    shown = {
        "inspect": ("inspect", hostile_file),
        "run": ("run", hostile_file, image, "--device", "cpu"),
        "bench": ("bench", hostile_file, "--runs", 1, "--profile", "--device", "cpu"),
    }
    for name, args in shown.items():
        done = cli(*args)
        assert done.code == 0, done.err
        assert not STEERING.search(done.out + done.err), name
        assert r"\x1b" in done.out and "\\u202e" in done.out, name
    assert cli("inspect", hostile_file, "--json").document["labels"] == [HOSTILE] * 10
    for args in (("run", hostile_file, image), ("convert", image), ("inspect", image)):
        more = ("--task", "detect") if args[0] == "run" else ()
        refused = cli.refused(*args, *more)
        assert (not STEERING.search(refused) and ".png" in refused) or "detector" in refused


def test_errors_of_functions_show_names_without_letting_them_act(hostile_file: Path) -> None:
    network = phonebit.Network.load(hostile_file, device="cpu")
    with pytest.raises(InputError, match=r"\\x1b") as error:
        network.forward({HOSTILE: np.zeros(1, np.uint8)})
    assert not STEERING.search(str(error.value))


def test_a_profile_with_such_names_is_planned_with_and_shown(
    cli: Cli, hostile_file: Path, tmp_path: Path
) -> None:
    from phonebit.planner.predict.profile import write_profile

    profile, planned = tmp_path / "profile.json", tmp_path / "planned.pbit"
    known = made_up_profile()
    keys = {1: f"GPU {HOSTILE}"}
    write_profile(profile, replace(known, device=replace(known.device, keys=keys)))
    done = cli("plan", hostile_file, "--cost-model", profile, "-o", planned, "--explain")
    assert done.code == 0, done.err
    assert not STEERING.search(done.out)
    assert not STEERING.search(cli("inspect", planned).out)


def test_a_path_that_is_no_text_is_shown_and_is_json(cli: Cli, hostile_file: Path) -> None:
    path = hostile_file.with_name("net\udcff.pbit")
    try:
        path.write_bytes(hostile_file.read_bytes())
    except (OSError, UnicodeEncodeError):
        pytest.skip("the file system takes no such name")
    assert r"net\udcff.pbit" in cli("inspect", path).out
    assert cli("inspect", path, "--json").document["file"] == str(path)


def test_masked_arrays_are_refused(tiny_file: Path) -> None:
    network = phonebit.Network.load(tiny_file, device="cpu")
    plain = np.zeros((1, 28, 28, 1), np.uint8)
    masked = np.ma.masked_equal(plain, 0)
    with pytest.raises(InputError, match=r"masked array .* x\.filled"):
        network.forward(masked)
    np.testing.assert_array_equal(network.forward(masked.filled(0)), network.forward(plain))
