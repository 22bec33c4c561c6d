"""The npm package of packaging/web.py in Node.js: shipped networks give what Python gives.

PHONEBIT_WEB names the folder that packaging/web.py has filled.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from phonebit import Network
from phonebit.detection import detect
from phonebit.images.image_files import load_image
from phonebit.network.tasks import class_probabilities
from support.node_script import answer_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRAINED = ROOT / "models" / "trained"
GARMENTS = sorted((ROOT / "models" / "fashion_mnist" / "images").glob("*.png"))[:3]
SCENE = ROOT / "training" / "garment_scenes" / "scene.png"


@pytest.fixture(scope="module")
def package() -> Path:
    folder = os.environ.get("PHONEBIT_WEB")
    if folder is None or shutil.which("node") is None:
        pytest.skip("PHONEBIT_WEB names no folder of packaging/web.py, or there is no Node.js")
    return Path(folder).resolve()


def ask(package: Path, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return answer_of(HERE / "package.mjs", package, requests)


def as_levels(path: Path, folder: Path) -> dict[str, Any]:
    """An image as a page reads it from a canvas: RGBA."""
    image = Image.open(path).convert("RGBA")
    target = folder / f"{path.stem}.rgba"
    target.write_bytes(image.tobytes())
    return {"path": str(target), "width": image.width, "height": image.height}


@pytest.mark.parametrize("name", ["fashion-larq", "fashion-resnet18"])
@pytest.mark.parametrize(
    ("device", "threads", "tolerance"),
    # Float layers have no fused multiply-add in WebAssembly's SIMD.
    [("cpu:scalar", 1, 0.0), ("cpu:wasm_simd", 1, 1e-5), ("cpu:wasm_simd", 2, 1e-5)],
)
def test_classes_are_those_of_python(
    package: Path, name: str, device: str, threads: int, tolerance: float, tmp_path: Path
) -> None:
    file = TRAINED / f"{name}.pbit"
    network = Network.load(file, device="cpu")
    (rule,) = network.preprocessing.values() if network.preprocessing else (None,)
    requests = [
        {
            "file": str(file),
            "device": device,
            "threads": threads,
            "task": task,
            "image": as_levels(path, tmp_path),
        }
        for path in GARMENTS
        for task in ("forward", "classify")
    ]
    answers = iter(ask(package, requests))
    for path in GARMENTS:
        values = network.forward(load_image(path, network.inputs[0], rule).array[None])
        forward, classify = next(answers), next(answers)
        assert (forward["device"], forward["threads"]) == (device, threads), forward
        (output,) = forward["result"]
        given = np.array(output["data"], np.float32).reshape(values.shape)
        assert output["shape"] == [1, 1, 1, values.size]
        np.testing.assert_allclose(given, values, rtol=tolerance, atol=tolerance)
        expected = class_probabilities(network, np.asarray(values, np.float64).ravel())
        order = np.argsort(-expected, kind="stable")[:5]
        assert [found["index"] for found in classify["result"]] == list(order)
        assert [found["label"] for found in classify["result"]] == [
            network.labels[i] for i in order
        ]
        probabilities = [found["probability"] for found in classify["result"]]
        np.testing.assert_allclose(probabilities, expected[order], rtol=max(tolerance, 1e-12))


def test_boxes_are_those_of_python(package: Path, tmp_path: Path) -> None:
    file = TRAINED / "garments-yolov2-tiny.pbit"
    network = Network.load(file, device="cpu")
    image = load_image(SCENE, network.inputs[0], next(iter(network.preprocessing.values())))
    (head,) = network.detection.values()
    output = np.asarray(network.forward(image.array[None]))[0]
    expected = detect(output, head, image.placement, network.labels)
    request = {
        "file": str(file),
        "threads": 1,
        "task": "detect",
        "image": as_levels(SCENE, tmp_path),
    }
    (answer,) = ask(package, [request])
    assert len(expected) > 1
    found = answer["result"]
    assert [(box["index"], box["label"]) for box in found] == [(e.index, e.label) for e in expected]
    for given, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(given["box"], wanted.box, rtol=1e-4, atol=1e-2)
        assert given["score"] == pytest.approx(wanted.score, rel=1e-4)


def test_errors_are_sentences(package: Path, tmp_path: Path) -> None:
    good, text = TRAINED / "fashion-larq.pbit", tmp_path / "page.html"
    text.write_text("<html>404</html>")
    image = as_levels(GARMENTS[0], tmp_path)
    base = {"threads": 1, "task": "classify", "image": image}
    cut = {**image, "height": 27}
    answers = ask(
        package,
        [
            {**base, "file": str(text)},
            {**base, "file": str(tmp_path / "none.pbit")},
            {**base, "file": str(good), "threads": 0},
            {**base, "file": str(good), "image": cut},
            {**base, "file": str(good), "image": {}},
            {**base, "file": str(good), "task": "detect"},
            {**base, "file": str(TRAINED / "garments-yolov2-tiny.pbit")},
            {**base, "file": str(good)},
        ],
    )
    expected = [
        "memory of 16 bytes: 16 bytes are too short for a .pbit file",
        f"{tmp_path / 'none.pbit'}: ENOENT: no such file or directory",
        "threads: got 0, expected a whole number from 1 on",
        "image: got 3136 levels of 28x27 pixels, expected 3024 (RGBA)",
        "input 'picture': got Float32Array of 3 elements, expected Uint8Array of 784 (1 x u8 28",
        "the file does not say what boxes the output means",
        "this network is no image classifier: its outputs are f32 ",
    ]
    for answer, sentence in zip(answers, expected, strict=False):
        assert answer["error"].startswith(f"PhoneBitError: {sentence}"), answer
    assert len(answers[-1]["result"]) == 5


def test_version_is_the_project_s(package: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = json.loads((package / "package.json").read_text(encoding="utf-8"))
    assert about["version"] == project["version"]
    for name in (about["exports"]["."]["default"], about["types"], "worker.js"):
        assert (package / name).is_file()
