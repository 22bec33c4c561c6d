"""TensorFlow Lite files that Larq Compute Engine's converter wrote (make_tflite_fixtures.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit.converter.convert import convert
from phonebit.converter.importers.sources import ImportOptions
from phonebit.converter.importers.tflite.importer import import_tflite, open_tflite
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Conv2D
from phonebit.errors import ConversionError, UnsupportedLayerError
from phonebit.network import Network
from phonebit.verification.source import open_source

LCE = Path(__file__).parent / "fixtures" / "lce"
BINARY = {"results_of_bits": 5, "real_results": 5, "integers": 2, "ordinary_layers": 0}


@pytest.mark.parametrize("name", BINARY)
def test_networks_compute_what_larqs_interpreter_computes(name: str, tmp_path: Path) -> None:
    """To the last bit, before the passes and in the engine.

    Integers are equal, but the interpreter rounds the numbers that they stand for differently.
    """
    tolerance = 1e-5 if name == "integers" else 0
    expected = dict(np.load(LCE / f"{name}.npz"))
    x = expected.pop("x")
    graph = import_tflite(LCE / f"{name}.tflite")
    values = run(graph, {graph.inputs[0]: x}, graph.outputs)
    convert(LCE / f"{name}.tflite", tmp_path / "net.pbit")
    results = Network.load(tmp_path / "net.pbit", device="cpu").forward({graph.inputs[0]: x})
    for output, array in zip(graph.outputs, expected.values(), strict=True):
        for made in (values[output], results[output]):
            np.testing.assert_allclose(made.reshape(array.shape), array, 0, tolerance, True, output)
    assert len(graph.expected_binary) == BINARY[name]


def test_factors_and_weights_are_what_the_file_holds() -> None:
    graph = import_tflite(LCE / "results_of_bits.tflite")
    kernels = [node.op for node in graph.nodes if isinstance(node.op, Conv2D)]
    shapes = [(op.weights.shape, op.groups, op.window.dilation) for op in kernels]
    assert shapes == [
        ((64, 3, 3, 5), 1, (1, 1)),
        ((37, 2, 3, 64), 1, (1, 1)),
        ((64, 2, 2, 37), 1, (2, 2)),
        ((6, 3, 3, 32), 2, (1, 1)),
        ((7, 1, 1, 64), 1, (1, 1)),
    ]
    assert all(np.all(np.abs(op.weights) == 1) for op in kernels)


def test_other_shapes_than_the_files_own_are_refused() -> None:
    path = LCE / "real_results.tflite"
    assert isinstance(import_tflite(path, input_shape=(1, 8, 8, 4)), Graph)
    with pytest.raises(ConversionError, match=r"input_shape does not fit"):
        import_tflite(path, input_shape=(1, 9, 8, 4))


def test_operators_in_int8_are_named() -> None:
    with pytest.raises(UnsupportedLayerError) as caught:
        import_tflite(LCE / "all_in_int8.tflite")
    assert [problem.split(": ")[1] for problem in caught.value.problems] == [
        f"{op} computes in int8 with a rounding of its own; convert the network without "
        "post-training quantization"
        for op in ("CONV_2D", "FULLY_CONNECTED")
    ]


def test_verify_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "phonebit.converter.importers.tflite.execution.find_spec", lambda name: None
    )
    source = open_source(LCE / "real_results.tflite", True, ImportOptions())
    assert "pip install larq-compute-engine" in source.reason


@pytest.mark.framework
@pytest.mark.parametrize("name", ["real_results", "integers"])
def test_every_value_is_the_interpreters(name: str, tmp_path: Path) -> None:
    """Converted here and now; values that the file has no tensor for are left out."""
    pytest.importorskip("larq_compute_engine", reason="Larq Compute Engine is not installed")
    import make_tflite_fixtures

    content, x = make_tflite_fixtures.made(name)
    path = tmp_path / "net.tflite"
    path.write_bytes(content)
    source = open_tflite(path)
    inputs = {source.graph.inputs[0]: x}
    expected = source.runner().activations(inputs)
    values = run(source.graph, inputs, list(source.graph.types))
    assert set(source.graph.outputs) <= set(expected)
    for value, array in expected.items():
        assert values[value].dtype == array.dtype, value
        np.testing.assert_allclose(
            values[value], array, 0, 1e-5 if name == "integers" else 0, True, value
        )
