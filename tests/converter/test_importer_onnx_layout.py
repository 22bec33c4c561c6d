"""Channels move to the last axis without transposes that stay; names and layers of exporters."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from phonebit.converter.importers.onnx.importer import import_onnx
from support.onnx_models import assert_equal_to_onnx, halves, kinds, model


def test_a_keras_export_keeps_its_own_layout() -> None:
    """tf2onnx moves channels to the front, computes, and moves them back."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["n"], name="model/rescaling/mul"),
        helper.make_node("Transpose", ["n"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "w"], ["c"], name="model/conv/Conv2D"),
        helper.make_node("Sign", ["c"], ["s"], name="model/sign/Sign"),
        helper.make_node("MaxPool", ["s"], ["p"], name="model/pool", kernel_shape=[2, 2]),
        helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    constants = {"w": halves(4, 3, 3, 3), "scale": np.array([0.5, 1, 2], np.float32)}
    graph = assert_equal_to_onnx(model(nodes, {"x": ("n", 6, 8, 3)}, constants=constants))
    assert kinds(graph) == ["Elementwise", "Conv2D", "Quantize", "MaxPool2D"]
    assert graph.types["x"].shape == (6, 8, 3)
    assert graph.types[graph.outputs[0]].shape == (3, 5, 4)
    assert [node.name for node in graph.nodes] == [
        "x",
        "model.rescaling.mul",
        "model.conv.Conv2D",
        "model.sign.Sign",
        "model.pool",
    ]


def test_a_dense_layer_after_a_map_reads_it_in_the_model_s_order() -> None:
    nodes = [
        helper.make_node("Sign", ["x"], ["s"]),
        helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], transB=1),
    ]
    made = model(nodes, {"x": (1, 4, 3, 5)}, constants={"w": halves(7, 60)})
    assert kinds(assert_equal_to_onnx(made)) == ["Quantize", "Reshape", "Conv2D"]


def test_names_of_modules_are_those_that_pytorch_exports() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="/layer1/layer1.0/conv1/Conv"),
        helper.make_node("Relu", ["c"], ["r"], name="/layer1/layer1.0/relu/Relu"),
        helper.make_node("Conv", ["r", "v"], ["d"], name="node_conv2d_7"),
        helper.make_node("Neg", ["d"], ["y"]),
    ]
    scopes = "['', 'layer2', 'layer2.conv', 'conv2d_7']"
    nodes[2].metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    constants = {"w": halves(4, 3, 1, 1), "v": halves(5, 4, 1, 1)}
    graph = import_onnx(model(nodes, {"x": (1, 3, 4, 4)}, constants=constants))
    names = ["x", "layer1.0.conv1", "layer1.0.relu", "layer2.conv", "y"]
    assert [node.name for node in graph.nodes] == names


def test_an_estimator_is_its_forward_value() -> None:
    """s - c + c, as a straight-through estimator is exported."""
    nodes = [
        helper.make_node("Sign", ["x"], ["s"]),
        helper.make_node("Clip", ["x", "low", "high"], ["c"]),
        helper.make_node("Sub", ["s", "c"], ["d"]),
        helper.make_node("Add", ["d", "c"], ["e"]),
        helper.make_node("Conv", ["e", "w"], ["y"], name="conv"),
    ]
    constants = {
        "low": np.array(-1, np.float32),
        "high": np.array(1, np.float32),
        "w": np.where(halves(4, 3, 3, 3) >= 0, 1, -1).astype(np.float32),
    }
    graph = assert_equal_to_onnx(model(nodes, {"x": (1, 3, 5, 5)}, constants=constants))
    assert kinds(graph) == ["Quantize", "Conv2D"]


@pytest.mark.parametrize(("height", "width"), [(1, 4), (3, 2)])
def test_depth_to_space_is_a_selection_within_rows(height: int, width: int) -> None:
    nodes = [
        helper.make_node("DepthToSpace", ["x"], ["d"], blocksize=2, mode="CRD"),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    graph = assert_equal_to_onnx(model(nodes, {"x": (1, 8, height, width)}))
    assert kinds(graph).count("SelectChannels") == 1
    assert "Conv2D" not in kinds(graph)
