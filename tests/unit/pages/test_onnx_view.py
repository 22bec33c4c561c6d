"""The ONNX view of a file: ONNX's checker accepts it, and its nodes are the file's layers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from phonebit import ConversionError, Network
from phonebit.converter.convert import convert_graph
from phonebit.converter.ir import Graph
from phonebit.converter.ops import BinaryConv2D
from phonebit.converter.reader import graph_from_bytes
from phonebit.models.networks.quicknet import quicknet
from phonebit.pages.onnx_view import onnx_view
from support.cli_process import Cli

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Shortcuts, pools, a dense layer."""
    return graph_from_bytes(convert_graph(quicknet(size=32), check=False).content)


def test_the_view_has_a_node_a_layer(cli: Cli, u8_file: Path, tmp_path: Path) -> None:
    view = tmp_path / "view.onnx"
    assert cli("export", u8_file, "-o", view).code == 0
    onnx.checker.check_model(str(view))
    model, network = onnx.load(view), Network.load(u8_file, "cpu")
    assert [node.name for node in model.graph.node] == [layer.name for layer in network.layers]
    assert {node.domain for node in model.graph.node} == {"phonebit"}
    sizes = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == [0, *network.inputs[0].shape]
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8
    again = cli("export", u8_file, "-o", u8_file)
    assert again.code == 2 and "this output is one of the inputs" in again.err


def test_nodes_have_window_epilogue_types_and_constants_without_values(graph: Graph) -> None:
    model = onnx.load_from_string(onnx_view(graph, "quicknet.pbit"))
    onnx.checker.check_model(model)
    (conv,) = [node for node in graph.nodes if node.name == "conv1_2"]
    assert isinstance(conv.op, BinaryConv2D)
    (node,) = [node for node in model.graph.node if node.name == "conv1_2"]
    assert node.op_type == "BinaryConv2D"
    assert list(node.input[: len(conv.inputs)]) == conv.inputs
    assert list(node.output) == list(conv.outputs)
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert (given["kernel_shape"], given["pads"], given["strides"]) == ([3, 3], [1] * 4, [1, 1])
    epilogue = [text.decode() for text in given["epilogue"]]
    assert f"AddTensor({conv.inputs[1]})" in epilogue and epilogue[-1] == "threshold"
    shapes = {c.values.name: (list(c.dims), len(c.values.raw_data)) for c in _constants(model)}
    assert shapes["conv1_2.weights"] == ([64, 3, 3, 64], 0)
    assert shapes["conv1_2.threshold"] == ([64], 0)
    types = {info.name: info.type.tensor_type for info in model.graph.value_info}
    kinds = {name: types[name].elem_type for name in conv.outputs}
    assert set(kinds.values()) == {onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL}
    assert [d.dim_value for d in types[conv.outputs[0]].shape.dim] == [0, 8, 8, 64]
    assert len(model.SerializeToString()) < 1 << 16
    assert all(np.prod(c.dims) > 0 for c in _constants(model))


def test_without_the_package_a_sentence_says_what_to_install(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConversionError, match=r"pip install 'phonebit\[onnx\]'"):
        onnx_view(graph, "quicknet.pbit")


def _constants(model: onnx.ModelProto) -> list[onnx.SparseTensorProto]:
    return list(model.graph.sparse_initializer)
