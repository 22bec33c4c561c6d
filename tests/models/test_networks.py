"""The networks that come with PhoneBit: their facts, and that seeded weights keep them alive."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phonebit import ConversionError, Network
from phonebit.converter.convert import Conversion
from phonebit.converter.cost import parameter_count
from phonebit.converter.interpreter import run
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D, Elementwise, Input, MaxPool2D, Sign
from phonebit.converter.ops.epilogue import Clamp, PRelu
from phonebit.models.networks import NETWORKS, build, converted
from phonebit.models.networks.moments import Moments, moments_of
from phonebit.network.random_inputs import random_inputs

FACTS = {
    "alexnet": ("u8", (227, 227, 3), (1, 1, 1000), 62_407_048, 1_135_256_096, 0.9035),
    "yolov2_tiny": ("u8", (416, 416, 3), (13, 13, 125), 15_867_885, 3_485_520_896, 0.9723),
    "vgg16": ("u8", (224, 224, 3), (1, 1, 1000), 138_394_792, 15_470_264_320, 0.9941),
    "birealnet18": ("f32", (224, 224, 3), (1, 1, 1000), 11_699_112, 1_814_073_344, 0.9240),
    "quicknet": ("f32", (224, 224, 3), (1, 1, 1000), 13_243_752, 1_879_339_776, 0.9842),
    "quicknet_large": ("f32", (224, 224, 3), (1, 1, 1000), 23_359_336, 3_729_027_840, 0.9920),
    "googlenet": ("f32", (224, 224, 3), (1, 1, 1000), 7_076_264, 1_582_671_872, 0.9248),
    "vgg_small": ("f32", (32, 32, 3), (1, 1, 10), 4_663_690, 607_600_640, 0.9940),
}
"""Input, output, parameters, multiply-accumulates, share of these that is binary."""

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
LARGE = ("alexnet", "vgg16", "quicknet_large")
EVERY = [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in NETWORKS]
SMALL = [name for name in NETWORKS if name not in LARGE]

LayersInputs = Callable[[str], dict[str, NDArray[Any]]]

binary_network = cache(lambda name: converted(name))
"""Each is built once a session."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


def loaded(conversion: Conversion, path: Path) -> Network:
    path.write_bytes(conversion.content)
    return Network.load(path, device="cpu")


@pytest.fixture(scope="session")
def layers_inputs(folder: Path) -> LayersInputs:
    """What each binary layer of a network reads where that has a random input, computed once."""

    @cache
    def read(name: str) -> dict[str, NDArray[Any]]:
        network = loaded(binary_network(name), folder / "binary.pbit")
        values = network.activations(random_inputs(network.inputs, 1))
        return {layer.name: values[layer.inputs[0]] for layer in network.layers if layer.binary}

    return read


def test_every_network_has_its_facts_here() -> None:
    assert list(FACTS) == list(NETWORKS)


@pytest.mark.parametrize("name", NETWORKS)
def test_facts_without_drawing_a_weight(name: str) -> None:
    facts = NETWORKS[name].facts()
    dtype, inputs, outputs, parameters, macs, share = FACTS[name]
    assert (facts.input_dtype, facts.input_shape, facts.output_shape) == (dtype, inputs, outputs)
    assert (facts.parameters, facts.macs) == (parameters, macs)
    assert facts.binary_mac_share == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize(("name", "megabytes"), [("alexnet", 249.5), ("vgg16", 553.4)])
def test_the_paper_s_networks_have_its_float_sizes(name: str, megabytes: float) -> None:
    assert NETWORKS[name].facts().parameters * 4 / 1e6 == pytest.approx(megabytes, abs=0.2)


@pytest.mark.parametrize(
    ("name", "published"),
    [("quicknet", "QuickNet"), ("quicknet_large", "QuickNetLarge"), ("birealnet18", "BiRealNet")],
)
def test_costs_are_those_of_the_published_definitions(name: str, published: str) -> None:
    """As larq-zoo's own models convert, see benchmarks/conversion."""
    document = json.loads((RESULTS / "conversion.json").read_text())
    row = next(row for row in document["networks"] if row["network"] == published)
    facts = NETWORKS[name].facts()
    assert 4 * facts.parameters == row["float_bytes"]
    assert facts.binary_mac_share == pytest.approx(row["binary_share"], abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_built_is_what_the_facts_say(name: str) -> None:
    facts, report = NETWORKS[name].facts(), binary_network(name).report
    assert report.missed == []
    assert (report.macs, report.binary_macs) == (facts.macs, facts.binary_macs)
    levels = 2 * facts.input_shape[2] if facts.input_dtype == "u8" else 0
    assert report.size_before_bytes == 4 * (facts.parameters + levels)


@pytest.mark.parametrize("name", EVERY)
def test_no_binary_layer_sees_constant_maps(name: str, layers_inputs: LayersInputs) -> None:
    shares = {layer: float(np.mean(read > 0)) for layer, read in layers_inputs(name).items()}
    assert shares
    assert {layer: share for layer, share in shares.items() if not 0.05 < share < 0.95} == {}


@pytest.mark.parametrize("name", EVERY)
def test_large_maps_have_few_constant_channels(name: str, layers_inputs: LayersInputs) -> None:
    for layer, bits in layers_inputs(name).items():
        if bits.shape[1] >= 14:
            constant = np.all(bits == bits[:, :1, :1], axis=(0, 1, 2))
            assert np.mean(constant) < 0.1, layer


@pytest.mark.parametrize("name", EVERY)
def test_nothing_that_could_be_fused_is_left_as_a_layer_of_its_own(name: str) -> None:
    """What may stay: unpacking for a full-precision layer and all but one sign of a value."""
    engine = binary_network(name).engine
    assert [
        node.name
        for node in engine.nodes
        if isinstance(node.op, Elementwise)
        and not node.name.endswith("/float")
        and len(engine.consumers(node.inputs[0])) == 1
    ] == []


@pytest.mark.parametrize("name", EVERY)
def test_the_float_twin_has_the_same_layers_no_signs_and_lives(name: str, folder: Path) -> None:
    outline, conversion = NETWORKS[name]("outline"), converted(name, "float")
    twin = conversion.source
    assert [node.name for node in twin.nodes] == [node.name for node in outline.nodes]
    assert not any(isinstance(node.op, Sign) for node in twin.nodes)
    assert twin.expected_binary == []
    own = sum(parameter_count(node.op) for node in twin.nodes)
    slopes = sum(_slopes(node.op) for node in twin.nodes)
    assert own - slopes == NETWORKS[name].facts().parameters
    network = loaded(conversion, folder / "twin.pbit")
    values = network.activations(random_inputs(network.inputs, 1))
    for layer in network.layers:
        value = values[layer.outputs[0]]
        assert np.all(np.isfinite(value)), layer.name
        assert np.std(value) > 1e-3, layer.name
        # Twins run in halves, too.
        assert np.abs(value).max() < np.finfo(np.float16).max, layer.name


def _slopes(op: object) -> int:
    """Parameters of a leaky ReLU, where the binary network has a sign."""
    steps = op.epilogue.steps if isinstance(op, Elementwise) else []
    return sum(step.slope.size for step in steps if isinstance(step, PRelu))


def test_the_engine_computes_what_the_definition_says(folder: Path) -> None:
    conversion = binary_network("vgg_small")
    network = loaded(conversion, folder / "vgg_small.pbit")
    image = random_inputs(network.inputs, 1)
    definition = NETWORKS["vgg_small"]()
    expected = run(definition, image)[definition.outputs[0]].reshape(-1)
    got = network(image[network.inputs[0].name]).reshape(-1)
    # The first layer sums floats in another order; no sign is that close to zero on this image.
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_equal_seeds_give_equal_files() -> None:
    assert converted("vgg_small").content == binary_network("vgg_small").content


def test_build_writes_the_file_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "net.pbit"
    report = build("vgg_small", path)
    assert path.read_bytes() == binary_network("vgg_small").content
    assert report.output_path == str(path)
    network = Network.load(path, device="cpu")
    assert network.preprocessing["picture"].range == (-1.0, 1.0)


def test_half_weights_make_a_smaller_file_of_the_same_network(tmp_path: Path) -> None:
    report = build("vgg_small", tmp_path / "half.pbit", float_weights="f16")
    whole = binary_network("vgg_small").report
    real = NETWORKS["vgg_small"]().nodes[1].op
    assert isinstance(real, Conv2D)
    assert whole.size_after_bytes - report.size_after_bytes >= 2 * real.weights.size
    assert report.binary_macs == whole.binary_macs


@pytest.mark.parametrize("form", ["outline", "int8"])
def test_a_form_that_cannot_be_built_is_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"no such form.*'binary' or 'float'"):
        build("vgg_small", tmp_path / "net.pbit", form=form)  # type: ignore[arg-type]


def test_an_unknown_network_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"alexnet, yolov2_tiny, .* got 'lenet'"):
        build("lenet", tmp_path / "net.pbit")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"net\.pbit: cannot be written"):
        build("vgg_small", tmp_path / "absent" / "net.pbit")


RELU = Elementwise()
RELU.epilogue.steps.append(Clamp(0.0, float("inf")))
LEAKY = Elementwise()
LEAKY.epilogue.steps.append(PRelu(np.full(1, 0.1, np.float32)))


@pytest.mark.parametrize("mean", [-1.5, 0.0, 0.7])
def test_moments_are_those_of_samples(mean: float) -> None:
    normal = np.random.default_rng(1).normal(mean, 2.0, (200_000, 4))
    given = Moments(np.full(1, mean), np.full(1, 4.0))
    samples = {
        "relu": (RELU, np.maximum(normal[:, 0], 0)),
        "leaky": (LEAKY, np.where(normal[:, 0] > 0, normal[:, 0], 0.1 * normal[:, 0])),
        "pool": (MaxPool2D(Window((2, 2))), normal.max(axis=1)),
        "sign": (Sign(), np.where(normal[:, 0] >= 0, 1.0, -1.0)),
    }
    for name, (op, seen) in samples.items():
        moments = moments_of(op, [given], 1)
        assert moments.mean[0] == pytest.approx(seen.mean(), abs=0.02), name
        assert moments.variance[0] == pytest.approx(seen.var(), rel=0.03), name


def test_moments_of_a_grouped_convolution_are_those_of_samples() -> None:
    rng = np.random.default_rng(2)
    means, deviations = rng.normal(0, 1, 4), rng.uniform(0.5, 2, 4)
    weights = rng.normal(0, 1, (6, 1, 1, 2)).astype(np.float32)
    x = rng.normal(means, deviations, (100_000, 4))
    y = np.concatenate([x[:, :2] @ weights[:3, 0, 0].T, x[:, 2:] @ weights[3:, 0, 0].T], axis=1)
    op = Conv2D(weights, Window((1, 1)), groups=2)
    moments = moments_of(op, [Moments(means, np.square(deviations))], 6)
    np.testing.assert_allclose(moments.mean, y.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(moments.variance, y.var(axis=0), rtol=0.03)


def test_moments_of_pooled_bits_are_those_of_samples() -> None:
    bits = np.where(np.random.default_rng(3).random((100_000, 4)) < 0.2, 1.0, -1.0)
    given = Moments(np.full(1, -0.6), np.full(1, 0.64), bits=True)
    moments = moments_of(MaxPool2D(Window((2, 2))), [given], 1)
    assert moments.bits
    assert moments.mean[0] == pytest.approx(bits.max(axis=1).mean(), abs=0.01)


def test_an_operator_without_moments_is_an_error() -> None:
    with pytest.raises(TypeError, match="no moments of"):
        moments_of(Elementwise(), [Moments(np.zeros(1), np.ones(1))], 1)


def test_the_input_is_uniform_noise() -> None:
    moments = moments_of(Input(), [], 3)
    assert moments.variance == pytest.approx(np.full(3, 1 / 3))
