"""Wrong arguments raise PhoneBit's exceptions, say what was got and expected, and do no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import _runtime
from phonebit.errors import DeviceError, InputError, ModelFormatError, PhoneBitError
from support.golden import golden_graph, integer_inputs
from support.stress_graphs import ISAS, load, long_lives

GRAPH = golden_graph("tiny_classifier")


@pytest.fixture
def network(tmp_path: Path) -> _runtime.Network:
    return load(GRAPH, tmp_path)


def image() -> np.ndarray[Any, Any]:
    return np.zeros((2, 28, 28, 1), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ([image().astype(np.float32)], ["image", "float32", "uint8"]),
        ([image()[0]], ["image", "(28, 28, 1)", "(N, 28, 28, 1)"]),
        ([np.zeros((1, 28, 27, 1), np.uint8)], ["(1, 28, 27, 1)", "(N, 28, 28, 1)"]),
        ([image()[:0]], ["batch of 0", "at least 1"]),
        ([image()[:, ::-1]], ["contiguous"]),
        ([], ["0 arrays", "1"]),
        ([image(), image()], ["2 arrays", "1"]),
        ([image().tolist()], ["list", "NumPy"]),
        ([None], ["NoneType", "NumPy"]),
    ],
)
def test_wrong_arrays_are_refused(
    network: _runtime.Network, arrays: list[Any], words: list[str]
) -> None:
    for call in (network.forward, network.activations, network.profile):
        with pytest.raises(InputError) as caught:
            call(arrays)
        for word in words:
            assert word in str(caught.value)
    assert len(network.forward([image()])) == 1  # still usable


def test_values_that_are_not_finite_are_named_with_their_position(tmp_path: Path) -> None:
    graph = long_lives()
    network = load(graph, tmp_path)
    inputs = integer_inputs(graph, batch=3)
    for value, name in ((np.nan, "NaN"), (-np.inf, "infinity")):
        inputs["x"][2, 4, 7, 3] = value
        place = f"input 'x': {name} at image 2, row 4, column 7, channel 3"
        with pytest.raises(InputError, match=place):
            network.forward([inputs[info.name] for info in network.inputs])


def test_batches_must_agree(tmp_path: Path) -> None:
    graph = long_lives()
    network = load(graph, tmp_path)
    inputs = integer_inputs(graph, batch=3)
    inputs["gate"] = inputs["gate"][:2]
    with pytest.raises(InputError, match=r"batch of 2.*has 3"):
        network.forward([inputs[info.name] for info in network.inputs])


def test_operands_of_one_layer_are_checked(network: _runtime.Network) -> None:
    index = next(i for i, layer in enumerate(network.layers) if layer.name == "conv2")
    with pytest.raises(InputError, match=r"-1 or \+1"):
        network.run_op(index, [np.zeros((1, 14, 14, 64), np.int8)])
    with pytest.raises(InputError, match="int8"):
        network.run_op(index, [np.ones((1, 14, 14, 64), np.float32)])
    for wrong in (-1, len(network.layers)):
        with pytest.raises(InputError, match="does not exist"):
            network.run_op(wrong, [])


def test_repeats_must_be_positive(network: _runtime.Network) -> None:
    with pytest.raises(InputError, match="repeats"):
        network.profile([image()], 0)


def test_paths_that_hold_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        _runtime.Network(str(tmp_path / "missing.pbit"))
    with pytest.raises(InputError, match="directory"):
        _runtime.Network(str(tmp_path))
    with pytest.raises(InputError, match="zero byte"):
        _runtime.Network("a\0b")
    (tmp_path / "empty").touch()
    with pytest.raises(ModelFormatError, match="empty"):
        _runtime.Network(str(tmp_path / "empty"))
    (tmp_path / "text").write_text("not a model, " * 10)
    with pytest.raises(ModelFormatError, match="phonebit convert"):
        _runtime.Network(str(tmp_path / "text"))


@pytest.mark.parametrize("threads", [-1, 100000])
def test_thread_counts_out_of_range_are_refused(tmp_path: Path, threads: int) -> None:
    with pytest.raises(InputError, match=f"threads: got {threads}"):
        load(GRAPH, tmp_path, threads)


def test_unknown_instruction_sets_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeviceError, match=r"'mmx'.*choose one of.*scalar"):
        load(GRAPH, tmp_path, 1, "mmx")
    monkeypatch.setenv("PHONEBIT_CPU", "altivec")
    with pytest.raises(DeviceError, match=r"PHONEBIT_CPU.*'altivec'.*scalar"):
        load(GRAPH, tmp_path, 1, "")


@pytest.mark.parametrize("isa", ISAS)
def test_environment_variable_forces_the_instruction_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isa: str
) -> None:
    monkeypatch.setenv("PHONEBIT_CPU", isa)
    network = load(GRAPH, tmp_path, 1, "")
    assert network.isa == isa
    monkeypatch.setenv("PHONEBIT_CPU", "")
    assert load(GRAPH, tmp_path, 1, "").isa == ISAS[0]
    monkeypatch.setenv("PHONEBIT_CPU", "altivec")
    assert load(GRAPH, tmp_path, 1, isa).isa == isa  # an explicit name wins


def test_all_exceptions_share_one_base() -> None:
    for kind in (InputError, DeviceError, ModelFormatError):
        assert issubclass(kind, PhoneBitError)
