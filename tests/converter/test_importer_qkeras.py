"""QKeras's layers and quantizers, from files, as QKeras itself computed them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import phonebit
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.interpreter import run
from phonebit.converter.ops import Conv2D, Quantize, Sign
from phonebit.errors import UnsupportedLayerError

FIXTURES = Path(__file__).parent / "fixtures" / "qkeras"


@pytest.mark.parametrize("suffix", ["h5", "keras"])
@pytest.mark.parametrize("name", ["qkeras_activations", "qkeras_layers"])
def test_values_are_those_of_qkeras(name: str, suffix: str) -> None:
    graph = import_larq(FIXTURES / f"{name}.{suffix}")
    with np.load(FIXTURES / f"{name}.npz") as arrays:
        values = run(graph, {"image": arrays["image"]})
        for i, output in enumerate(graph.outputs):
            expected = arrays[f"output_{i}"]
            # QKeras adds and subtracts the value that it rounds.
            ours = values[output].reshape(expected.shape)
            np.testing.assert_allclose(ours, expected, atol=2e-6, err_msg=output)


def test_few_levels_are_thresholds_and_many_are_arithmetic() -> None:
    graph = import_larq(FIXTURES / "qkeras_activations.h5")
    assert isinstance(graph.producer("act0").op, Sign)
    levels = {i: len(graph.producer(f"act{i}").op.values) for i in (3, 5, 6, 10)}  # type: ignore[attr-defined]
    assert levels == {3: 3, 5: 15, 6: 8, 10: 4}
    assert not isinstance(graph.producer("act8").op, Quantize)


def test_signs_and_binary_kernels_become_popcounts(tmp_path: Path) -> None:
    graph = import_larq(FIXTURES / "qkeras_layers.h5")
    kernels = {node.name: node.op.weights for node in graph.nodes if isinstance(node.op, Conv2D)}
    assert set(np.unique(kernels["sign"])) == {-1.0, 1.0}
    assert all(len(np.unique(np.abs(channel))) == 1 for channel in kernels["sign_auto"])
    report = phonebit.convert(FIXTURES / "qkeras_layers.h5", tmp_path / "net.pbit")
    binary = {layer.name for layer in report.layers if layer.binary}
    assert {"sign", "sign_auto", "sign_open"} <= binary


def edited(folder: Path, name: str, **settings: Any) -> Path:
    """The activations' fixture with another configuration of one layer."""
    path = folder / "edited.h5"
    shutil.copy(FIXTURES / "qkeras_activations.h5", path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        entry = next(each for each in config["config"]["layers"] if each["name"] == name)
        entry["config"].update(settings)
        file.attrs["model_config"] = json.dumps(config)
    return path


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("quantized_po2(4)", "quantized_po2 is not supported; use one of .*QONNX"),
        ({"class_name": "stochastic_binary", "config": {}}, "stochastic_binary is not supported"),
        ("hard_sigmoid", "hard_sigmoid' of QKeras"),
        ("quantized_bits(__import__('os'))", "no plain arguments"),
        (
            {"class_name": "quantized_relu", "config": {"relu_upper_bound": 0.5}},
            "is_quantized_clip",
        ),
        ("quantized_bits(99)", "bits=99"),
        ("quantized_bits(1e999)", "bits=inf"),
        ("quantized_bits(2.5)", r"bits=2\.5"),
        ("quantized_bits(" + "9" * 5000 + ")", "no plain arguments"),
        ({"class_name": "quantized_relu", "config": {"negative_slope": []}}, "negative_slope"),
        ({"class_name": "ternary", "config": {"threshold": "x"}}, "threshold='x'"),
        ({"class_name": "ternary", "config": {"alpha": "auto"}}, "each batch"),
        ({"class_name": "quantized_relu", "config": {"qnoise_factor": 0.5}}, "qnoise_factor"),
    ],
)
def test_what_cannot_be_expressed_is_named(tmp_path: Path, activation: Any, message: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=message):
        import_larq(edited(tmp_path, "act4", activation=activation))
