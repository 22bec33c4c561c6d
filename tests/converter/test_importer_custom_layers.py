"""Layers of the user's own become what the user's functions say (no framework needed here)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_importer_larq import FIXTURES, as_nhwc, framework_values

from phonebit.converter.importers.keras.graph import Tensor
from phonebit.converter.importers.keras.importer import import_larq
from phonebit.converter.importers.keras.plugin import CustomLayer, load_plugin
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError, UnsupportedLayerError

CUSTOM = FIXTURES / "custom"
DOCUMENT = Path(__file__).parents[2] / "docs" / "converting.md"


def scale_and_shift(layer: CustomLayer) -> Tensor:
    """By positions of the weights: factor, then offset, which is not trainable."""
    (x,) = layer.inputs
    x = layer.multiply(x, layer.weight(0, x.shape))
    return layer.scale_bias(x, bias=layer.weight(1, (x.channels,)))


def swap_halves(layer: CustomLayer) -> Tensor:
    (x,) = layer.inputs
    return layer.select_channels(x, [3, 4, 5, 0, 1, 2])


LAYERS = {"ScaleAndShift": scale_and_shift, "Fixtures>SwapHalves": swap_halves}


def assert_computes_the_same(graph: Graph) -> None:
    inputs, (expected,) = framework_values("custom/custom_layers")
    values = run(graph, {key: as_nhwc(array) for key, array in inputs.items()})
    np.testing.assert_allclose(values[graph.outputs[0]], as_nhwc(expected), atol=1e-5)


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_custom_layers_compute_what_keras_computed(suffix: str) -> None:
    graph = import_larq(CUSTOM / f"custom_layers.{suffix}", custom_layers=LAYERS)
    assert_computes_the_same(graph)


def test_the_documented_plugin_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(# my_layers\.py\n.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "my_layers.py").write_text(code)
    layers = load_plugin(tmp_path / "my_layers.py")
    assert_computes_the_same(import_larq(CUSTOM / "custom_layers.h5", custom_layers=layers))


def test_the_result_has_the_layers_name_and_inner_steps_are_called_after_it() -> None:
    graph = import_larq(CUSTOM / "custom_layers.h5", custom_layers=LAYERS)
    assert [node.value for node in graph.nodes[1:4]] == ["own/multiply", "own", "swap"]
    assert all("own" in node.sources for node in graph.nodes[1:3])


def test_a_layer_shows_its_configuration_inputs_and_weights() -> None:
    seen: dict[str, Any] = {}

    def look(layer: CustomLayer) -> Tensor:
        seen[layer.name] = (layer.config["trainable"], layer.input_shapes, layer.weight_names)
        return layer.inputs[0]

    layers = {"ScaleAndShift": look, "SwapHalves": look}
    import_larq(CUSTOM / "custom_layers.h5", custom_layers=layers)
    weights = ["factor", "offset"]
    assert seen == {
        "own": (True, [(4, 4, 6)], weights),
        "inner/inner_own": (True, [(4, 4, 6)], weights),
        "swap": (True, [(4, 4, 6)], []),
    }
    import_larq(CUSTOM / "custom_layers.keras", custom_layers=layers)
    assert seen["own"][2] == ["0", "1"]


def every_layer(layer: CustomLayer) -> list[Tensor]:
    """Uses each method once; the second result is the formula that the test repeats."""
    (x,) = layer.inputs
    y = layer.conv2d(x, np.ones((3, 3, 3, 4)), padding="same", groups=2, bias=np.ones(4))
    y = layer.depthwise_conv2d(y, np.ones((2, 2, 4, 2)), strides=2)
    y = layer.dense(y, np.ones((8, 6)), np.ones(6))
    y = layer.batch_norm(y, mean=2.0, variance=np.ones(6), epsilon=0.0)
    y = layer.add(y, layer.tanh(layer.sigmoid(layer.function(layer.relu(y), "round"))))
    y = layer.concat([layer.sign(y), layer.sign(y, 1.0)])
    y = layer.max_pool(y, 2, padding="same")
    y = layer.softmax(layer.average_pool(layer.pad(y, (1, 0, 0, 1)), 2, 1))
    z = layer.quantize(layer.prelu(x, 0.5), [-0.25, 0.5], [-1, 0, 2])
    z = layer.multiply(layer.clamp(z, -1, 1), layer.multiply(z, 3.0))
    return [layer.reshape(y, [y.hwc[0] * y.hwc[1], y.channels]), z]


def test_every_method_appends_a_layer_that_runs() -> None:
    layers = {"SwapHalves": lambda layer: every_layer(layer)[1], "ScaleAndShift": scale_and_shift}
    graph = import_larq(CUSTOM / "custom_layers.h5", custom_layers=layers)
    inputs, _ = framework_values("custom/custom_layers")
    values = run(graph, inputs, ["own", "swap"])
    x = np.where(values["own"] >= 0, values["own"], values["own"] * np.float32(0.5))
    levels = np.select([x >= 0.5, x >= -0.25], [2, 0], -1)
    np.testing.assert_array_equal(values["swap"], np.clip(levels, -1, 1) * levels * 3)


def test_several_results_are_numbered() -> None:
    def outputs(layer: CustomLayer) -> list[Tensor]:
        return every_layer(layer)[::-1]

    layers = {"SwapHalves": outputs, "ScaleAndShift": scale_and_shift}
    graph = import_larq(CUSTOM / "custom_layers.h5", custom_layers=layers)
    assert graph.types["swap/output0"].shape == (4, 4, 6)
    assert graph.types["swap/output1"].shape == (1, 1, 12)
    assert graph.producer("inner/inner_conv").inputs == ["swap/output0"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda layer: layer.weight("scale", (6,)),
            r"no weight 'scale', but \['factor', 'offset'\]",
        ),
        (lambda layer: layer.weight("factor", (6,)), r"factor should have shape \(6,\)"),
        (lambda layer: 3, "returns 3, no tensor"),
        (lambda layer: layer.config["size"], "fails: KeyError: 'size'"),
        (lambda layer: layer.reshape(layer.inputs[0], [5]), "reshapes"),
        (lambda layer: layer.scale_bias(layer.inputs[0], [1, 2]), "2 numbers for 6 channels"),
        (lambda layer: layer.function(layer.inputs[0], "erf"), "'erf' is not supported; known: e"),
        (lambda layer: layer.function(layer.inputs[0], "round", decimals=1), "to 1 decimals"),
    ],
)
def test_functions_that_fail_are_named_with_the_reason(function: Any, message: str) -> None:
    layers = {"ScaleAndShift": function, "SwapHalves": swap_halves}
    with pytest.raises(ConversionError, match=message) as caught:
        import_larq(CUSTOM / "custom_layers.h5", custom_layers=layers)
    assert "'own'" in str(caught.value)


def test_weights_in_archives_have_no_names() -> None:
    layers = {"ScaleAndShift": lambda layer: layer.weight("factor", (4, 4, 6))}
    layers["SwapHalves"] = swap_halves
    with pytest.raises(ConversionError, match=r"position of 'factor' in get_weights"):
        import_larq(CUSTOM / "custom_layers.keras", custom_layers=layers)


def test_custom_layers_do_not_hide_other_problems() -> None:
    with pytest.raises(UnsupportedLayerError) as caught:
        import_larq(CUSTOM / "custom_layers.h5", custom_layers={"SwapHalves": swap_halves})
    (problem,) = caught.value.problems
    assert problem.startswith("layer 'own', layer 'inner/inner_own': layers of class Fixtures>")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1", "CUSTOM_LAYERS"),
        ("CUSTOM_LAYERS = {'A': 3}", "CUSTOM_LAYERS"),
        ("1 / 0", "ZeroDivisionError"),
        ("import no_such_module", "no_such_module"),
    ],
)
def test_plugins_without_layers_are_refused(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "plugin.py").write_text(code)
    with pytest.raises(ConversionError, match=message):
        load_plugin(tmp_path / "plugin.py")
    with pytest.raises(ConversionError, match="nothing"):
        load_plugin(tmp_path / "nothing.py")
