"""Preprocessing: what it accepts, its TOML file, and the record that travels in the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phonebit import InputError, Preprocessing
from phonebit.format.records import PREPROCESSING
from phonebit.images.labels import read_labels
from phonebit.images.preprocessing import ColorOrder, Interpolation, Resize
from phonebit.images.rule_text import as_settings, rule_text
from phonebit.images.settings import SETTINGS, read_toml
from phonebit.layer_info import TensorInfo

FULL = """
range = [0, 1]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
color = "bgr"
resize = "shorter:256"
interpolation = "bicubic"
labels = ["cat", "dog"]
"""
FULL_RULE = Preprocessing(
    (0.0, 1.0),
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
    ColorOrder.BGR,
    Resize.SHORTER_SIDE,
    256,
    interpolation=Interpolation.BICUBIC,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "rule.toml"
    path.write_text(text)
    return path


# --- numbers ---


def test_the_preset_imagenet_is_torchvisions() -> None:
    rule = Preprocessing.from_toml("imagenet")
    x = np.array([[[0, 128, 255]]], np.uint8)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(rule.values(x), (x / 255 - mean) / std, rtol=1e-6)
    assert (rule.resize, rule.resize_to, rule.color) == (Resize.SHORTER_SIDE, 256, ColorOrder.RGB)


def test_a_level_stands_for_its_value_less_the_mean_over_the_deviation() -> None:
    rule = Preprocessing((0, 1), (0.5, 0.25, 0.0), (0.5, 0.25, 2.0))
    np.testing.assert_array_equal(rule.offset(3), np.array([-1, -1, 0], np.float32))
    expected = np.array([2 / 255, 4 / 255, 0.5 / 255], np.float32)
    np.testing.assert_array_equal(rule.scale(3), expected)
    levels = np.array([[0, 0, 0], [255, 255, 255]], np.uint8)
    np.testing.assert_allclose(rule.values(levels), [[-1, -1, 0], [1, 3, 0.5]], atol=1e-6)


def test_equal_numbers_of_all_channels_are_one_number() -> None:
    assert Preprocessing((0, 1), (0.5, 0.5, 0.5)) == Preprocessing((0.0, 1.0), (0.5,))
    scalar: Any = 0.5
    assert Preprocessing((0, 1), scalar).mean == (0.5,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"range": (1, 1)}, "range.*two different finite numbers"),
        ({"range": (0, float("nan"))}, "range.*finite"),
        ({"range": (0, 1, 2)}, "range.*two different"),
        ({"range": 3}, "range.*two different"),
        ({"mean": (1, 2)}, None),
        ({"mean": (1, 2, 3), "std": (1, 2)}, "one number, or one for each"),
        ({"mean": (1, 2, 3, 4, 5)}, "at most 4 channels"),
        ({"mean": ("a",)}, "mean.*numbers"),
        ({"mean": ()}, "mean.*numbers"),
        ({"std": 0}, "std.*above 0"),
        ({"std": (1, 1, -1)}, "std.*above 0"),
        ({"std": 1e-300}, "float32 can hold"),
        ({"resize_to": 5}, "resize_to.*0 without"),
        ({"resize": Resize.SHORTER_SIDE}, "resize_to.*1 to"),
        ({"fill_level": 9}, "fill_level.*0 without a letterbox"),
        ({"resize": Resize.LETTERBOX, "fill_level": 256}, "fill_level.*0 to 255"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    fields: dict[str, Any], message: str | None
) -> None:
    if message is None:
        Preprocessing(**{"range": (0, 1), **fields})
        return
    with pytest.raises(InputError, match=message):
        Preprocessing(**{"range": (0, 1), **fields})


def test_the_colour_order_follows_the_channels_unless_it_is_said() -> None:
    def chosen(channels: int, rule: Preprocessing) -> ColorOrder | None:
        return rule.for_input(TensorInfo("x", "u8", (4, 4, channels))).color

    usual = Preprocessing((0, 1))
    assert [chosen(c, usual) for c in (1, 2, 3, 4, 5)] == [
        ColorOrder.GRAY, ColorOrder.NONE, ColorOrder.RGB, ColorOrder.RGBA, ColorOrder.NONE,
    ]  # fmt: skip
    assert chosen(3, Preprocessing((0, 1), color=ColorOrder.BGR)) is ColorOrder.BGR
    with pytest.raises(InputError, match="expected 3 for colour order bgr, got 1"):
        chosen(1, Preprocessing((0, 1), color=ColorOrder.BGR))
    with pytest.raises(InputError, match="each of 1 channels, got 3"):
        chosen(1, Preprocessing((0, 1), (1, 2, 3)))
    with pytest.raises(InputError, match="at least 4, got 3"):
        chosen(1, Preprocessing((0, 1), resize=Resize.SHORTER_SIDE, resize_to=3))


# --- the record ---

NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def rules(draw: st.DrawFn, channels: int) -> Preprocessing:
    colors = {1: [ColorOrder.GRAY], 3: [ColorOrder.RGB, ColorOrder.BGR], 4: [ColorOrder.RGBA]}
    low, high = draw(st.tuples(NUMBERS, NUMBERS).filter(lambda ends: ends[0] != ends[1]))
    counts = st.sampled_from([1, channels] if channels <= 4 else [1])
    resize = draw(st.sampled_from(Resize))
    return Preprocessing(
        (low, high),
        tuple(draw(st.lists(NUMBERS, min_size=(n := draw(counts)), max_size=n))),
        tuple(draw(st.lists(st.floats(1e-3, 1e3), min_size=(n := draw(counts)), max_size=n))),
        draw(st.sampled_from([ColorOrder.NONE, *colors.get(channels, [])])),
        resize,
        draw(st.integers(1, 1 << 20)) if resize is Resize.SHORTER_SIDE else 0,
        draw(st.integers(0, 255)) if resize is Resize.LETTERBOX else 0,
        draw(st.sampled_from(Interpolation)),
    )


@given(st.integers(1, 6).flatmap(lambda c: st.tuples(st.just(c), rules(c))), st.integers(0, 9))
def test_a_record_gives_back_the_rule_that_it_was_made_of(
    case: tuple[int, Preprocessing], index: int
) -> None:
    channels, rule = case
    content = rule.to_record(index, channels).tobytes()
    record = np.frombuffer(content, PREPROCESSING)[0]
    again = Preprocessing.from_record(record, channels)
    assert (again, record["input"]) == (rule, index)
    np.testing.assert_array_equal(again.scale(channels), rule.scale(channels))
    np.testing.assert_array_equal(again.offset(channels), rule.offset(channels))


# --- the TOML file ---


def test_a_toml_file_sets_everything(tmp_path: Path) -> None:
    path = written(tmp_path, FULL)
    assert Preprocessing.from_toml(path) == FULL_RULE
    assert read_toml(path).labels == ["cat", "dog"]


def test_the_documented_file_works_and_has_every_key(tmp_path: Path) -> None:
    document = (Path(__file__).parents[3] / "docs" / "preprocessing.md").read_text()
    example = re.search(r"```toml\n(.*?)```", document, re.DOTALL)
    assert example is not None
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    read = read_toml(written(tmp_path, example[1]))
    assert read.labels == ["cat", "dog"]
    assert as_settings(Preprocessing(**read.fields)).keys() == SETTINGS.keys()
    assert all(f"\n{name} = " in f"\n{example[1]}" for name in (*SETTINGS, "labels_file"))


def test_only_the_range_is_required(tmp_path: Path) -> None:
    assert Preprocessing.from_toml(written(tmp_path, "range = [-1, 1]")) == Preprocessing((-1, 1))
    with pytest.raises(InputError, match=r"range is missing.*'range' in .*rule\.toml"):
        Preprocessing.from_toml(written(tmp_path, 'color = "rgb"'))


def test_a_labels_file_lies_next_to_the_toml_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("a\n\n b \n")
    path = written(tmp_path, 'range = [0, 1]\nlabels_file = "names.txt"')
    assert read_toml(path).labels == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        read_toml(written(tmp_path, 'labels_file = "none.txt"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("range = [0, 1", "not valid TOML"),
        ("rnage = [0, 1]", "unknown key rnage.*expected range, mean, std, color, resize"),
        ("range = [0]", "LOW,HIGH"),
        ('range = ["a", 1]', "LOW,HIGH"),
        ("range = [false, true]", "not numbers"),
        ("mean = {}", "mean: not numbers"),
        ("mean = inf", "mean: not numbers"),
        ("std = [1, 0, 1]", "std.*above 0"),
        ('color = "grey"', "expected none or gray or rgb or bgr or rgba, got 'grey'"),
        ("color = 3", "color: wrong type"),
        ('interpolation = "lanczos"', "nearest or bilinear or bicubic"),
        ('resize = "shorter"', "shorter:PIXELS"),
        ('resize = "stretch:3"', "stretch, shorter:PIXELS"),
        ('resize = "letterbox:-1"', "letterbox:LEVEL"),
        ('resize = "crop"', "not a way to resize"),
        ("labels = []", "no class names"),
        ("labels = [1]", "no class names"),
        ('labels = ["a"]\nlabels_file = "b"', "give one of them"),
        ("labels_file = 3", "labels_file: wrong type"),
    ],
)
def test_a_wrong_toml_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_toml(written(tmp_path, text))
    assert "rule.toml" in str(caught.value)


@pytest.mark.parametrize(
    "resize",
    [
        {"resize": Resize.STRETCH},
        {"resize": Resize.SHORTER_SIDE, "resize_to": 232},
        {"resize": Resize.LETTERBOX, "fill_level": 114},
    ],
)
def test_settings_of_a_rule_make_the_same_rule(tmp_path: Path, resize: dict[str, Any]) -> None:
    rule = Preprocessing((-1, 1), (0.5, 0.25, 0.125), color=ColorOrder.RGB, **resize)
    lines = [f"{name} = {value!r}" for name, value in as_settings(rule).items()]
    assert Preprocessing.from_toml(written(tmp_path, "\n".join(lines))) == rule


def test_a_rule_reads_as_one_line() -> None:
    assert rule_text(FULL_RULE) == (
        "bgr, shorter:256, bicubic, levels 0..255 are 0..1, minus 0.485 0.456 0.406, "
        "over 0.229 0.224 0.225"
    )
    assert rule_text(Preprocessing((-1, 1))) == "stretch, bilinear, levels 0..255 are -1..1"


def test_label_files_are_lines_or_json(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_text('["a", "b c"]')
    assert read_labels(path) == ["a", "b c"]
    for text, message in (("[1]", "no class names"), ("{broken", "JSON"), ("", "no class names")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_labels(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text file"):
        read_labels(path)
