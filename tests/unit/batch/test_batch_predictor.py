"""A network as a function of columns, without Ray: forms of images, broken ones, labels, boxes."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from phonebit import InputError, Network
from phonebit.batch import BatchPredictor
from phonebit.converter.writer import to_bytes
from support.detector_graph import CELL, SIDE, cell_detector

UNREADABLE = "not an image that can be read (unknown format)"


def column(*items: Any) -> np.ndarray[Any, Any]:
    """An array of objects, of which some may be arrays."""
    array = np.empty(len(items), np.object_)
    array[:] = items
    return array


def test_every_form_of_images_gives_the_same_labels(u8_file: Path, images: list[Path]) -> None:
    predictor = pickle.loads(pickle.dumps(BatchPredictor(u8_file, device="cpu", threads=2)))
    levels = np.stack([np.asarray(Image.open(image)) for image in images])
    strided = np.repeat(levels, 2, axis=2)[:, :, ::2]
    strided.flags.writeable = False
    contents = [image.read_bytes() for image in images]
    expected = Network.load(u8_file, device="cpu")(levels[..., None]).argmax(axis=1)
    for form in (
        np.array([str(image) for image in images]),
        column(*contents),
        column(*({"bytes": content, "path": None} for content in contents)),
        strided,
    ):
        found = predictor({"image": form, "id": np.arange(len(form))})
        assert found["class_index"].tolist() == expected.tolist()
        assert found["id"].tolist() == list(range(len(form)))
        assert ("image" in found) == (form.dtype.kind == "U")
        assert set(found["error"]) == {""}
    labels = predictor.network.labels
    assert found["class_name"].tolist() == [labels[index] for index in expected]
    assert np.all((found["probability"] > 0.1) & (found["probability"] <= 1))


def test_broken_images_are_rows_with_their_error(u8_file: Path, images: list[Path]) -> None:
    predictor = BatchPredictor(u8_file.read_bytes(), "picture", device="cpu", threads=1)
    good = images[0].read_bytes()
    odd = io.BytesIO()
    Image.new("LAB", (8, 8)).save(odd, "TIFF")
    batch = {
        "picture": column(good, b"text", odd.getvalue(), None, np.zeros((2, 2, 7), np.uint8), good)
    }
    found = predictor(batch)
    assert found["class_index"][[0, 5]].tolist() == [9, 9]
    assert (
        found["class_index"][1:5].tolist() == [-1] * 4 and np.isnan(found["probability"][1:5]).all()
    )
    assert found["error"][[0, 1, 5]].tolist() == ["", UNREADABLE, ""] and all(found["error"][2:5])
    alone = predictor({"picture": np.array(["gone.png"])})
    assert (alone["class_name"][0], alone["error"][0]) == ("", "No such file or directory")
    assert all(len(array) == 0 for array in predictor({"picture": column()}).values())


def test_values_of_a_real_input(f32_file: Path) -> None:
    predictor = BatchPredictor(f32_file, device="cpu")
    values = np.linspace(-1, 1, 2 * 28 * 28, dtype=np.float32).reshape(2, 28, 28, 1)
    expected = Network.load(f32_file, device="cpu")(values).argmax(axis=1)
    assert predictor({"image": values})["class_index"].tolist() == expected.tolist()
    values[1, 0, 0] = np.nan
    assert predictor({"image": values})["error"].tolist() == ["", "values that are not finite"]
    assert "not" in predictor({"image": values[:, :9]})["error"][0]
    with pytest.raises(InputError, match="--input-range"):
        predictor({"image": np.array(["a.png"])})


def test_boxes_are_in_pixels_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "cells.pbit").write_bytes(to_bytes(cell_detector()))
    levels = np.zeros((3, SIDE, SIDE, 3), np.uint8)
    levels[0, :CELL, CELL : 2 * CELL] = (255, 0, 0)
    predictor = BatchPredictor(tmp_path / "cells.pbit", device="cpu")
    found = predictor({"image": column(levels[0], levels[1], b"text")})
    ((box,), *others) = found["detections"]
    assert (box["label"], box["box"]) == ("red thing", [CELL, 0.0, 2 * CELL, CELL])
    assert others == [[], []] and found["error"].tolist() == ["", "", UNREADABLE]


def test_columns_that_do_not_fit_are_refused(u8_file: Path) -> None:
    predictor = BatchPredictor(u8_file, device="cpu")
    with pytest.raises(InputError, match=r"no column 'image' \(got picture\)"):
        predictor({"picture": column(b"")})
    with pytest.raises(InputError, match="'error'"):
        predictor({"image": column(b""), "error": column("")})


def test_an_actor_has_its_own_threads_and_devices(
    u8_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def actor(**resources: float) -> BatchPredictor:
        context = SimpleNamespace(
            get_actor_id=lambda: "1", get_assigned_resources=lambda: resources
        )
        fake = SimpleNamespace(is_initialized=lambda: True, get_runtime_context=lambda: context)
        monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
        return BatchPredictor(u8_file)

    network = actor(CPU=3.0).network
    assert (network.threads, network.device.partition(":")[0]) == (3, "cpu")
    assert actor(CPU=0.5).network.threads == 1
    loaded: list[Any] = []
    monkeypatch.setattr(Network, "load", lambda path, **options: loaded.append(options))
    with pytest.raises(AttributeError):  # of the network that was not loaded
        actor(CPU=1.0, GPU=0.5)
    assert loaded[0]["device"] == "gpu"
