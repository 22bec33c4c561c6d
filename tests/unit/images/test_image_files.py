"""Images on disk to network inputs: colour, size, depth, orientation, values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phonebit import InputError
from phonebit.images.fitting import LEVEL_MODES, to_mode
from phonebit.images.image_files import PLAIN_LEVELS, image_files, load_image
from phonebit.images.preprocessing import ColorOrder, Interpolation, Preprocessing, Resize
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
        image = load_image(tmp_path / "x.png", info, None)
        np.testing.assert_array_equal(image.array, expected)
        assert image.changes == ()


def test_palette_and_alpha_become_colour(tmp_path: Path) -> None:
    expected = levels(3)
    alpha = np.full((4, 6, 1), 255, np.uint8)
    Image.fromarray(np.concatenate([expected, alpha], axis=2)).save(tmp_path / "rgba.png")
    image = load_image(tmp_path / "rgba.png", COLOUR, None)
    np.testing.assert_array_equal(image.array, expected)
    assert image.changes == ("converted from RGBA to RGB",)
    Image.fromarray(expected).quantize(24).save(tmp_path / "palette.png")
    assert load_image(tmp_path / "palette.png", COLOUR, None).array.shape == (4, 6, 3)


def test_sixteen_bits_keep_their_upper_half(tmp_path: Path) -> None:
    deep = np.arange(24, dtype=np.uint16).reshape(4, 6) * 2700
    Image.fromarray(deep).save(tmp_path / "deep.png")
    image = load_image(tmp_path / "deep.png", GREY, None)
    np.testing.assert_array_equal(image.array[..., 0], deep >> 8)
    assert image.changes == ("16-bit levels shortened to 8",)


@pytest.mark.parametrize("suffix", ["png", "pgm"])
def test_sixteen_bits_are_never_taken_for_thirty_two(tmp_path: Path, suffix: str) -> None:
    """Some versions of Pillow give both formats' 16 bits as its mode I."""
    deep = np.arange(24, dtype=np.uint16).reshape(4, 6) * 2700
    path = tmp_path / f"deep.{suffix}"
    Image.fromarray(deep).save(path)
    np.testing.assert_array_equal(load_image(path, GREY, None).array[..., 0], deep >> 8)


@pytest.mark.parametrize("mode", sorted(LEVEL_MODES))
def test_levels_of_every_mode_become_those_of_every_input(mode: str) -> None:
    """A grey image has the same levels however it is stored; CMYK and YCbCr round."""
    grey = Image.fromarray(np.arange(0, 240, 10, np.uint8).reshape(4, 6))
    alpha = grey.convert({"La": "LA", "RGBa": "RGBA"}.get(mode, "RGB"))
    stored = (grey if mode in ("P", "PA") else alpha).convert(mode)
    for wanted in ("L", "RGB", "RGBA"):
        levels = np.asarray(to_mode(stored, wanted, [])).reshape(4, 6, -1)[..., :3]
        if mode != "1":
            expected = np.broadcast_to(np.asarray(grey)[..., None], levels.shape)
            np.testing.assert_allclose(levels, expected, atol=2, rtol=0)


@pytest.mark.parametrize("mode", ["I", "F", "LAB"])
def test_numbers_that_are_no_levels_are_refused_by_name(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "x.tif"
    Image.new(mode, (6, 4), 1 if mode != "LAB" else (50, 0, 0)).save(path)
    with pytest.raises(InputError, match=rf"x\.tif: .*no levels.*mode {mode},"):
        load_image(path, GREY, None)


def test_another_size_is_resized_whole(tmp_path: Path) -> None:
    Image.new("L", (60, 40), 77).save(tmp_path / "x.png")
    image = load_image(tmp_path / "x.png", GREY, None)
    np.testing.assert_array_equal(image.array, np.full((4, 6, 1), 77))
    assert image.changes == ("resized from 60x40 to 6x4",)


def test_the_camera_orientation_is_followed(tmp_path: Path) -> None:
    image = Image.fromarray(levels(1)[..., 0])
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    image.save(tmp_path / "x.png", exif=exif)
    image = load_image(tmp_path / "x.png", GREY, None)
    np.testing.assert_array_equal(image.array, levels(1)[::-1, ::-1])


def test_real_valued_inputs_get_their_values(tmp_path: Path) -> None:
    Image.fromarray(levels(1)[..., 0]).save(tmp_path / "x.png")
    image = load_image(tmp_path / "x.png", REAL, Preprocessing((-1.0, 1.0)))
    assert image.array.dtype == np.float32
    np.testing.assert_allclose(image.array, levels(1) / 127.5 - 1.0, atol=1e-6)
    ends = Preprocessing((-1.0, 1.0)).values(np.array([[0], [255]], np.uint8))
    np.testing.assert_array_equal(ends, np.array([[-1.0], [1.0]], np.float32))


def test_real_valued_inputs_need_a_rule(tmp_path: Path) -> None:
    Image.fromarray(levels(1)[..., 0]).save(tmp_path / "x.png")
    with pytest.raises(InputError, match=r"does not say.*--input-range"):
        load_image(tmp_path / "x.png", REAL, None)


def test_means_and_deviations_are_those_of_their_channel() -> None:
    info = TensorInfo("x", "f32", (4, 6, 3))
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    got = Preprocessing((0.0, 1.0), mean, std).apply(levels(3), info)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, (levels(3) / 255 - mean) / std, atol=1e-6)


def test_bgr_is_rgb_turned_round_and_means_follow_the_channels_as_they_are_read() -> None:
    info = TensorInfo("x", "f32", (4, 6, 3))
    rule = Preprocessing((0.0, 255.0), (103.0, 116.0, 123.0), color=ColorOrder.BGR)
    expected = levels(3)[..., ::-1].astype(np.float32) - [103, 116, 123]
    np.testing.assert_allclose(rule.apply(levels(3), info), expected, atol=1e-4)
    grey = rule.apply(Image.new("L", (6, 4), 123), info)
    np.testing.assert_array_equal(grey[0, 0], np.array([20, 7, 0], np.float32))


# --- sizes ---


def ramp(width: int, height: int) -> Image.Image:
    """Brightness is the column."""
    return Image.fromarray(np.tile(np.arange(width, dtype=np.uint8), (height, 1)))


@pytest.mark.parametrize("size", [(60, 40), (40, 60), (7, 99), (6, 4), (8, 8)])
@pytest.mark.parametrize("resize_to", [6, 7, 20])
def test_shorter_side_then_the_middle_as_torchvision_defines_it(
    size: tuple[int, int], resize_to: int
) -> None:
    rule = Preprocessing((0, 255), resize=Resize.SHORTER_SIDE, resize_to=resize_to)
    noise = np.random.default_rng(1).integers(0, 256, size[::-1], np.uint8)
    got = rule.apply(noise, GREY)
    scale = resize_to / min(size)
    scaled = tuple(resize_to if side == min(size) else int(side * scale) for side in size)
    rows = Image.fromarray(noise).resize((scaled[0], size[1]), Image.Resampling.BILINEAR)
    image = rows.resize(scaled, Image.Resampling.BILINEAR)  # in one step, Pillow 13 rounds others
    top, left = round((scaled[1] - 4) / 2.0), round((scaled[0] - 6) / 2.0)
    np.testing.assert_array_equal(got[..., 0], np.asarray(image)[top : top + 4, left : left + 6])


def test_shorter_side_says_what_it_did_and_keeps_the_middle() -> None:
    rule = Preprocessing((0, 255), resize=Resize.SHORTER_SIDE, resize_to=8)
    fitted = rule.fit(ramp(32, 16), GREY)
    assert fitted.changes == ("resized from 32x16 to 16x8", "cut to 6x4 in the middle")
    np.testing.assert_allclose(fitted.array[..., 0].mean(axis=0), 10.5 + 2 * np.arange(6), atol=1)


def test_letterbox_keeps_proportions_and_fills_the_rest() -> None:
    info = TensorInfo("x", "u8", (8, 8, 3))
    rule = Preprocessing((0, 255), resize=Resize.LETTERBOX, fill_level=114)
    fitted = rule.fit(Image.new("RGB", (32, 16), (200, 100, 50)), info)
    assert fitted.changes == ("resized from 32x16 to 8x4 within 8x8",)
    np.testing.assert_array_equal(fitted.array[[0, 1, 6, 7]], np.full((4, 8, 3), 114))
    np.testing.assert_array_equal(fitted.array[2:6], np.broadcast_to([200, 100, 50], (4, 8, 3)))
    strip = rule.fit(Image.new("RGB", (4000, 1), (1, 2, 3)), info).array
    np.testing.assert_array_equal(strip[3:4], np.broadcast_to([1, 2, 3], (1, 8, 3)))
    assert np.all(strip[:3] == 114) and np.all(strip[4:] == 114)


@pytest.mark.parametrize("kind", Interpolation)
def test_resampling_is_pillows(kind: Interpolation) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (40, 60), np.uint8)
    got = Preprocessing((0, 255), interpolation=kind).apply(noise, GREY)
    image = Image.fromarray(noise).resize((6, 4), getattr(Image.Resampling, kind.name))
    np.testing.assert_array_equal(got[..., 0], np.asarray(image))


@pytest.mark.parametrize("resize", [Resize.STRETCH, Resize.LETTERBOX])
def test_an_image_of_the_right_size_stays_as_it_is(resize: Resize) -> None:
    fitted = Preprocessing((0, 255), resize=resize).fit(levels(3), COLOUR)
    np.testing.assert_array_equal(fitted.array, levels(3))
    assert fitted.changes == ()


def test_a_strip_that_would_become_monstrous_is_refused() -> None:
    rule = Preprocessing((0, 255), resize=Resize.SHORTER_SIDE, resize_to=1 << 14)
    with pytest.raises(InputError, match="too large"):
        rule.apply(Image.new("L", (2, 6000)), GREY)


def test_arrays_that_are_no_images_are_refused() -> None:
    for array in (np.zeros((4, 6), np.float32), np.zeros((4, 6, 2), np.uint8), np.zeros(4, "u1")):
        with pytest.raises(InputError, match="uint8 of shape"):
            PLAIN_LEVELS.apply(array, GREY)


def test_inputs_that_take_no_images_are_refused(tmp_path: Path) -> None:
    Image.new("L", (6, 4)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="1, 3 or 4 channels"):
        load_image(tmp_path / "x.png", TensorInfo("x", "u8", (4, 6, 2)), None)
    with pytest.raises(InputError, match="takes no images"):
        Preprocessing((0, 255), color=ColorOrder.NONE).apply(levels(3), COLOUR)


def test_an_image_of_monstrous_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (60, 40)).save(tmp_path / "x.png")
    for limit in (1600, 1000):  # a warning of Pillow, an error of Pillow
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InputError, match="too large"):
            load_image(tmp_path / "x.png", GREY, None)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.gif", "x.bmp", "x.webp", "x.tiff"])
@pytest.mark.parametrize("keep", [0, 20, 60])
def test_damaged_images_give_one_error_of_ours(tmp_path: Path, name: str, keep: int) -> None:
    path = tmp_path / name
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="not an image that can be read"):
        load_image(path, GREY, None)


def test_folders_list_their_images(tmp_path: Path) -> None:
    for name in ("b.PNG", "a.jpg", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in image_files(tmp_path)] == ["a.jpg", "b.PNG"]
