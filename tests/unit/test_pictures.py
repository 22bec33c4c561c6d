"""Pictures on disk to network inputs: colour, size, depth, orientation, range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phonebit import InputError
from phonebit.cli.pictures import Range, load_picture, parse_range, picture_files, to_input
from phonebit.layer_info import TensorInfo

GREY = TensorInfo("x", "u8", (4, 6, 1))
COLOUR = TensorInfo("x", "u8", (4, 6, 3))
REAL = TensorInfo("x", "f32", (4, 6, 1))


def levels(channels: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(3).integers(0, 256, (4, 6, channels), np.uint8)


def test_grey_and_colour_are_taken_as_they_are(tmp_path: Path) -> None:
    for info in (GREY, COLOUR):
        expected = levels(info.shape[2])
        Image.fromarray(expected.squeeze()).save(tmp_path / "x.png")
        picture = load_picture(tmp_path / "x.png", info, None)
        np.testing.assert_array_equal(picture.array, expected)
        assert picture.changes == ()


def test_palette_and_alpha_become_colour(tmp_path: Path) -> None:
    expected = levels(3)
    alpha = np.full((4, 6, 1), 255, np.uint8)
    Image.fromarray(np.concatenate([expected, alpha], axis=2)).save(tmp_path / "rgba.png")
    picture = load_picture(tmp_path / "rgba.png", COLOUR, None)
    np.testing.assert_array_equal(picture.array, expected)
    assert picture.changes == ("converted from RGBA to RGB",)
    Image.fromarray(expected).quantize(24).save(tmp_path / "palette.png")
    assert load_picture(tmp_path / "palette.png", COLOUR, None).array.shape == (4, 6, 3)


def test_sixteen_bits_keep_their_upper_half(tmp_path: Path) -> None:
    deep = np.arange(24, dtype=np.uint16).reshape(4, 6) * 2700
    Image.fromarray(deep).save(tmp_path / "deep.png")
    picture = load_picture(tmp_path / "deep.png", GREY, None)
    np.testing.assert_array_equal(picture.array[..., 0], deep >> 8)
    assert picture.changes == ("16-bit levels shortened to 8",)


def test_another_size_is_resized_whole(tmp_path: Path) -> None:
    Image.new("L", (60, 40), 77).save(tmp_path / "x.png")
    picture = load_picture(tmp_path / "x.png", GREY, None)
    np.testing.assert_array_equal(picture.array, np.full((4, 6, 1), 77))
    assert picture.changes == ("resized from 60x40 to 6x4",)


def test_the_camera_orientation_is_followed(tmp_path: Path) -> None:
    image = Image.fromarray(levels(1)[..., 0])
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    image.save(tmp_path / "x.png", exif=exif)
    picture = load_picture(tmp_path / "x.png", GREY, None)
    np.testing.assert_array_equal(picture.array, levels(1)[::-1, ::-1])


def test_real_valued_inputs_get_their_range(tmp_path: Path) -> None:
    Image.fromarray(levels(1)[..., 0]).save(tmp_path / "x.png")
    picture = load_picture(tmp_path / "x.png", REAL, Range(-1.0, 1.0))
    assert picture.array.dtype == np.float32
    np.testing.assert_allclose(picture.array, levels(1) / 127.5 - 1.0, atol=1e-6)
    ends = to_input(np.array([0, 255], np.uint8), REAL, Range(-1.0, 1.0))
    np.testing.assert_array_equal(ends, np.array([-1.0, 1.0], np.float32))


def test_inputs_that_take_no_pictures_are_refused(tmp_path: Path) -> None:
    Image.new("L", (6, 4)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="1, 3 or 4 channels"):
        load_picture(tmp_path / "x.png", TensorInfo("x", "u8", (4, 6, 2)), None)


def test_a_picture_of_monstrous_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (60, 40)).save(tmp_path / "x.png")
    for limit in (1600, 1000):  # a warning of Pillow, an error of Pillow
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InputError, match="too large"):
            load_picture(tmp_path / "x.png", GREY, None)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.gif", "x.bmp", "x.webp", "x.tiff"])
@pytest.mark.parametrize("keep", [0, 20, 60])
def test_damaged_pictures_give_one_error_of_ours(tmp_path: Path, name: str, keep: int) -> None:
    path = tmp_path / name
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="not a picture that can be read"):
        load_picture(path, GREY, None)


def test_folders_list_their_pictures(tmp_path: Path) -> None:
    for name in ("b.PNG", "a.jpg", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in picture_files(tmp_path)] == ["a.jpg", "b.PNG"]


def test_ranges_are_two_numbers() -> None:
    assert parse_range(None) is None
    assert parse_range("-1,1") == Range(-1.0, 1.0)
    assert parse_range("0, 0.5") == Range(0.0, 0.5)
    with pytest.raises(InputError, match="LOW,HIGH"):
        parse_range("1")
