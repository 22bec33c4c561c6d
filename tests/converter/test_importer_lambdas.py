"""Lambda layers: live ones are recorded, those in files only if the user trusts the file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_importer_larq import FIXTURES
from test_importer_live import lq, tf

from phonebit.converter.importers.keras import framework
from phonebit.converter.importers.keras.activations import keras_activations, load_keras
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError, UnsupportedLayerError

__all__ = ["lq", "tf"]

pytestmark = pytest.mark.framework

SHAPE = (4, 6, 8)


def model_of(tf: Any, function: Any, inputs: int = 1, **options: Any) -> Any:
    """A model of one Lambda layer called "code"."""
    tensors = [tf.keras.Input(SHAPE, name=f"x{i}") for i in range(inputs)]
    layer = tf.keras.layers.Lambda(function, name="code", **options)
    return tf.keras.Model(tensors, layer(tensors if inputs > 1 else tensors[0]))


def assert_agrees(model: Any, graph: Graph) -> None:
    rng = np.random.default_rng(17)
    arrays = {n: rng.normal(0, 1, (2, *SHAPE)).astype(np.float32) for n in graph.inputs}
    theirs = keras_activations(model, arrays)
    ours = run(graph, arrays, list(graph.types))
    assert set(graph.outputs) <= set(theirs)
    for name in set(ours) & set(theirs):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)


FUNCTIONS: dict[str, tuple[Any, int]] = {
    "identity": (lambda x: x, 1),
    "arithmetic": (lambda tf, x: 1 - 2 * x / 3 + tf.abs(-x), 1),
    "channels": (lambda tf, x: tf.concat([x[..., 4:], x[..., 1::2]], -1), 1),
    "rows": (lambda x: x[:, ::2, ::3], 1),
    "means": (lambda tf, x: x * tf.reduce_mean(x, [1, 2], keepdims=True), 1),
    "padding": (lambda tf, x: x[0] + tf.pad(x[1][..., :3], [[0, 0]] * 3 + [[5, 0]]), 2),
    "several": (lambda tf, x: tf.split(x, 4, axis=-1), 1),
    "unlike": (lambda x: [x[..., :1], x, x[..., 1:] * 2], 1),
    "signs": (lambda tf, x: tf.sign(x) + tf.clip_by_value(x, -0.5, 0.5), 1),
    "layers": (lambda tf, x: tf.keras.layers.ReLU()(x), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_live_functions_compute_what_keras_computes(tf: Any, name: str) -> None:
    function, inputs = FUNCTIONS[name]
    needs_tf = function.__code__.co_argcount == 2
    model = model_of(tf, (lambda x: function(tf, x)) if needs_tf else function, inputs)
    assert_agrees(model, import_larq(model))


def test_arguments_and_training_reach_the_function(tf: Any) -> None:
    def function(x: Any, factor: float, training: Any = None) -> Any:
        return x * (99.0 if training else factor)

    model = model_of(tf, function, arguments={"factor": 3.0})
    assert_agrees(model, import_larq(model))


def test_the_last_step_gets_the_layers_name(tf: Any) -> None:
    graph = import_larq(model_of(tf, lambda x: (x + 1) * x + 2))
    values = [node.value for node in graph.nodes[1:]]
    assert values == ["code/tf.__operators__.add", "code/tf.math.multiply", "code"]
    assert graph.outputs == ["code"]


def test_a_layer_that_is_called_twice_is_recorded_twice(tf: Any) -> None:
    image = tf.keras.Input(SHAPE, name="x0")
    layer = tf.keras.layers.Lambda(lambda x: x[..., ::-1] * 2, name="code")
    model = tf.keras.Model(image, layer(layer(image)))
    graph = import_larq(model)
    assert graph.outputs == ["code:1"]
    assert_agrees(model, graph)


def test_functions_that_cannot_be_recorded_are_listed_together(tf: Any) -> None:
    image = tf.keras.Input(SHAPE, name="x0")
    lambdas = {
        "foreign": lambda x: tf.numpy_function(np.abs, [x], tf.float32),
        "exotic": lambda x: tf.math.lgamma(x),
        "batch": lambda x: x[0:1],
    }
    outputs = []
    for name, function in lambdas.items():
        layer = tf.keras.layers.Lambda(function, name=name, output_shape=SHAPE)
        outputs.append(layer(image))
    with pytest.raises(UnsupportedLayerError) as caught:
        import_larq(tf.keras.Model(image, outputs))
    problems = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 3
    assert "'exotic/tf.math.lgamma': the function tf.math.lgamma is not supported" in problems
    assert "'foreign'" in problems and "symbolic tensors" in problems
    assert "slices or indexes the batch" in problems


def test_functions_with_variables_are_refused(tf: Any) -> None:
    factor = tf.Variable(3.0)
    with pytest.raises(ConversionError, match="Variable"):
        import_larq(model_of(tf, lambda x: x * factor))


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_code_in_files_runs_only_if_the_file_is_trusted(
    tf: Any, lq: Any, tmp_path: Path, suffix: str
) -> None:
    path, mark = tmp_path / f"model.{suffix}", tmp_path / "the code ran"

    def function(x: Any, mark: str = str(mark)) -> Any:
        __import__("pathlib").Path(mark).touch()
        return x * 2

    model = model_of(tf, function)
    model.save(path)
    mark.unlink(missing_ok=True)
    for refuse in (import_larq, load_keras):
        with pytest.raises(ConversionError, match=r"Python code"):
            refuse(path)
    assert not mark.exists()
    graph = import_larq(path, trust_lambdas=True)
    assert mark.exists()
    assert_agrees(load_keras(path, trust_lambdas=True), graph)


def test_the_refusal_says_how_to_trust_a_file(tf: Any, tmp_path: Path) -> None:
    model_of(tf, lambda x: x * 2).save(tmp_path / "model.h5")
    with pytest.raises(UnsupportedLayerError, match=r"trust_lambdas=True \(--trust-lambdas\)"):
        import_larq(tmp_path / "model.h5")


def test_trusting_a_file_without_tensorflow_says_what_to_install(
    tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_of(tf, lambda x: x * 2).save(tmp_path / "model.h5")
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr(framework, "import_module", __import__)
    with pytest.raises(UnsupportedLayerError, match="pip install larq tf-keras"):
        import_larq(tmp_path / "model.h5", trust_lambdas=True)


def test_functions_in_closures_survive_the_file(tf: Any, lq: Any, tmp_path: Path) -> None:
    def op_layer(operation: Any, *arguments: Any, **options: Any) -> Any:
        return lambda x: operation(x, *arguments, **options)

    model = model_of(tf, op_layer(tf.split, 2, axis=-1))
    model.save(tmp_path / "model.h5")
    graph = import_larq(tmp_path / "model.h5", trust_lambdas=True)
    assert graph.outputs == ["code/output0", "code/output1"]
    assert_agrees(load_keras(tmp_path / "model.h5", trust_lambdas=True), graph)


def test_code_of_another_python_is_an_error(tf: Any, lq: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    model_of(tf, lambda x: x * 2).save(path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        config["config"]["layers"][-1]["config"]["function"][0] = "YWJjZGVm"
        file.attrs["model_config"] = json.dumps(config)
    with pytest.raises(UnsupportedLayerError, match="Python code cannot be read"):
        import_larq(path, trust_lambdas=True)


def test_files_without_lambdas_run_nothing_when_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("Keras was asked for")

    monkeypatch.setattr(framework, "installed_keras", fail)
    import_larq(FIXTURES / "slices.h5", trust_lambdas=True)
