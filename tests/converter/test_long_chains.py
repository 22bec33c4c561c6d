"""Networks of thousands of layers are converted in a time that grows as they do."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import helper

from phonebit.converter.convert import convert_graph
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.ir import Node
from phonebit.converter.passes.base import copy_graph
from support.onnx_models import halves, model


def test_a_function_applied_again_and_again_is_applied_once() -> None:
    count = 6000
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    begin = time.process_time()
    graph = import_onnx(model(nodes, {"v0": (1, 4)}, outputs=[f"v{count}"]))
    assert time.process_time() < begin + 3
    assert len(graph.nodes) == 2


def test_producers_are_found_while_nodes_come_and_go() -> None:
    kernels = {f"w{i}": halves(3, 3, 1, 1, seed=i) for i in range(60)}
    nodes = [helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(60)]
    made = model(nodes, {"v0": (1, 3, 4, 4)}, constants=kernels, outputs=["v60"])
    graph, rng = copy_graph(import_onnx(made)), np.random.default_rng(0)
    for number in range(300):
        place = int(rng.integers(1, len(graph.nodes)))
        if rng.random() < 0.5 and len(graph.nodes) > 10:
            del graph.nodes[place]
        else:
            other = graph.nodes[place]
            graph.nodes.insert(place, Node(f"n{number}", other.op, [], f"n{number}"))
        wanted = graph.nodes[int(rng.integers(len(graph.nodes)))]
        assert graph.producer(wanted.outputs[0]) is wanted
    with pytest.raises(KeyError):
        graph.producer("nowhere")


def test_a_chain_of_convolutions_keeps_all_of_them() -> None:
    count = 150
    kernels = {f"w{i}": halves(3, 3, 1, 1, seed=i) for i in range(count)}
    nodes = []
    for i in range(count):
        nodes.append(helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"v{i + 1}"]))
    made = model(nodes, {"v0": (1, 3, 4, 4)}, constants=kernels, outputs=[f"v{count}"])
    assert len(convert_graph(import_onnx(made)).engine.nodes) == count + 1
