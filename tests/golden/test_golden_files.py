"""Files of released format versions load for ever and keep their results, on every ISA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.converter.interpreter import run
from phonebit.converter.reader import read_graph

FILES = sorted((Path(__file__).parent / "v1").glob("*.pbit"))
ISAS = [name for name, _, supported in _runtime.isas() if supported]


def stored(file: Path, kind: str) -> dict[str, np.ndarray]:
    with np.load(file.with_suffix(".npz")) as arrays:
        return {
            name.removeprefix(f"{kind}:"): arrays[name]
            for name in arrays.files
            if name.startswith(f"{kind}:")
        }


def assert_equal_outputs(outputs: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert outputs.keys() == expected.keys()
    for name, array in expected.items():
        if name.endswith("_tolerance"):  # sigmoid, tanh, softmax: exp differs in its last bits
            np.testing.assert_allclose(outputs[name], array, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(outputs[name], array)


def test_golden_files_are_there() -> None:
    assert len(FILES) == 37


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_engine_computes_what_the_golden_file_says(file: Path, isa: str) -> None:
    network = _runtime.Network(str(file), threads=1, device=f"cpu:{isa}")
    assert network.isa == isa
    inputs = stored(file, "in")
    results = network.forward([inputs[tensor.name] for tensor in network.inputs])
    outputs = {tensor.name: array for tensor, array in zip(network.outputs, results, strict=True)}
    assert_equal_outputs(outputs, stored(file, "out"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_reference_interpreter_computes_what_the_golden_file_says(file: Path) -> None:
    assert_equal_outputs(run(read_graph(file), stored(file, "in")), stored(file, "out"))
