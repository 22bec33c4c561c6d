"""The detector of garments: its scenes, its loss, and outputs equal to PyTorch's to the last bit.

The shipped checkpoint runs on the first test scenes, if Fashion-MNIST is there; a network with
random weights runs on made-up garments.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

from phonebit import Network  # noqa: E402
from phonebit.detection import read_head  # noqa: E402
from phonebit.detection.yolov2 import decode  # noqa: E402
from phonebit.models.trained import trained_file  # noqa: E402
from training import packed_checkpoint  # noqa: E402
from training.fashion_mnist.dataset import CLASS_NAMES, DEFAULT_DIR, Split  # noqa: E402
from training.garment_scenes import evaluate, fitting, scenes, train  # noqa: E402
from training.garment_scenes.anchors import find_anchors  # noqa: E402
from training.garment_scenes.loss import (  # noqa: E402
    detection_loss,
    overlaps,
    predicted_boxes,
)
from training.garment_scenes.network import round_last_layer_  # noqa: E402
from training.garment_scenes.scene_set import SceneSet  # noqa: E402

SEED = 5
SCENES = 60
SHIPPED = "yolov2_tiny_half"
MAX_BYTES = 1_000_000
MAP_MARGIN = 0.08
"""On so few scenes, with twenty garments per class, precision differs so much from that of 500."""
HEAD = read_head(train.HERE / "detection.toml")


def made_up_garments() -> Split:
    """Filled rectangles of ten shapes with a rim of zeros."""
    images = np.zeros((10, 28, 28, 1), np.uint8)
    for index, image in enumerate(images):
        image[4 : 10 + 1 * index + 4, 6 : 22 - index] = 120 + 10 * index
    return Split(images, np.arange(10, dtype=np.uint8))


def made_up_scenes(count: int) -> SceneSet:
    garments = made_up_garments()
    return SceneSet.collect(
        (scenes.make_scene(garments, "train", index, SEED) for index in range(count)), count
    )


@pytest.fixture(scope="module")
def untrained() -> Any:
    """A small network whose statistics follow its layers, its last layer rounded."""
    torch.manual_seed(SEED)
    network = train.NETWORKS["yolov2_tiny_quarter"]().train()
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.momentum = 1.0
                layer.weight.copy_(torch.randn(layer.num_features))
                layer.bias.copy_(torch.randn(layer.num_features) / 2)
        network(made_up_scenes(2).inputs(0, 2))
    round_last_layer_(network)
    return network.eval()


def test_scenes_are_the_same_again_and_differ_by_number_and_split() -> None:
    garments = made_up_garments()
    first, again = (scenes.make_scene(garments, "train", 3, SEED) for _ in range(2))
    np.testing.assert_array_equal(first.image, again.image)
    np.testing.assert_array_equal(first.boxes, again.boxes)
    for other in (
        scenes.make_scene(garments, "train", 4, SEED),
        scenes.make_scene(garments, "t10k", 3, SEED),
        scenes.make_scene(garments, "train", 3, SEED + 1),
    ):
        assert (first.image != other.image).any()


def test_boxes_are_within_the_image_and_cover_each_other_little() -> None:
    garments = made_up_garments()
    for index in range(25):
        scene = scenes.make_scene(garments, "train", index, SEED)
        assert 1 <= len(scene.boxes) == len(scene.classes) <= scenes.MAX_GARMENTS
        assert scene.boxes.min() >= 0 and scene.boxes.max() <= scenes.SIDE
        assert (scene.boxes[:, 2:] > scene.boxes[:, :2]).all()
        for i, box in enumerate(scene.boxes):
            for other in scene.boxes[:i]:
                shared = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
                smaller = min(np.prod(b[2:] - b[:2]) for b in (box, other))
                assert np.prod(np.maximum(shared, 0)) <= (scenes.MAX_COVER + 1e-6) * smaller


def test_boxes_are_tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an empty canvas with one white garment, its pixels span the box."""
    monkeypatch.setattr(
        scenes, "background", lambda rng, side: np.zeros((side, side, 3), np.float32)
    )
    monkeypatch.setattr(scenes, "scrap", lambda *_: None)
    monkeypatch.setattr(scenes, "MAX_GARMENTS", 1)
    for index in range(10):
        scene = scenes.make_scene(made_up_garments(), "train", index, SEED)
        rows = np.flatnonzero((scene.image > 12).any(axis=(1, 2)))
        columns = np.flatnonzero((scene.image > 12).any(axis=(0, 2)))
        seen = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
        # Half-covered pixels of a dark tint fall on either side of what counts as seen here.
        assert np.abs(np.array(seen) - scene.boxes[0]).max() <= 3


def test_decoding_in_the_loss_is_that_of_the_product() -> None:
    outputs = torch.randn(2, 75, 13, 13, generator=torch.Generator().manual_seed(SEED))
    anchors = torch.tensor(HEAD.anchors)
    boxes = predicted_boxes(outputs.view(2, 5, 15, 13, 13), anchors)
    for output, got in zip(outputs, boxes, strict=True):
        expected = decode(output.permute(1, 2, 0).numpy(), HEAD).boxes.reshape(13, 13, 5, 4) * 13
        centred = got.permute(1, 2, 0, 3).numpy()
        low, high = centred[..., :2] - centred[..., 2:] / 2, centred[..., :2] + centred[..., 2:] / 2
        np.testing.assert_allclose(np.concatenate([low, high], -1), expected, rtol=1e-4, atol=1e-4)


def perfect_outputs(split: SceneSet) -> Any:
    """What a perfect network would answer, written in plain loops."""
    anchors = torch.tensor(HEAD.anchors)
    outputs = torch.zeros(len(split), 5, 15, 13, 13)
    outputs[:, :, 4] = -20
    for n in range(len(split)):
        for box, kind in zip(split.targets.boxes[n], split.targets.classes[n], strict=True):
            if kind < 0:
                continue
            x, y, w, h = box.tolist()
            shape = torch.tensor([0, 0, w, h])
            priors = [torch.tensor([0, 0, *anchor]) for anchor in HEAD.anchors]
            a = int(np.argmax([float(overlaps(shape, prior)) for prior in priors]))
            place = outputs[n, a, :, int(y), int(x)]
            offset = torch.tensor([x - int(x), y - int(y)]).clamp(1e-6, 1 - 1e-6)
            place[:2] = offset.logit()
            place[2:4] = (torch.tensor([w, h]) / anchors[a]).log()
            place[4], place[5 + int(kind)] = 20, 20
    return outputs.view(len(split), 75, 13, 13)


def test_a_perfect_answer_has_no_loss_and_full_precision() -> None:
    split = made_up_scenes(6)
    outputs = perfect_outputs(split)
    anchors = torch.tensor(HEAD.anchors)
    best = detection_loss(outputs, split.targets, anchors)
    assert float(best) < 0.01
    head_outputs = outputs.permute(0, 2, 3, 1).numpy()
    assert fitting.precision_of(head_outputs, split, HEAD)[0] > 0.999
    generator = torch.Generator().manual_seed(SEED)
    for _ in range(3):
        worse = outputs + 0.3 * torch.randn(outputs.shape, generator=generator)
        assert detection_loss(worse, split.targets, anchors) > best


def test_mirrored_scenes_have_mirrored_boxes() -> None:
    split = made_up_scenes(8)
    x, targets = split.augmented(torch.arange(8), torch.Generator().manual_seed(SEED))
    plain = split.inputs(0, 8)
    mirrored = [not torch.equal(x[n], plain[n]) for n in range(8)]
    assert 0 < sum(mirrored) < 8
    for n, is_mirrored in enumerate(mirrored):
        there = targets.classes[n] >= 0
        boxes, before = targets.boxes[n][there], split.targets.boxes[n][there]
        expected = before.clone()
        if is_mirrored:
            assert torch.equal(x[n], plain[n].flip(2))
            expected[:, 0] = 13 - before[:, 0]
        assert torch.equal(boxes, expected)


def test_training_lowers_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "WARM_UP_STEPS", 1)
    monkeypatch.setattr(fitting, "LOG_STEPS", 5)
    split = made_up_scenes(2)
    torch.manual_seed(SEED)
    network = train.NETWORKS["yolov2_tiny_quarter"]()
    anchors = torch.tensor(HEAD.anchors)
    how = fitting.Schedule(20, 0, 2, 4e-3, half=False)
    log = fitting.fit(network, split, anchors, how, SEED)
    assert log["steps"] == 20 and log["scenes_seen"] == 40
    losses = [row["loss"] for row in log["loss"]]
    assert len(losses) == 4 and losses[-1] < 0.8 * losses[0]
    assert not network.training
    with pytest.raises(ValueError, match="expected at least one batch: 8"):
        fitting.fit(network, split, anchors, fitting.Schedule(1, 0, 8, 1e-3, False), SEED)


def test_anchors_are_the_sizes_that_there_are() -> None:
    sizes = np.repeat([[1.0, 2.0], [4.0, 3.0], [6.0, 6.0]], 20, axis=0)
    np.testing.assert_allclose(find_anchors(sizes, 3, SEED), [[1, 2], [4, 3], [6, 6]])


def test_outputs_of_the_engine_equal_pytorch(untrained: Any, tmp_path: Path) -> None:
    file = tmp_path / "network.pbit"
    file.write_bytes(evaluate.convert(untrained, "untrained").content)
    engine = Network.load(file, "cpu")
    assert engine.labels == list(CLASS_NAMES)
    assert engine.detection == {engine.outputs[0].name: HEAD}
    comparison = evaluate.compare(untrained, [engine], made_up_scenes(3))
    assert comparison.equal() == [3]
    assert len(np.unique(comparison.torch_outputs)) > 1000, "numbers that are alike show nothing"
    changed = evaluate.Comparison(comparison.torch_outputs, [comparison.engine_outputs[0] + 1])
    assert changed.equal() == [0]


def test_checkpoints_give_the_network_back(untrained: Any, tmp_path: Path) -> None:
    path = tmp_path / "network.pth"
    packed_checkpoint.save(untrained, "yolov2_tiny_quarter", path)
    name, again = packed_checkpoint.load(path, train.NETWORKS)
    x = made_up_scenes(1).inputs(0, 1)
    with torch.no_grad():
        assert name == "yolov2_tiny_quarter" and torch.equal(again(x), untrained(x))
    packed_checkpoint.save(untrained, "yolov2_tiny_half", path)
    with pytest.raises(ValueError, match="of another width"):
        packed_checkpoint.load(path, train.NETWORKS)
    packed_checkpoint.save(untrained, "vgg", path)
    with pytest.raises(ValueError, match="got network 'vgg', expected one of"):
        packed_checkpoint.load(path, train.NETWORKS)
    torch.save({"state": 1}, path)
    with pytest.raises(ValueError, match="not a checkpoint"):
        packed_checkpoint.load(path, train.NETWORKS)


def test_the_shipped_checkpoint_finds_garments(tmp_path: Path) -> None:
    path = train.HERE / f"{SHIPPED}.pth"
    if not (DEFAULT_DIR / "t10k-images-idx3-ubyte.gz").is_file():
        pytest.skip(f"no Fashion-MNIST in {DEFAULT_DIR}: apt-get install dataset-fashion-mnist")
    assert path.stat().st_size < MAX_BYTES
    made = list(train.make_scenes(DEFAULT_DIR, "t10k", SCENES, train.SEED))
    row = evaluate.evaluate(path, ["cpu"], SceneSet.collect(iter(made), SCENES))
    assert row["engine"]["cpu"]["scenes_with_equal_outputs"] == SCENES
    assert row["engine"]["cpu"]["map"] == row["map_in_torch"]
    _, module = packed_checkpoint.load(path, train.NETWORKS)
    shipped = Network.load(trained_file("garments-yolov2-tiny"), "cpu")
    assert evaluate.compare(module, [shipped], SceneSet.collect(iter(made[:2]), 2)).equal() == [2]
    log = json.loads((train.HERE / "training.json").read_text())["networks"][SHIPPED]
    assert abs(row["map_in_torch"] - log["map"]) < MAP_MARGIN
