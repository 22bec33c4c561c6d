"""Networks of thousands of layers are converted in a time that grows as they do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.ir import Graph, Node
from phonebit.converter.node_list import NodeList
from phonebit.converter.passes import pipeline
from phonebit.converter.passes.base import copy_graph, refresh_types
from support.onnx_models import halves, integers, model


def test_a_function_applied_again_and_again_is_applied_once() -> None:
    count = 6000
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    begin = time.process_time()
    graph = import_onnx(model(nodes, {"v0": (1, 4)}, outputs=[f"v{count}"]))
    assert time.process_time() < begin + 3
    assert len(graph.nodes) == 2


def convolutions(count: int) -> onnx.ModelProto:
    kernels = {f"w{i}": halves(3, 3, 1, 1, seed=i) for i in range(count)}
    nodes = []
    for i in range(count):
        nodes.append(helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"v{i + 1}"]))
    return model(nodes, {"v0": (1, 3, 4, 4)}, constants=kernels, outputs=[f"v{count}"])


def binary_layers(count: int, bits: int) -> onnx.ModelProto:
    """Quantizer, padding, convolution and BatchNorm, again and again."""
    rng = np.random.default_rng(0)
    constants: dict[str, Any] = {"pads": integers(0, 0, 1, 1, 0, 0, 1, 1)}
    constants |= {"scale": np.float32(0.5), "zero": np.float32(0), "bits": np.float32(bits)}
    nodes = []
    for i in range(count):
        constants[f"w{i}"] = rng.choice(np.array([-1, 1], np.float32), (8, 8, 3, 3))
        norm = {f"n{k}/{i}": rng.uniform(0.5, 1.5, 8).astype(np.float32) for k in range(4)}
        constants |= norm
        quantizer = (
            ("Quant", [f"v{i}", "scale", "zero", "bits"]) if bits > 1 else ("Sign", [f"v{i}"])
        )
        attributes = {"domain": "qonnx.custom_op.general", "signed": 0} if bits > 1 else {}
        nodes += [
            helper.make_node(*quantizer, [f"q{i}"], **attributes),
            helper.make_node("Pad", [f"q{i}", "pads"], [f"p{i}"]),
            helper.make_node("Conv", [f"p{i}", f"w{i}"], [f"c{i}"]),
            helper.make_node("BatchNormalization", [f"c{i}", *norm], [f"v{i + 1}"]),
        ]
    return model(nodes, {"v0": (1, 8, 4, 4)}, constants=constants, outputs=[f"v{count}"])


NETWORKS: dict[str, Callable[[int], onnx.ModelProto]] = {
    "convolutions": convolutions,
    "signs": partial(binary_layers, bits=1),
    "two bits": partial(binary_layers, bits=2),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_passes_look_at_each_node_a_fixed_number_of_times(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = 0

    def counted(nodes: NodeList) -> Iterator[Node]:
        nonlocal visits
        for node in original(nodes):
            visits += 1
            yield node

    def counted_item(nodes: NodeList, place: Any) -> Any:
        nonlocal visits
        visits += 1
        return item(nodes, place)

    original, item = NodeList.__iter__, NodeList.__getitem__
    monkeypatch.setattr(NodeList, "__iter__", counted)
    monkeypatch.setattr(NodeList, "__getitem__", counted_item)
    found = []
    for count in (20, 40):
        graph = import_onnx(NETWORKS[name](count))
        visits = 0
        convert_graph(graph)
        found.append(visits)
    assert found[1] < 2.2 * found[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_lists_of_nodes_follow_every_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(graph: Graph) -> None:
        refresh_types(graph)
        assert_consistent(graph.nodes)

    monkeypatch.setattr(pipeline, "refresh_types", checked)
    convert_graph(import_onnx(NETWORKS[name](4)))


def assert_consistent(nodes: list[Node]) -> None:
    """What the list knows is what a look at all of its nodes shows."""
    assert isinstance(nodes, NodeList)
    plain = list(nodes)
    for place, node in enumerate(plain):
        assert nodes.place(node) == place
        for value in node.outputs:
            assert nodes.producer(value) is node
        for value in (*node.inputs, *node.outputs):
            readers = [other for other in plain if value in other.inputs]
            assert [*map(id, nodes.readers(value))] == [*map(id, readers)]


def test_what_a_list_of_nodes_knows_follows_its_changes() -> None:
    nodes = NodeList(copy_graph(import_onnx(convolutions(30))).nodes)
    rng = np.random.default_rng(0)
    for number in range(300):
        place = int(rng.integers(1, len(nodes)))
        operands = [nodes[int(rng.integers(len(nodes)))].outputs[0] for _ in range(2)]
        change = rng.integers(4)
        if change == 0 and len(nodes) > 10:
            del nodes[place]
        elif change == 1:
            nodes.insert(place, Node(f"n{number}", nodes[place].op, operands, f"n{number}"))
        elif change == 2:
            nodes.rewire(nodes[place], operands)
        else:
            twin = replace(nodes[place], inputs=operands)
            nodes[place : place + 1] = [twin, Node(f"m{number}", twin.op, [], f"m{number}")]
        if number % 10 == 0:
            assert_consistent(nodes)
    with pytest.raises(KeyError):
        nodes.producer("nowhere")
    with pytest.raises(KeyError):
        nodes.place(Node("elsewhere", nodes[0].op, [], "elsewhere"))


def test_a_chain_of_convolutions_keeps_all_of_them() -> None:
    count = 150
    made = convolutions(count)
    assert len(convert_graph(import_onnx(made)).engine.nodes) == count + 1
