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


@pytest.mark.parametrize("name", ["onnx", "tflite"])
def test_a_missing_package_names_its_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"model.{name}").write_bytes(b"")
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing(name), *sys.meta_path])
    with pytest.raises(ConversionError, match=rf"pip install 'phonebit\[{name}\]'"):
        convert(tmp_path / f"model.{name}")
