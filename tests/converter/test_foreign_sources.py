"""Files of other kinds, and missing packages, are one line that names the road."""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path
from typing import Any

import pytest

from phonebit.converter.convert import convert
from phonebit.errors import ConversionError


@pytest.mark.parametrize(
    ("name", "road"),
    [
        ("model.tflite", "give the Keras model that it was made of"),
        ("frozen.pb", "save the Keras model as .keras"),
        ("model.mlmodel", "convert the network that it was made of"),
        ("model.ort", "give the .onnx file"),
        ("notes.txt", "ONNX: .onnx"),
    ],
)
def test_a_foreign_file_names_the_road(name: str, road: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"content")
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path / name, tmp_path / "network.pbit")
    assert road in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_saved_model_names_the_road(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ConversionError, match="tf2onnx"):
        convert(tmp_path / "saved", tmp_path / "network.pbit")


class Missing(importlib.abc.MetaPathFinder):
    """As if a package were not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.partition(".")[0] == self._name:
            raise ModuleNotFoundError(name)


def test_onnx_without_its_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    for module in [m for m in sys.modules if m.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing("onnx"), *sys.meta_path])
    with pytest.raises(ConversionError, match=r"pip install 'phonebit\[onnx\]'"):
        convert(tmp_path / "model.onnx")
