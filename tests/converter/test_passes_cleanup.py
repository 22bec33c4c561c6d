"""Passes that remove, merge or move: what they find, and what they must leave alone."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Source, applied, kinds, node_of

from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import Concat, Conv2D, Elementwise, MaxPool2D, Pad, Reshape, Sign
from phonebit.converter.ops.epilogue import Clamp, Epilogue, PRelu, ScaleBias
from phonebit.converter.passes.hoist_signs import HoistSigns
from phonebit.converter.passes.merge_duplicates import MergeDuplicates
from phonebit.converter.passes.merge_flatten import MergeFlatten
from phonebit.converter.passes.merge_pads import MergePads
from phonebit.converter.passes.remove_dead_nodes import RemoveDeadNodes
from phonebit.converter.passes.remove_identities import RemoveIdentities
from phonebit.converter.passes.split_bias import SplitBias

POINT = Window((1, 1))
SAME = Window((3, 3), pads=(1, 1, 1, 1))


def test_dead_nodes_go_and_inputs_stay() -> None:
    net = Source()
    kept = net.step("kept", Clamp(0.0, 1.0), "x")
    net.step("dead", Clamp(0.0, 2.0), "x")
    graph = applied(RemoveDeadNodes(), net.done(kept))
    assert [node.name for node in graph.nodes] == ["x", "kept"]


def test_identities_go_but_outputs_keep_their_name() -> None:
    net = Source()
    a = net.add("dropout", Elementwise(), "x")
    b = net.add("same", Reshape((6, 5, 4)), a)
    c = net.add("nothing", Pad((0, 0, 0, 0)), b)
    d = net.step("linear", Clamp(-float("inf"), float("inf")), c)
    e = net.add("sign", Sign(), d)
    f = net.add("again", Sign(), e)
    g = net.add("last", Elementwise(), f)
    graph = applied(RemoveIdentities(), net.done(net.add("out", Elementwise(), g)))
    assert kinds(graph) == ["Sign", "Elementwise", "Elementwise"]
    assert graph.outputs == ["out"]


def test_reshapes_of_reshapes_become_one() -> None:
    net = Source()
    a = net.add("a", Reshape((1, 30, 4)), "x")
    b = net.add("b", Reshape((1, 1, 120)), a)
    graph = applied(RemoveDeadNodes(), applied(RemoveIdentities(), net.done(b)))
    assert kinds(graph) == ["Reshape"]


def test_equal_signs_of_one_value_become_one() -> None:
    net = Source()
    a, b = net.add("a", Sign(), "x"), net.add("b", Sign(), "x")
    c = net.add("c", Conv2D(net.signs(3, 1, 1, 4), POINT), a)
    d = net.add("d", Conv2D(net.signs(3, 1, 1, 4), POINT), b)
    graph = applied(MergeDuplicates(), net.done(c, d))
    assert kinds(graph) == ["Sign", "Conv2D", "Conv2D"]
    kept = applied(MergeDuplicates(), net.done(c, d, "b"))
    assert kinds(kept).count("Sign") == 2


def test_biases_become_steps() -> None:
    net = Source()
    bias = np.array([0.5, -1.0, 2.0], np.float32)
    c = net.add("c", Conv2D(net.signs(3, 1, 1, 4), POINT, bias=bias), "x")
    graph = applied(SplitBias(), net.done(c))
    assert kinds(graph) == ["Conv2D", "Elementwise"]
    assert node_of(graph, "c").value == "c/sum"


# --- HoistSigns ----------------------------------------------------------------------------------


def signed(net: Source, value: str, *chain: object) -> Graph:
    """value -> chain -> sign, as the output."""
    for index, op in enumerate(chain):
        value = net.add(f"chain{index}", op, value)  # type: ignore[arg-type]
    return net.done(net.add("sign", Sign(), value))


def test_a_sign_moves_before_max_pooling_and_falling_channels_take_the_minimum() -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(4, 1, 1, 4), POINT), "x")
    p = net.add("p", MaxPool2D(Window((2, 2), (2, 2))), c)
    graph = applied(HoistSigns(), signed(net, p, net.norm(4)))
    assert kinds(graph) == ["Conv2D", "BatchNorm", "Sign", "MaxPool2D"]
    pool = node_of(graph, "p").op
    assert isinstance(pool, MaxPool2D) and pool.flip is not None
    assert pool.flip.tolist() == [False, True, False, False]
    assert node_of(graph, "p").value == "sign"


def test_a_sign_stays_after_max_pooling_if_it_does_not_commute_or_the_float_is_needed() -> None:
    net = Source()
    c = net.add("c", Conv2D(net.signs(4, 1, 1, 4), POINT), "x")
    p = net.add("p", MaxPool2D(Window((2, 2), (2, 2))), c)
    bends = Elementwise(Epilogue([PRelu(np.full(4, -1.0, np.float32))]))
    graph = applied(HoistSigns(), signed(net, p, bends))
    assert kinds(graph)[1] == "MaxPool2D"
    graph = applied(HoistSigns(), net.done("sign", "p"))
    assert kinds(graph)[1] == "MaxPool2D"


def test_a_sign_moves_into_the_branches_of_a_concatenation() -> None:
    net = Source()
    a = net.add("a", Conv2D(net.signs(3, 1, 1, 4), POINT), "x")
    b = net.add("b", Conv2D(net.signs(2, 1, 1, 4), POINT), "x")
    c = net.add("c", Concat(), a, b)
    graph = applied(HoistSigns(), signed(net, c, net.norm(5)))
    assert kinds(graph) == [
        "Conv2D", "Conv2D", "BatchNorm", "Sign", "BatchNorm", "Sign", "Concat"
    ]  # fmt: skip
    assert graph.nodes[-1].value == "sign"


def test_a_sign_moves_before_a_reshape_only_without_channel_parameters() -> None:
    net = Source()
    r = net.add("r", Reshape((1, 1, 120)), "x")
    graph = applied(HoistSigns(), signed(net, r, Elementwise(Epilogue([Clamp(-1.0, 1.0)]))))
    assert kinds(graph) == ["Elementwise", "Sign", "Reshape"]
    net = Source()
    r = net.add("r", Reshape((1, 1, 120)), "x")
    graph = applied(HoistSigns(), signed(net, r, net.norm(120)))
    assert kinds(graph) == ["Reshape", "BatchNorm", "Sign"]


@pytest.mark.parametrize("value, bit", [(0.0, 1.0), (2.5, 1.0), (-0.1, -1.0)])
def test_a_sign_moves_before_padding_and_the_padding_is_signed(value: float, bit: float) -> None:
    net = Source()
    p = net.add("p", Pad((1, 0, 2, 1), value), "x")
    graph = applied(HoistSigns(), signed(net, p))
    assert kinds(graph) == ["Sign", "Pad"]
    pad = node_of(graph, "p").op
    assert isinstance(pad, Pad) and pad.value == bit


# --- MergePads, MergeFlatten ---------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
def test_padding_of_bits_becomes_the_convolutions_own(value: float) -> None:
    net = Source()
    s = net.add("s", Sign(), "x")
    p = net.add("p", Pad((1, 0, 1, 2), value), s)
    c = net.add("c", Conv2D(net.signs(3, 3, 3, 4), Window((3, 3))), p)
    graph = applied(MergePads(), net.done(c))
    op = node_of(graph, "c").op
    assert isinstance(op, Conv2D)
    assert op.window.pads == (1, 0, 1, 2) and op.pad_value == value
    assert node_of(graph, "c").inputs == ["s"]


def test_padding_is_merged_only_where_it_means_the_same() -> None:
    net = Source()
    p = net.add("p", Pad((1, 1, 1, 1), 0.5), "x")
    different = net.add("different", Conv2D(net.signs(3, 3, 3, 4), SAME), p)
    wide = net.add("wide", Conv2D(net.signs(3, 1, 1, 4), POINT), p)
    pooled = net.add("pooled", MaxPool2D(Window((2, 2))), p)
    graph = applied(MergePads(), net.done(different, wide, pooled))
    assert all(node_of(graph, name).inputs == ["p"] for name in ("different", "wide", "pooled"))


def test_two_paddings_of_one_value_add_up() -> None:
    net = Source()
    p = net.add("p", Pad((1, 0, 0, 0)), "x")
    q = net.add("q", Pad((0, 1, 0, 0)), p)
    c = net.add("c", Conv2D(net.signs(3, 3, 3, 4), Window((3, 3), pads=(1, 1, 1, 1))), q)
    graph = applied(MergePads(), net.done(c))
    op = node_of(graph, "c").op
    assert isinstance(op, Conv2D) and op.window.pads == (2, 2, 1, 1)


def test_flatten_and_dense_become_a_convolution_over_the_whole_map() -> None:
    net = Source((3, 5, 33))
    s = net.add("s", Sign(), "x")
    f = net.add("f", Reshape((1, 1, 495)), s)
    d = net.add("d", Conv2D(net.signs(7, 1, 1, 495), POINT), f)
    graph = applied(MergeFlatten(), net.done(d))
    op = node_of(graph, "d").op
    assert isinstance(op, Conv2D)
    assert op.window.kernel == (3, 5) and op.weights.shape == (7, 3, 5, 33)
    assert node_of(graph, "d").sources == ["f", "d"]


def test_a_flatten_that_others_read_stays_for_them() -> None:
    net = Source()
    f = net.add("f", Reshape((1, 1, 120)), "x")
    d = net.add("d", Conv2D(net.signs(7, 1, 1, 120), POINT), f)
    e = net.step("e", ScaleBias(np.ones(120, np.float32), np.ones(120, np.float32)), f)
    graph = applied(MergeFlatten(), net.done(d, e))
    assert node_of(graph, "d").inputs == ["x"] and node_of(graph, "e").inputs == ["f"]
