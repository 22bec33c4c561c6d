"""Keras layers that no fixture has, by their configuration in place of a fixture's layer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest

from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.ir import Node
from phonebit.converter.ops.epilogue.functions import Gelu
from phonebit.converter.ops.resize_bilinear import ResizeBilinear
from phonebit.errors import UnsupportedLayerError

FIXTURE = Path(__file__).parent / "fixtures" / "activation_layers.h5"


def imported(folder: Path, name: str, class_name: str, **settings: Any) -> Node:
    """The node of the fixture's layer ``name`` after it became another one."""
    path = folder / FIXTURE.name
    shutil.copy(FIXTURE, path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        entry = next(each for each in config["config"]["layers"] if each["name"] == name)
        entry["class_name"] = class_name
        entry["config"] = {"name": name, "trainable": True, "dtype": "float32", **settings}
        file.attrs["model_config"] = json.dumps(config)
    return next(node for node in import_larq(path).nodes if node.name == name)


def test_up_sampling_is_bilinear_between_the_centres_of_pixels(tmp_path: Path) -> None:
    settings = {"size": [2, 3], "data_format": "channels_last", "interpolation": "bilinear"}
    op = imported(tmp_path, "re_lu", "UpSampling2D", **settings).op
    assert isinstance(op, ResizeBilinear)
    height, width = op.size
    assert (height % 2, width % 3, op.align_corners) == (0, 0, False)


@pytest.mark.parametrize("interpolation", ["bicubic", None])
def test_other_up_sampling_is_refused(tmp_path: Path, interpolation: str | None) -> None:
    with pytest.raises(UnsupportedLayerError, match="interpolation"):
        imported(tmp_path, "re_lu", "UpSampling2D", size=[2, 2], interpolation=interpolation)


def test_the_activation_gelu_is_the_exact_one(tmp_path: Path) -> None:
    node = imported(tmp_path, "activation_2", "Activation", activation="gelu")
    assert node.op.epilogue.steps == [Gelu()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("class_name", "settings", "message"),
    [
        ("LayerNormalization", {"rms_scaling": True}, "rms_scaling"),
        ("Permute", {"dims": [0, 1, 2]}, "dims"),
        ("Cropping2D", {"cropping": 99}, "to nothing"),
        ("Embedding", {"input_dim": 4, "output_dim": 3, "mask_zero": True}, "mask_zero"),
        ("RandomCrop", {}, "RandomCrop are not supported.*tf2onnx"),
        ("LSTM", {"units": 3}, "expected .steps, features."),
    ],
)
def test_what_a_layer_cannot_express_is_named(
    tmp_path: Path, class_name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedLayerError, match=message):
        imported(tmp_path, "re_lu", class_name, **settings)
