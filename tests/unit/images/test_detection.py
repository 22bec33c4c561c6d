"""Detection against plain loops written from the formulas of docs/detection.md."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phonebit import InputError, Preprocessing
from phonebit.detection import (
    DetectionHead,
    Limits,
    Truth,
    coco_precision,
    detect,
    find_boxes,
    mean_average_precision,
    read_head,
)
from phonebit.detection.overlap import intersection_over_union, suppress
from phonebit.detection.yolov2 import decode
from phonebit.format.records import DETECTION
from phonebit.images.placement import Placement
from phonebit.images.preprocessing import Resize
from phonebit.layer_info import TensorInfo
from support.pillow_fitting import placed

HEAD = DetectionHead(((1.5, 2.25), (4.0, 3.0), (0.5, 6.0)))
WHOLE = Placement((416, 416), (416, 416), (0, 0), (416, 416))


def plain_sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def plain_decode(output: NDArray[np.float32], head: DetectionHead) -> list[tuple[Any, list[float]]]:
    height, width, channels = output.shape
    each = channels // len(head.anchors)
    result = []
    for j in range(height):
        for i in range(width):
            for a, (anchor_w, anchor_h) in enumerate(head.anchors):
                x, y, w, h, objectness, *classes = map(
                    float, output[j, i, a * each : (a + 1) * each]
                )
                cx, cy = (i + plain_sigmoid(x)) / width, (j + plain_sigmoid(y)) / height
                bw, bh = anchor_w * math.exp(w) / width, anchor_h * math.exp(h) / height
                total = sum(math.exp(c) for c in classes)
                scores = [plain_sigmoid(objectness) * math.exp(c) / total for c in classes]
                box = (cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2)
                result.append((box, scores))
    return result


def plain_overlap(a: Any, b: Any) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union > 0 else 0.0


def plain_suppress(boxes: Any, scores: Any, limit: float) -> list[int]:
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    kept: list[int] = []
    for i in order:
        if all(plain_overlap(boxes[i], boxes[k]) <= limit for k in kept):
            kept.append(i)
    return kept


def test_decoding_follows_the_formulas() -> None:
    output = np.random.default_rng(1).normal(0, 2, (4, 5, 3 * (5 + 4))).astype(np.float32)
    got = decode(output, HEAD)
    expected = plain_decode(output, HEAD)
    np.testing.assert_allclose(got.boxes, [box for box, _ in expected], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.scores, [scores for _, scores in expected], rtol=1e-12)


def test_extreme_numbers_decode_to_numbers() -> None:
    output = np.zeros((1, 1, 3 * 6), np.float32)
    output[..., :] = np.resize([1e30, -1e30, 3e38, -3e38, 1e9, -1e9], 18)
    got = decode(output, HEAD)
    assert np.isfinite(got.boxes).all() and np.isfinite(got.scores).all()


@pytest.mark.parametrize("channels", [14, 15, 3 * 6 + 1])
def test_channels_that_do_not_fit_are_refused(channels: int) -> None:
    with pytest.raises(InputError, match=r"3 x \(5 \+ classes\)"):
        decode(np.zeros((2, 2, channels)), HEAD)


BOXES = st.lists(
    st.tuples(*[st.integers(0, 8)] * 4, st.integers(0, 5)).map(
        lambda t: (t[0], t[1], t[0] + t[2], t[1] + t[3], t[4] / 5)
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(BOXES, st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_suppression_equals_the_plain_one(drawn: list[tuple[float, ...]], limit: float) -> None:
    table = np.array(drawn, np.float64).reshape(-1, 5)
    boxes, scores = table[:, :4], table[:, 4]
    kept = suppress(boxes, scores, limit)
    assert kept.tolist() == plain_suppress(boxes.tolist(), scores.tolist(), limit)
    # Invariants: best first, none overlaps another, each that is gone overlaps a better one.
    assert np.all(np.diff(scores[kept]) <= 0)
    for place, i in enumerate(kept):
        assert np.all(intersection_over_union(boxes[i], boxes[kept[:place]]) <= limit)
    for i in set(range(len(boxes))) - set(kept.tolist()):
        better = [k for k in kept if (-scores[k], k) < (-scores[i], i)]
        assert np.any(intersection_over_union(boxes[i], boxes[better]) > limit)
    assert set(suppress(boxes[kept], scores[kept], limit).tolist()) == set(range(len(kept)))


def test_classes_do_not_suppress_each_other_and_the_best_comes_first() -> None:
    output = np.zeros((1, 1, 2 * 7), np.float32)
    output[0, 0, 4], output[0, 0, 5:7] = 9, (0, 5)
    output[0, 0, 11], output[0, 0, 12:14] = 9, (4, 0)
    head = DetectionHead(((1.0, 1.0), (1.0, 1.0)))
    found = find_boxes(output, head, Limits(0.5, 0.45))
    assert [index for index, _, _ in found] == [1, 0]
    again = find_boxes(output, head, Limits(0.001, 0.45))
    assert [index for index, _, _ in again] == [1, 0]  # each class's second box is suppressed


# --- back to the image ---


@pytest.mark.parametrize(
    ("size", "rule", "expected"),
    [
        ((832, 416), Preprocessing((0, 1)), (0, 0, 832, 416)),
        ((832, 416), Preprocessing((0, 1), resize=Resize.LETTERBOX), (0, 0, 832, 416)),
        ((400, 800), Preprocessing((0, 1), resize=Resize.LETTERBOX), (0, 0, 400, 800)),
        (
            (1000, 500),
            Preprocessing((0, 1), resize=Resize.SHORTER_SIDE, resize_to=500),
            (292, 42, 708, 458),
        ),
    ],
)
def test_the_whole_input_is_what_it_shows_of_the_image(
    size: tuple[int, int], rule: Preprocessing, expected: tuple[int, ...]
) -> None:
    placement = placed(size, (416, 416), rule)
    np.testing.assert_allclose(placement.to_image(np.array([0.0, 0.0, 1.0, 1.0])), expected)


@pytest.mark.parametrize(
    "rule",
    [
        Preprocessing((0, 1)),
        Preprocessing((0, 1), resize=Resize.LETTERBOX, fill_level=9),
        Preprocessing((0, 1), resize=Resize.SHORTER_SIDE, resize_to=90),
    ],
    ids=lambda rule: rule.resize.name.lower(),
)
@pytest.mark.parametrize("size", [(160, 80), (75, 150), (64, 64), (301, 97)])
def test_boxes_seen_in_the_input_are_found_in_the_image(
    size: tuple[int, int], rule: Preprocessing
) -> None:
    """A bright box is drawn, the image is fitted, its edges are found and carried back."""
    width, height = size
    # In the middle, so that the cut to a square keeps it.
    box = np.array([width / 2 - 14, height / 2 - 9, width / 2 + 12, height / 2 + 17]).round()
    left, top, right, bottom = box.astype(int)
    levels = np.zeros((height, width), np.uint8)
    levels[top:bottom, left:right] = 255
    fitted = rule.fit(levels, TensorInfo("x", "u8", (64, 80, 1)))
    rows = np.flatnonzero((fitted.array > 127).any(axis=(1, 2)))
    columns = np.flatnonzero((fitted.array > 127).any(axis=(0, 2)))
    seen = np.array([columns[0] / 80, rows[0] / 64, (columns[-1] + 1) / 80, (rows[-1] + 1) / 64])
    pixel = max(s / c for s, c in zip(size, fitted.placement.scaled, strict=True))
    assert np.abs(fitted.placement.to_image(seen) - box).max() <= pixel + 1e-9


def test_detections_are_cut_at_the_border_and_dropped_outside() -> None:
    output = np.full((2, 1, 6), -9, np.float32)
    output[0, 0] = (0, 0, 1, 1, 9, 0)
    letterboxed = Placement((100, 50), (100, 50), (0, 25), (100, 100))
    found = detect(output, DetectionHead(((1.0, 1.0),)), letterboxed, ["thing"])
    assert [(item.label, item.index) for item in found] == [("thing", 0)]
    left, top, right, bottom = found[0].box
    assert (left, top, right) == (0, 0, 100) and 0 < bottom <= 50
    outside = Placement((100, 10), (100, 10), (0, 90), (100, 100))
    tiny = DetectionHead(((0.1, 0.1),))
    assert detect(output, tiny, outside, ["thing"]) == []
    assert detect(output, tiny, WHOLE)[0].label == "class 0"


# --- mean average precision ---


def truth(*items: tuple[int, tuple[float, ...]]) -> Truth:
    return Truth(
        np.array([index for index, _ in items], int),
        np.array([box for _, box in items], float).reshape(-1, 4),
    )


def found_box(index: int, score: float, box: tuple[float, ...]) -> tuple[int, float, Any]:
    return index, score, np.array(box, float)


A, B, C = (0.0, 0.0, 2.0, 2.0), (4.0, 4.0, 6.0, 6.0), (8.0, 0.0, 9.0, 9.0)


def test_precision_of_a_hand_computed_case() -> None:
    """Right, wrong, right of 4 true ones: monotone precision 1 and 2/3, so (1 + 2/3) / 4."""
    truths = [truth((0, A), (0, B)), truth((0, A), (0, C))]
    found = [
        [found_box(0, 0.9, A), found_box(0, 0.8, (20, 20, 22, 22))],
        [found_box(0, 0.7, C)],
    ]
    mean, each = mean_average_precision(found, truths, 2)
    assert mean == pytest.approx((1 + 2 / 3) / 4)
    assert math.isnan(each[1])


def test_a_true_box_is_found_once_and_only_by_its_class() -> None:
    truths = [truth((0, A), (1, B))]
    found = [[found_box(0, 0.9, A), found_box(0, 0.8, A), found_box(0, 0.7, B)]]
    mean, each = mean_average_precision(found, truths, 2)
    assert each == [1.0, 0.0] and mean == 0.5


def test_precision_is_made_monotone_from_the_right() -> None:
    """Wrong, right: 1/2 at the only recall. Wrong ones after all right ones cost nothing."""
    truths = [truth((0, A))]
    wrong_first = [[found_box(0, 0.9, B), found_box(0, 0.8, A)]]
    assert mean_average_precision(wrong_first, truths, 1)[0] == 0.5
    wrong_last = [[found_box(0, 0.8, B), found_box(0, 0.9, A)]]
    assert mean_average_precision(wrong_last, truths, 1)[0] == 1.0


def test_the_overlap_decides() -> None:
    truths = [truth((0, (0, 0, 2, 1)))]
    half = [[found_box(0, 0.9, (0, 0, 1, 1))]]
    assert mean_average_precision(half, truths, 1, overlap=0.5)[0] == 1.0
    assert mean_average_precision(half, truths, 1, overlap=0.51)[0] == 0.0
    assert math.isnan(mean_average_precision([[]], [truth()], 1)[0])


def test_precision_as_coco_measures_it() -> None:
    """0.72 is enough for five of ten overlaps; what lies in a crowd is neither right nor wrong."""
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [50, 50, 90, 90]], np.float64)
    what = Truth(np.zeros(3, np.int64), boxes, np.array([False, False, True]))
    found = [
        (0, 0.95, np.array([60.0, 60, 65, 65])),
        (0, 0.9, np.array([0, 0, 10, 7.2])),
        (0, 0.8, np.array([0.0, 30, 10, 40])),
        (0, 0.7, boxes[1]),
    ]
    precision = coco_precision([found], [what], 2)
    assert precision.at_50 == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert precision.at_75 == pytest.approx(51 * 1 / 3 / 101)
    assert precision.mean == pytest.approx((precision.at_50 + precision.at_75) / 2)
    assert precision.classes[0] == precision.mean and math.isnan(precision.classes[1])
    difficult = [(0, 0.95, boxes[2]), *found[1:]]
    assert mean_average_precision([difficult], [what], 1)[0] == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize(("wrong", "precision"), [(99, 0.01), (100, 0.0)])
def test_a_hundred_boxes_of_a_class_count_in_an_image(wrong: int, precision: float) -> None:
    found = [found_box(0, 0.9, B)] * wrong + [found_box(0, 0.8, A)]
    assert coco_precision([found], [truth((0, A))], 1).at_50 == pytest.approx(precision)


# --- the facts ---


def test_heads_survive_their_record() -> None:
    record = np.frombuffer(HEAD.to_record(0).tobytes(), DETECTION)[0]
    assert DetectionHead.from_record(record) == HEAD
    assert HEAD.classes(30) == 5


@pytest.mark.parametrize(
    "anchors", [(), ((1.0, 0.0),), ((1.0,),), ((math.nan, 1.0),), ((1.0, 1.0),) * 17, ((1, 2e7),)]
)
def test_wrong_anchors_are_refused(anchors: Any) -> None:
    with pytest.raises(InputError, match="anchors"):
        DetectionHead(anchors)


def test_a_toml_file_tells_the_anchors(tmp_path: Path) -> None:
    path = tmp_path / "anchors.toml"
    for text in ("anchors = [[1.5, 2]]", '[detection]\nkind = "yolov2"\nanchors = [[1.5, 2]]'):
        path.write_text(text)
        assert read_head(path) == DetectionHead(((1.5, 2.0),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("anchors = [[1, 2]]\nanchor = 3", "unknown key anchor"),
        ('kind = "yolov2"', "no anchors in it"),
        ('kind = "ssd"\nanchors = [[1, 2]]', "expected yolov2"),
        ("anchors = 3", "expected a list"),
        ("anchors = [1, 2]", "pairs"),
        ("anchors = [[1, true]]", "pairs"),
        ('anchors = [["a", 2]]', "pairs"),
        ("detection = 1", "expected a table"),
        ("anchors = [", "not valid TOML"),
    ],
)
def test_wrong_toml_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "anchors.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_head(path)
