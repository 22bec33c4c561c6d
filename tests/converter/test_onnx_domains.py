"""Quantizers under the domains that exporters give them, and FINN's product of bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import phonebit
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.errors import UnsupportedLayerError
from support.onnx_models import assert_equal_to_onnx, floats, halves, kinds, model, single

DOMAINS = (
    "",
    "ai.onnx",
    "finn",
    "finn.custom_op.general",
    "qonnx",
    "qonnx.custom_op.general",
    "onnx.brevitas",
)
MAP = (1, 4, 5, 5)


@pytest.mark.parametrize("domain", DOMAINS)
def test_quantizers_are_known_in_every_domain(domain: str) -> None:
    quant = single("Quant", MAP, *map(np.asarray, floats(0.5, 0, 2)), domain=domain, signed=0)
    assert_equal_to_onnx(quant)
    assert_equal_to_onnx(single("BipolarQuant", MAP, np.asarray(floats(0.5)[0]), domain=domain))
    thresholds = np.sort(halves(4, 3), axis=1)
    graph = assert_equal_to_onnx(single("MultiThreshold", MAP, thresholds, domain=domain))
    assert kinds(graph) == ["Quantize"]


@pytest.mark.parametrize(
    ("op", "domain", "message"),
    [
        ("Mystery", "", r"Mystery is not supported \(domain ai.onnx\)"),
        ("Conv", "finn.custom_op.channels_last", r"channels_last.Conv is not supported \(domain f"),
        ("MultiThreshold", "finnish", r"finnish.MultiThreshold is not supported \(domain finnish"),
        ("Quant", "my.finn", r"my.finn.Quant is not supported \(domain my.finn\)"),
    ],
)
def test_unknown_operators_are_named_with_their_domain(op: str, domain: str, message: str) -> None:
    with pytest.raises(UnsupportedLayerError, match=message):
        import_onnx(single(op, MAP, halves(4, 3), domain=domain))


def streamlined(domain: str) -> onnx.ModelProto:
    """Two layers of bits as FINN's streamlining leaves them: thresholds, and equal bits."""
    rng = np.random.default_rng(1)
    constants = {
        "t0": floats(0)[None],
        "w1": rng.integers(0, 2, (40, 24)).astype(np.float32),
        "t1": rng.integers(15, 26, (24, 1)).astype(np.float32),
        "w2": rng.integers(0, 2, (24, 7)).astype(np.float32),
        "scale": halves(7),
    }
    nodes = [
        helper.make_node("MultiThreshold", ["x", "t0"], ["a"], domain=domain),
        helper.make_node("XnorPopcountMatMul", ["a", "w1"], ["b"], name="fc1", domain=domain),
        helper.make_node("MultiThreshold", ["b", "t1"], ["c"], domain=domain),
        helper.make_node("XnorPopcountMatMul", ["c", "w2"], ["d"], name="fc2", domain=domain),
        helper.make_node("Mul", ["d", "scale"], ["y"]),
    ]
    return model(nodes, {"x": (1, 40)}, constants=constants)


@pytest.mark.parametrize("domain", ["finn", "finn.custom_op.general", "qonnx.custom_op.general"])
def test_equal_bits_are_counted_by_binary_layers(domain: str, tmp_path: Path) -> None:
    made = streamlined(domain)
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer}
    x = halves(16, 40, seed=7)
    first = np.equal((x >= 0)[:, :, None], weights["w1"][None] > 0).sum(axis=1)
    bits = first >= weights["t1"][:, 0]
    second = np.equal(bits[:, :, None], weights["w2"][None] > 0).sum(axis=1)
    report = phonebit.convert(made, tmp_path / "net.pbit")
    assert report.binary_mac_share == 1
    network = phonebit.Network.load(tmp_path / "net.pbit", device="cpu")
    np.testing.assert_array_equal(network(x), second * weights["scale"])
    assert phonebit.verify(made, network).passed
