"""Images in the C++ library become the very numbers that Pillow makes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from phonebit import InputError, Preprocessing
from phonebit._runtime import prepare_image
from phonebit.images.preprocessing import ColorOrder, Interpolation, Resize
from phonebit.layer_info import TensorInfo
from support.pillow_fitting import apply_with_pillow

Levels = NDArray[np.uint8]

GRAY, RGB, RGBA, BGR, BGRA, NV21, NV12, I420 = range(8)
PACKED_CHANNELS = {GRAY: "R", RGB: "RGB", RGBA: "RGBA", BGR: "BGR", BGRA: "BGRA"}
YUV_FORMATS = (NV21, NV12, I420)
BT601_FULL, BT601_LIMITED, BT709_LIMITED = range(3)
COLOR_CHANNELS = {
    ColorOrder.GRAY: 1,
    ColorOrder.RGB: 3,
    ColorOrder.BGR: 3,
    ColorOrder.RGBA: 4,
}
PLAIN = Preprocessing((0.0, 255.0))
IMAGENET = Preprocessing((0.0, 1.0), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


# --- images and their layouts in memory ---


def packed(levels: Levels, fmt: int, row_gap: int = 0, pixel_gap: int = 0) -> dict[str, Any]:
    """(height, width, 4: RGBA) as an image of a packed format, with bytes between its samples."""
    height, width, _ = levels.shape
    names = PACKED_CHANNELS[fmt]
    pixel_bytes = len(names) + pixel_gap
    row_bytes = width * pixel_bytes + row_gap
    plane = np.full((height, row_bytes), 0xA5, np.uint8)
    for i, name in enumerate(names):
        plane[:, i : width * pixel_bytes : pixel_bytes] = levels[..., "RGBA".index(name)]
    # The last row ends with its last sample: what lies after it is somebody else's.
    end = (height - 1) * row_bytes + (width - 1) * pixel_bytes + len(names)
    return {
        "format": fmt,
        "width": width,
        "height": height,
        "planes": [plane.reshape(-1)[:end].copy()],
        "row_bytes": (row_bytes if row_gap else 0, 0, 0),
        "pixel_bytes": (pixel_bytes if pixel_gap else 0, 0, 0),
    }


def strided(plane: Levels, pixel_bytes: int, row_gap: int) -> tuple[Levels, int]:
    """A plane of samples `pixel_bytes` apart and its row_bytes; it ends with its last sample."""
    height, width = plane.shape
    row_bytes = width * pixel_bytes + row_gap
    memory = np.full((height, row_bytes), 0xA5, np.uint8)
    memory[:, : width * pixel_bytes : pixel_bytes] = plane
    return memory.reshape(-1)[: (height - 1) * row_bytes + (width - 1) * pixel_bytes + 1], row_bytes


@dataclass(frozen=True)
class Frame:
    """Luma (height, width) and chroma (ceil(height / 2), ceil(width / 2))."""

    luma: Levels
    blue: Levels
    red: Levels

    def image(self, fmt: int, row_gap: int = 0, pixel_bytes: int = 1) -> dict[str, Any]:
        height, width = self.luma.shape
        luma, luma_row = strided(self.luma, 1, row_gap)
        fields = {"format": fmt, "width": width, "height": height}
        if fmt == I420:
            blue, row = strided(self.blue, pixel_bytes, row_gap)
            red, _ = strided(self.red, pixel_bytes, row_gap)
            planes = [luma, blue, red]
            return fields | {
                "planes": planes,
                "row_bytes": (luma_row, row, row),
                "pixel_bytes": (0, pixel_bytes, pixel_bytes),
            }
        pairs = (self.red, self.blue) if fmt == NV21 else (self.blue, self.red)
        chroma = np.stack(pairs, axis=-1).reshape(self.blue.shape[0], -1)
        chroma, row = strided(chroma, 1, row_gap)
        return fields | {"planes": [luma, chroma], "row_bytes": (luma_row, row, 0)}

    def rgb(self, yuv: int) -> NDArray[np.float64]:
        """What the frame means, in float64: the definition of luma and chroma, solved for RGB."""
        kr, kb = (0.2126, 0.0722) if yuv == BT709_LIMITED else (0.299, 0.114)
        luma, blue, red = (plane.astype(np.float64) for plane in (self.luma, self.blue, self.red))
        blue, red = blue - 128, red - 128
        if yuv != BT601_FULL:
            luma, blue, red = (luma - 16) * 255 / 219, blue * 255 / 224, red * 255 / 224
        height, width = luma.shape
        blue, red = (np.repeat(np.repeat(c, 2, 0), 2, 1)[:height, :width] for c in (blue, red))
        r, b = luma + 2 * (1 - kr) * red, luma + 2 * (1 - kb) * blue
        g = (luma - kr * r - kb * b) / (1 - kr - kb)
        return np.clip(np.stack([r, g, b], axis=-1), 0, 255)


def random_frame(height: int, width: int, seed: int) -> Frame:
    rng = np.random.default_rng(seed)
    half = ((height + 1) // 2, (width + 1) // 2)
    sizes = ((height, width), half, half)
    return Frame(*(rng.integers(0, 256, size, np.uint8) for size in sizes))


def random_levels(height: int, width: int, seed: int) -> Levels:
    """RGBA; alpha is often 0 or 255, where it matters most."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 256, (height, width, 4), np.uint8)
    ends = rng.integers(0, 3, (height, width))
    levels[..., 3] = np.where(ends == 0, 0, np.where(ends == 1, 255, levels[..., 3]))
    return levels


# --- both ways to an input ---


def native(image: dict[str, Any], info: TensorInfo, rule: Preprocessing) -> NDArray[Any]:
    record = rule.for_input(info).to_record(0, info.shape[2])
    fields = {name: record[name].tolist() for name in record.dtype.names or ()}
    return prepare_image(image, fields, info.dtype, info.shape)[0]


def with_pillow(
    image: Image.Image,
    info: TensorInfo,
    rule: Preprocessing,
    crop: tuple[int, int, int, int] | None = None,
    rotation: int = 0,
    is_mirrored: bool = False,
) -> NDArray[Any]:
    if crop is not None:
        left, top, width, height = crop
        image = image.crop((left, top, left + width, top + height))
    if rotation:
        image = image.transpose(Image.Transpose[f"ROTATE_{360 - rotation}"])  # counter-clockwise
    if is_mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return apply_with_pillow(image, info, rule)


def as_image(levels: Levels, fmt: int) -> Image.Image:
    """RGBA levels as Pillow would read an image of that format."""
    if fmt == GRAY:
        return Image.fromarray(levels[..., 0])
    return Image.fromarray(levels if "A" in PACKED_CHANNELS[fmt] else levels[..., :3].copy())


# --- what may come ---


@st.composite
def rules(draw: st.DrawFn, height: int, width: int) -> Preprocessing:
    color = draw(st.sampled_from(sorted(COLOR_CHANNELS)))
    resize = draw(st.sampled_from(Resize))
    base = draw(st.sampled_from([PLAIN, IMAGENET, Preprocessing((-1.0, 1.0))]))
    if COLOR_CHANNELS[color] != 3 and base is IMAGENET:
        base = Preprocessing((0.0, 1.0), (0.5,), (0.3,))
    resize_to = max(height, width) + draw(st.integers(0, 20))
    return replace(
        base,
        color=color,
        resize=resize,
        resize_to=resize_to if resize is Resize.SHORTER_SIDE else 0,
        fill_level=draw(st.integers(0, 255)) if resize is Resize.LETTERBOX else 0,
        interpolation=draw(st.sampled_from(Interpolation)),
    )


@st.composite
def inputs(draw: st.DrawFn) -> tuple[TensorInfo, Preprocessing]:
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    rule = draw(rules(height, width))
    assert rule.color is not None
    dtype = draw(st.sampled_from(["u8", "f32"]))
    return TensorInfo("x", dtype, (height, width, COLOR_CHANNELS[rule.color])), rule


@st.composite
def views(draw: st.DrawFn, height: int, width: int) -> dict[str, Any]:
    """Crop, rotation, mirror."""
    crop = None
    if draw(st.booleans()):
        crop_width, crop_height = draw(st.integers(1, width)), draw(st.integers(1, height))
        left = draw(st.integers(0, width - crop_width))
        crop = (left, draw(st.integers(0, height - crop_height)), crop_width, crop_height)
    return {
        "crop": crop,
        "rotation": draw(st.sampled_from([0, 90, 180, 270])),
        "is_mirrored": draw(st.booleans()),
    }


def viewed(image: dict[str, Any], view: dict[str, Any]) -> dict[str, Any]:
    return image | {name: value for name, value in view.items() if value is not None}


sides = st.integers(1, 90)


@settings(max_examples=600)
@given(data=st.data(), height=sides, width=sides, seed=st.integers(0, 1 << 20))
def test_packed_images_become_what_pillow_makes_of_them(
    data: st.DataObject, height: int, width: int, seed: int
) -> None:
    fmt = data.draw(st.sampled_from(sorted(PACKED_CHANNELS)))
    gaps = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 3))
    info, rule = data.draw(inputs())
    view = data.draw(views(height, width))
    levels = random_levels(height, width, seed)
    got = native(viewed(packed(levels, fmt, *gaps), view), info, rule)
    expected = with_pillow(as_image(levels, fmt), info, rule, **view)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("interpolation", Interpolation, ids=lambda i: i.name.lower())
@pytest.mark.parametrize("resize", ["stretch", "shorter", "letterbox"])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_photos_too(interpolation: Interpolation, resize: str, rotation: int) -> None:
    """Sizes at which weights are many and centres far from 0."""
    rule = {
        "stretch": IMAGENET,
        "shorter": replace(IMAGENET, resize=Resize.SHORTER_SIDE, resize_to=256),
        "letterbox": replace(IMAGENET, resize=Resize.LETTERBOX, fill_level=114),
    }[resize]
    rule = replace(rule, interpolation=interpolation)
    info = TensorInfo("x", "f32", (224, 224, 3))
    for height, width in ((720, 1280), (1201, 333), (100, 223)):
        levels = random_levels(height, width, rotation)
        view = {"crop": None, "rotation": rotation, "is_mirrored": rotation == 90}
        got = native(viewed(packed(levels, RGB), view), info, rule)
        np.testing.assert_array_equal(got, with_pillow(as_image(levels, RGB), info, rule, **view))


def test_a_thin_strip_is_resized_to_the_bit() -> None:
    levels = random_levels(1, 32768, 0)
    for interpolation in Interpolation:
        for rule in (PLAIN, replace(PLAIN, resize=Resize.SHORTER_SIDE, resize_to=60)):
            rule = replace(rule, interpolation=interpolation)
            info = TensorInfo("x", "u8", (60, 47, 3))
            got = native(packed(levels, RGB), info, rule)
            np.testing.assert_array_equal(got, with_pillow(as_image(levels, RGB), info, rule))


# --- camera frames ---


@settings(max_examples=300)
@given(
    height=sides,
    width=sides,
    seed=st.integers(0, 1 << 20),
    fmt=st.sampled_from(YUV_FORMATS),
    yuv=st.sampled_from([BT601_FULL, BT601_LIMITED, BT709_LIMITED]),
    row_gap=st.integers(0, 3),
    pixel_bytes=st.sampled_from([1, 2, 3]),
    data=st.data(),
)
def test_frames_are_their_rounded_rgb(
    height: int,
    width: int,
    seed: int,
    fmt: int,
    yuv: int,
    row_gap: int,
    pixel_bytes: int,
    data: st.DataObject,
) -> None:
    """At most one level off the formula in float64, at any crop, even and odd."""
    frame = random_frame(height, width, seed)
    view = data.draw(views(height, width)) | {"rotation": 0, "is_mirrored": False}
    left, top, crop_width, crop_height = view["crop"] or (0, 0, width, height)
    image = viewed(frame.image(fmt, row_gap, pixel_bytes), view) | {"yuv": yuv}
    got = native(image, TensorInfo("x", "u8", (crop_height, crop_width, 3)), PLAIN)
    expected = frame.rgb(yuv)[top : top + crop_height, left : left + crop_width]
    assert np.abs(got - expected).max() <= 1.0


@settings(max_examples=300)
@given(
    height=sides,
    width=sides,
    seed=st.integers(0, 1 << 20),
    fmt=st.sampled_from(YUV_FORMATS),
    data=st.data(),
)
def test_frames_are_resized_and_turned_as_their_rgb_is(
    height: int, width: int, seed: int, fmt: int, data: st.DataObject
) -> None:
    frame = random_frame(height, width, seed)
    info, rule = data.draw(inputs())
    view = data.draw(views(height, width))
    image = frame.image(fmt)
    rgb = native(image, TensorInfo("x", "u8", (height, width, 3)), PLAIN)
    got = native(viewed(image, view), info, rule)
    expected = with_pillow(Image.fromarray(rgb), info, rule, **view)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("yuv", "luma", "blue", "red", "expected"),
    [
        (BT601_FULL, 255, 128, 128, (255, 255, 255)),
        (BT601_FULL, 0, 128, 128, (0, 0, 0)),
        (BT601_FULL, 0, 0, 0, (0, 135, 0)),  # the green of a frame that nobody filled
        (BT601_FULL, 76, 85, 255, (254, 0, 0)),
        (BT601_LIMITED, 16, 128, 128, (0, 0, 0)),
        (BT601_LIMITED, 235, 128, 128, (255, 255, 255)),
        (BT601_LIMITED, 0, 0, 0, (0, 136, 0)),
        (BT709_LIMITED, 235, 128, 128, (255, 255, 255)),
        (BT709_LIMITED, 63, 102, 240, (255, 1, 0)),
    ],
)
def test_known_colours(
    yuv: int, luma: int, blue: int, red: int, expected: tuple[int, int, int]
) -> None:
    frame = Frame(*(np.full((3, 3), level, np.uint8) for level in (luma, blue, red)))
    frame = replace(frame, blue=frame.blue[:2, :2], red=frame.red[:2, :2])
    info = TensorInfo("x", "u8", (3, 3, 3))
    got = native(frame.image(NV21) | {"yuv": yuv}, info, PLAIN)
    np.testing.assert_array_equal(got, np.broadcast_to(np.array(expected), (3, 3, 3)))


def test_all_layouts_of_a_frame_are_the_same_image() -> None:
    frame = random_frame(37, 51, 4)
    info = TensorInfo("x", "f32", (20, 30, 3))
    expected = native(frame.image(NV21), info, IMAGENET)
    for fmt, row_gap, pixel_bytes in ((NV12, 7, 1), (I420, 0, 1), (I420, 3, 2), (I420, 0, 5)):
        got = native(frame.image(fmt, row_gap, pixel_bytes), info, IMAGENET)
        np.testing.assert_array_equal(got, expected)


# --- what cannot be ---

INFO = TensorInfo("x", "u8", (4, 4, 3))
SMALL = {"format": RGB, "width": 2, "height": 2, "planes": [np.zeros(12, np.uint8)]}
FRAME = random_frame(4, 4, 0).image(NV21)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"format": 8}, r"unknown format 8, expected 0 to 7"),
        ({"format": -1}, r"unknown format -1"),
        ({"yuv": 3}, r"unknown yuv colours 3, expected 0 to 2"),
        ({"rotation": 45}, r"rotation is 45, expected 0, 90, 180 or 270"),
        ({"width": 0}, r"got 0x2 pixels, expected 1 to 32768"),
        ({"height": 32769}, r"got 2x32769 pixels"),
        ({"planes": []}, r"plane 0 is null, expected the 1 planes of format rgb"),
        ({"format": NV21}, r"plane 1 is null, expected the 2 planes of format nv21"),
        ({"pixel_bytes": (2, 0, 0)}, r"pixel_bytes of plane 0 is 2, expected 0 or at least 3"),
        ({"pixel_bytes": (-3, 0, 0)}, r"pixel_bytes of plane 0 is -3"),
        ({"row_bytes": (5, 0, 0)}, r"row_bytes of plane 0 is 5, expected 0 or at least 6 for 2"),
        ({"row_bytes": (-6, 0, 0)}, r"row_bytes of plane 0 is -6"),
        ({"crop": (0, 0, 3, 1)}, r"the crop has left 0, top 0, width 3, height 1; .* 2x2 pixels"),
        ({"crop": (1, 0, 2, 1)}, r"the crop has left 1"),
        ({"crop": (-1, 0, 1, 1)}, r"the crop has left -1"),
        ({"crop": (0, 2147483647, 1, 1)}, r"the crop has left 0, top 2147483647"),
        ({"crop": (0, 0, 1, 0)}, r"width 1, height 0"),
        ({"crop": (0, 0, -1, 1)}, r"width -1"),
        ({"planes": [np.zeros(11, np.uint8)]}, r"plane 0 has 11 bytes, expected at least 12"),
        ({"planes": [np.zeros(12, np.uint8)] * 4}, r"got 4 planes, expected at most 3"),
    ],
)
def test_images_that_cannot_be_are_refused(image: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        native(SMALL | image, INFO, PLAIN)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"color_order": 0}, r"input 'input': nothing says what its 3 channels are"),
        ({"color_order": 5}, r"unknown color_order 5, expected 1 to 4"),
        ({"color_order": 1}, r"the colour order has 1 channels, the input has 3"),
        ({"resize": 3}, r"unknown resize 3, expected 0 to 2"),
        ({"interpolation": -1}, r"unknown interpolation -1"),
        ({"resize": 1, "resize_to": 3}, r"shorter side becomes 3 pixels, expected 4 to 32768"),
        ({"resize": 1, "resize_to": 32769}, r"shorter side becomes 32769 pixels"),
        ({"resize": 2, "fill_level": 256}, r"fill_level is 256, expected 0 to 255"),
        ({"deviation": [1.0, 0.0, 1.0, 1.0]}, r"deviation of channel 1 is 0, expected .* above 0"),
        ({"deviation": [float("nan")] * 4}, r"deviation of channel 0 is nan"),
        ({"deviation": [float("inf")] * 4}, r"deviation of channel 0 is inf"),
        ({"mean": [1e300] * 4}, r"give values that float32 cannot hold"),
        ({"low": float("-inf")}, r"give values that float32 cannot hold"),
        ({"low": 255.0}, r"low and high are both 255, expected two different numbers"),
    ],
)
def test_rules_that_cannot_be_are_refused(fields: dict[str, Any], message: str) -> None:
    record = PLAIN.for_input(INFO).to_record(0, 3)
    rule = {name: record[name].tolist() for name in record.dtype.names or ()}
    with pytest.raises(InputError, match=message):
        prepare_image(SMALL, rule | fields, "f32", (4, 4, 3))


def test_bits_are_no_image() -> None:
    with pytest.raises(InputError, match="it takes bits, which images do not become"):
        native(SMALL, replace(INFO, dtype="bit"), PLAIN)


def test_a_strip_that_becomes_too_large_is_refused_as_in_python() -> None:
    levels = random_levels(1, 32768, 0)
    rule = replace(PLAIN, resize=Resize.SHORTER_SIDE, resize_to=65)
    with pytest.raises(InputError, match="too large"):
        native(packed(levels, RGB), INFO, rule)
    with pytest.raises(InputError, match="too large"):
        rule.apply(as_image(levels, RGB), INFO)
