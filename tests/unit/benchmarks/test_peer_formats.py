"""Networks in other engines' formats compute what the converter's reference interpreter does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import phonebit
from benchmarks.peers.formats import export
from benchmarks.peers.harness.catalogue import SUBJECTS
from benchmarks.peers.harness.measure import reads_levels
from phonebit.converter import interpreter
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Conv2D
from phonebit.models.networks.builder import Form, NetworkBuilder


def small_network(form: Form) -> Graph:
    """Uneven pads, pools of signs, a dense layer: what the paper's networks have."""
    net = NetworkBuilder("small", form, "leaky_relu")
    x = net.conv("conv1", net.image(18, 18), 32, 3, stride=1, padding=1)
    x = net.activate("sign1", net.batch_norm("bn1", x, pool=9))
    x = net.max_pool("pool1", x, 3, 2, padding=1)
    x = net.conv("conv2", x, 64, 3, padding=1)
    x = net.activate("sign2", net.batch_norm("bn2", x))
    x = net.conv("conv3", x, 32, 3, padding=1)
    x = net.activate("sign3", net.batch_norm("bn3", x, pool=4))
    x = net.max_pool("pool3", x, 2, 1, (0, 0, 1, 1))
    x = net.dense("fc4", x, 64)
    x = net.activate("sign4", net.batch_norm("bn4", x))
    return net.done(net.dense("fc5", x, 10, real=True, bias=True))


def expected(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """An image and what the network makes of it, flat."""
    image = np.random.default_rng(3).uniform(-1, 1, (1, 18, 18, 3)).astype(np.float32)
    result = interpreter.run(graph, {graph.inputs[0]: image})
    return image, result[graph.outputs[0]].reshape(-1)


def assert_close(result: np.ndarray, reference: np.ndarray) -> None:
    """Sums of other orders only: no sign of this network is within rounding of zero."""
    np.testing.assert_allclose(
        result.reshape(-1), reference, rtol=0, atol=1e-5 * np.abs(reference).max()
    )


@pytest.mark.framework
@pytest.mark.parametrize("form", ["binary", "float"])
def test_the_keras_model_computes_what_the_graph_means(form: Form) -> None:
    pytest.importorskip("larq", reason="Larq is not installed")
    from benchmarks.peers.formats.keras_format import to_keras
    from benchmarks.peers.formats.source_graphs import fold_batch_norm

    graph = small_network(form)
    image, reference = expected(graph)
    model = to_keras(graph if form == "binary" else fold_batch_norm(graph))
    assert_close(model.predict(image, verbose=0), reference)


@pytest.mark.framework
def test_larq_compute_engine_runs_the_keras_model() -> None:
    lce = pytest.importorskip("larq_compute_engine", reason="LCE is not installed")
    from benchmarks.peers.formats.keras_format import to_keras

    graph = small_network("binary")
    image, reference = expected(graph)
    network = lce.testing.Interpreter(lce.convert_keras_model(to_keras(graph)))
    assert_close(network.predict(image), reference)


@pytest.mark.torch
def test_openvino_computes_what_the_binary_graph_means() -> None:
    openvino = pytest.importorskip("openvino", reason="OpenVINO is not installed")
    from benchmarks.peers.formats.openvino_binary import to_openvino

    graph = small_network("binary")
    conv = graph.producer("conv2").op  # with filters of one magnitude each, as XNOR-Net has them
    assert isinstance(conv, Conv2D)
    conv.weights = conv.weights * np.linspace(0.5, 2, len(conv.weights))[:, None, None, None]
    conv.weights = conv.weights.astype(np.float32)
    image, reference = expected(graph)
    model = to_openvino(graph)
    kinds = [op.get_type_name() for op in model.get_ops()]
    assert kinds.count("BinaryConvolution") == 3  # conv2, conv3, fc4
    settings = {"INFERENCE_PRECISION_HINT": "f32"}  # else bf16 where the processor has it
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    assert_close(compiled(image.transpose(0, 3, 1, 2).copy())[0], reference)


def test_networks_of_binary_first_layers_read_levels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = {entry.name for entry in SUBJECTS if reads_levels(entry)}
    assert names == {"alexnet", "yolov2_tiny", "vgg16", "binary_alexnet"}
    written: list[str] = []
    monkeypatch.setattr(
        phonebit, "convert", lambda *paths, **options: written.append(options["input_dtype"])
    )
    for entry in SUBJECTS:
        if entry.zoo is not None:
            export.write_pbit(export.Job(entry, tmp_path, "f32"))
            assert written.pop() == ("u8" if reads_levels(entry) else "f32")
