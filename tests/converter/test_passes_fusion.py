"""Fusion: thresholds, epilogues, and the order of execution that they need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import Source, applied, integers, kinds, node_of

from phonebit.converter.interpreter import run
from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    BinaryConv2D,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Pad,
    Quantize,
    Reshape,
    SelectChannels,
    Sign,
    Softmax,
)
from phonebit.converter.ops.epilogue import (
    AddTensor,
    Clamp,
    Epilogue,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Round, Sigmoid
from phonebit.converter.passes.base import Pass, PassLog
from phonebit.converter.passes.check import ReferenceCheck, rounding_after_steps
from phonebit.converter.passes.fuse_epilogues import FuseEpilogues
from phonebit.converter.passes.fuse_integer_thresholds import FuseIntegerThresholds
from phonebit.converter.passes.merge_scale_bias import MergeScaleBias
from phonebit.converter.passes.pipeline import PASSES, run_pipeline
from phonebit.converter.passes.remove_dead_nodes import RemoveDeadNodes
from phonebit.errors import VerificationError
from phonebit.format.records import DataType

SAME = Window((3, 3), pads=(1, 1, 1, 1))
POINT = Window((1, 1))


def converted(graph: Graph) -> Graph:
    """The engine graph; its outputs are equal to the source's on integer inputs."""
    engine = run_pipeline(graph).graph
    x = integers(graph)
    before, after = run(graph, x), run(engine, x)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    return engine


def steps(graph: Graph, name: str) -> list[str]:
    op = node_of(graph, name).op
    return [type(step).__name__ for step in op.epilogue.steps]  # type: ignore[union-attr]


def conv(net: Source, name: str, value: str, cout: int = 4, alpha: float = 1.0) -> str:
    """Sign and binary convolution."""
    bits = net.add(f"{name}_sign", Sign(), value)
    channels = net.graph.types[value].shape[2]
    return net.add(name, Conv2D(net.signs(cout, 3, 3, channels) * np.float32(alpha), SAME), bits)


@pytest.mark.parametrize("pool", [False, True])
def test_conv_bias_scale_pool_norm_and_sign_become_one_threshold(pool: bool) -> None:
    net = Source()
    bits = net.add("first", Sign(), "x")
    weights = net.signs(33, 3, 3, 4) * np.float32(0.25)
    bias = net.rng.integers(-4, 5, 33).astype(np.float32)
    value = net.add("c", Conv2D(weights, SAME, bias=bias), bits)
    if pool:
        value = net.add("p", MaxPool2D(Window((2, 2), (2, 2))), value)
    value = net.add("n", net.norm(33), value)
    engine = converted(net.done(net.add("s", Sign(), value)))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D"] + ["MaxPool2D"] * pool
    op = node_of(engine, "c").op
    assert isinstance(op, BinaryConv2D) and op.epilogue.threshold is not None
    assert op.epilogue.threshold.dtype == np.int32
    assert node_of(engine, "c").value is None
    assert engine.nodes[-1].outputs == ["s"]
    assert {"c", "n", "s"} <= set(node_of(engine, "c").sources)


def test_a_chain_without_a_threshold_stays_float_and_is_noted() -> None:
    net = Source()
    value = net.step("bend", PRelu(np.full(4, -1.0, np.float32)), conv(net, "c", "x"))
    value = net.step("down", ScaleBias(np.ones(4, np.float32), np.full(4, -2, np.float32)), value)
    graph = net.done(net.add("s", Sign(), value))
    result = run_pipeline(graph)
    assert any("c: no integer threshold" in note for note in result.log.notes)
    op = node_of(result.graph, "c").op
    assert isinstance(op, BinaryConv2D) and op.epilogue.threshold is not None
    assert op.epilogue.threshold.dtype == np.float32
    assert steps(result.graph, "c") == ["PRelu"]
    converted(graph)


def rounded_to_8_bits(net: Source, value: str) -> str:
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    value = net.step("scaled", ScaleBias(2 * ones, zeros), value)
    value = net.step("rounded", Round(), value)
    value = net.step("limited", Clamp(-128.0, 127.0), value)
    return net.step("levels", ScaleBias(ones / 2, zeros), value)


def test_rounding_to_levels_is_part_of_the_op_before_it() -> None:
    net = Source()
    levels = rounded_to_8_bits(net, conv(net, "c", "x", alpha=0.25))
    engine = converted(net.done(levels))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D"]
    assert steps(engine, "c") == ["ScaleBias", "Round", "Clamp", "ScaleBias"]


def test_a_sign_after_rounding_is_one_threshold() -> None:
    net = Source()
    net.add("s", Sign(), rounded_to_8_bits(net, "x"))
    engine = converted(net.done("s"))
    op = node_of(engine, "s").op
    assert isinstance(op, Elementwise) and not op.epilogue.steps
    assert op.epilogue.threshold is not None
    assert op.epilogue.threshold.tolist() == [-0.25] * 4  # the last value that becomes -0


def test_a_value_needed_as_bits_and_as_float_is_computed_once() -> None:
    net = Source()
    value = net.add("n", net.norm(4, [1.0, 2.0]), conv(net, "c", "x"))
    bits = net.add("s", Sign(), value)
    engine = converted(net.done(value, bits))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D"]
    assert node_of(engine, "c").value == "n" and node_of(engine, "c").bits == "s"


def test_a_residual_block_is_one_op_with_two_outputs() -> None:
    net = Source()
    shortcut = net.step("stem", Clamp(-2.0, 2.0), "x")
    value = net.add("n", net.norm(4), conv(net, "c", shortcut, alpha=0.5))
    value = net.step("add", AddTensor(1), value, shortcut)
    out = conv(net, "d", value)
    engine = converted(net.done(value, out))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D", "BinaryConv2D"]
    fused = node_of(engine, "c")
    assert steps(engine, "c") == ["ScaleBias", "AddTensor"]
    assert (fused.value, fused.bits) == ("add", "d_sign")
    assert fused.inputs == ["c_sign", "stem"]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_branch_that_is_computed_last_absorbs_the_addition(swapped: bool) -> None:
    net = Source()
    a, b = conv(net, "a", "x"), conv(net, "b", "x")
    pair = (b, a) if swapped else (a, b)
    out = net.step("clamp", Clamp(-3.0, 3.0), net.step("add", AddTensor(1), *pair))
    engine = converted(net.done(out))
    assert steps(engine, "b") == ["AddTensor", "Clamp"]
    assert node_of(engine, "b").inputs[1] == "a"


def test_a_gate_computed_from_the_value_itself_stays_an_op_of_its_own() -> None:
    net = Source((4, 4, 4))
    value = conv(net, "c", "x")
    gate = net.add("gap", AveragePool2D(Window((4, 4))), value)
    gate = net.step("gate", Clamp(0.0, 1.0), gate)
    engine = converted(net.done(net.step("scaled", MultiplyTensor(1), value, gate)))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D", "AveragePool2D", "Elementwise"]
    assert steps(engine, "gap") == ["Clamp"]


def test_a_value_added_to_itself_is_not_lost() -> None:
    net = Source()
    value = conv(net, "c", "x")
    engine = converted(net.done(net.step("double", AddTensor(1), value, value)))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D", "Elementwise"]


def test_an_operand_that_two_steps_read_stays_in_memory() -> None:
    net = Source()
    a, b = conv(net, "a", "x"), conv(net, "b", "x")
    both = Elementwise(Epilogue([AddTensor(1), MultiplyTensor(1)]))
    engine = applied(FuseEpilogues(), net.done(net.add("both", both, a, b)))
    assert "b" in [value for node in engine.nodes for value in node.outputs]


def test_several_signs_of_one_value_the_first_is_fused() -> None:
    net = Source()
    value = conv(net, "c", "x")
    first = net.add("s1", Sign(), value)
    shifted = net.add("n", net.norm(4, [1.0, -1.0]), value)
    second = net.add("s2", Sign(), shifted)
    engine = converted(net.done(value, first, second))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D", "Elementwise"]
    assert node_of(engine, "c").outputs == ["c", "s1"]
    assert steps(engine, "s2") == ["ScaleBias"]  # -1 where the norm decreases


def test_a_norm_before_a_sign_of_a_needed_float_is_one_comparison_if_it_only_rises() -> None:
    net = Source()
    value = conv(net, "c", "x")
    bits = net.add("s", Sign(), net.add("n", net.norm(4, [0.5, 2.0]), value))
    engine = converted(net.done(value, bits))
    assert kinds(engine) == ["Elementwise", "BinaryConv2D"]
    assert node_of(engine, "c").outputs == ["c", "s"] and steps(engine, "c") == []


def test_a_learned_shift_before_the_sign_becomes_a_threshold() -> None:
    net = Source()
    shift = ScaleBias(np.ones(4, np.float32), np.array([0.5, -0.5, 1, 0], np.float32))
    bits = net.add("s", Sign(), net.step("shift", shift, "x"))
    engine = converted(net.done(bits))
    op = engine.nodes[-1].op
    assert isinstance(op, Elementwise) and op.epilogue.steps == []
    assert op.epilogue.threshold is not None
    np.testing.assert_array_equal(op.epilogue.threshold, [-0.5, 0.5, -1, 0])


def test_bits_that_meet_float_operations_are_unpacked_once() -> None:
    net = Source((4, 4, 3))
    bits = net.add("s", Sign(), "x")
    a = net.add("mean", AveragePool2D(Window((2, 2), (2, 2))), bits)
    b = net.step("sum", AddTensor(1), "x", bits)
    c = net.add("rows", Reshape((2, 8, 3)), bits)
    d = net.add("padded", Pad((1, 1, 1, 1), -1.0), c)
    e = net.add("full", Conv2D(np.full((2, 1, 1, 3), [1, 2, 0.5], np.float32), POINT), bits)
    f = net.add("soft", Softmax(), bits)
    g = net.add("chosen", SelectChannels(np.array([2, -1, 0], np.int32)), bits)
    h = net.add("again", Sign(), g)
    engine = converted(net.done(a, b, c, d, e, f, g, h))
    assert engine.types["chosen"].dtype == DataType.F32
    assert engine.types["again"].dtype == DataType.BIT
    assert engine.types["rows"].dtype == engine.types["padded"].dtype == DataType.BIT
    unpacked = [node for node in engine.nodes if node.value == "s/float"]
    assert len(unpacked) == 1


def test_padding_that_files_do_not_know_becomes_an_op() -> None:
    net = Source()
    weights = net.rng.integers(-2, 3, (3, 3, 3, 4)).astype(np.float32)
    a = net.add("ones", Conv2D(weights, SAME, pad_value=1.0), "x")
    b = net.add("wide", Conv2D(weights[:, :1, :1], Window((1, 1), pads=(1, 1, 1, 1))), "x")
    bits = net.add("s", Sign(), "x")
    c = net.add("bits", Conv2D(net.signs(3, 1, 1, 4), Window((1, 1), pads=(1, 1, 1, 1))), bits)
    engine = converted(net.done(a, b, c))
    assert kinds(engine).count("Pad") == 3


def test_scale_and_bias_steps_merge_and_idle_ones_go() -> None:
    net = Source()
    one, zero = np.ones(4, np.float32), np.zeros(4, np.float32)
    many = [ScaleBias(one * 2, one), ScaleBias(one / 2, one), Clamp(0.0, 4.0), ScaleBias(one, zero)]
    graph = net.done(net.add("e", Elementwise(Epilogue(list(many))), "x"))
    result = applied(MergeScaleBias(), graph)
    assert steps(result, "e") == ["ScaleBias", "Clamp"]


def test_values_that_are_only_read_as_bits_are_not_stored() -> None:
    net = Source()
    bits = net.add("s", Sign(), net.step("wave", Sigmoid(), conv(net, "c", "x")))
    graph = net.done(bits)
    engine = converted(graph)
    assert all(node.value is None for node in engine.nodes if node.inputs)
    assert kinds(applied(RemoveDeadNodes(), engine)) == kinds(engine)


# --- the checks around passes --------------------------------------------------------------------


class Vandal(FuseIntegerThresholds):
    """A pass that gets one threshold wrong by one step of the accumulator."""

    def run(self, graph: Graph, log: PassLog) -> None:
        super().run(graph, log)
        for node in graph.nodes:
            if isinstance(node.op, BinaryConv2D) and node.op.epilogue.threshold is not None:
                node.op.epilogue.threshold[0] += 2


def test_a_pass_that_changes_a_result_is_caught_by_name() -> None:
    net = Source((16, 16, 4))
    graph = net.done(net.add("s", Sign(), conv(net, "c", "x")))
    broken = tuple(Vandal() if isinstance(step, FuseIntegerThresholds) else step for step in PASSES)
    with pytest.raises(VerificationError, match=r"pass Vandal changed .* elements of 's'"):
        run_pipeline(graph, passes=broken)
    run_pipeline(graph, passes=broken, check=False)


def test_float_ties_are_counted_and_real_differences_are_not_ties() -> None:
    net = Source((1, 1, 8))
    graph = net.done(net.add("s", Sign(), net.step("v", Clamp(-9.0, 9.0), "x")))
    check = ReferenceCheck(graph)
    values = check._values
    values["v"] = values["v"].copy()
    values["v"][0, 0, 0, :2] = [1e-7, 0.5]
    check._margins["s"] = values["v"]
    before = values["s"]
    after = before.copy()
    after[0, 0, 0, 0] *= -1
    noise = rounding_after_steps(graph.nodes[-1], [values["v"]])
    check._compare("a pass", graph.nodes[-1], "s", (before, after), None, noise)
    assert check.ties == 1
    after[0, 0, 0, 1] *= -1
    with pytest.raises(VerificationError, match="1 of 8 elements"):
        check._compare("a pass", graph.nodes[-1], "s", (before, after), None, noise)


def quantized(scale: float, epsilon: float, rounds: int) -> Graph:
    """Binary convolutions, batch norms of unit variance, and levels on whose borders sums lie."""
    net = Source((12, 12, 8))
    ones = np.ones(16, np.float32)
    thirds = np.arange(4, dtype=np.float32) / 3
    levels = Quantize((thirds[1:] + thirds[:-1]) / 2, thirds)
    v = net.add("q", levels, "x")
    for i, channels in enumerate((8, 16)):
        v = net.add(f"c{i}", Conv2D(net.signs(16, 3, 3, channels) * np.float32(scale), SAME), v)
        v = net.add(f"n{i}", BatchNorm(ones, ones / 2, 0 * ones, ones, epsilon), v)
        if rounds:
            v = net.step(f"m{i}", ScaleBias(ones * 15 / rounds, 0 * ones), v)
            v = net.step(f"k{i}", Clamp(0, 15), net.step(f"r{i}", Round(), v))
        else:
            v = net.add(f"q{i}", levels, v)
    return net.done(net.add("last", Conv2D(net.signs(4, 3, 3, 16), SAME), v))


@pytest.mark.parametrize("rounds", [0, 1, 3, 45])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3])
@pytest.mark.parametrize("scale", [1, 1 / 4, 1 / 16, 1 / 3])
def test_rounding_on_the_border_of_a_level_is_no_mistake(
    scale: float, epsilon: float, rounds: int
) -> None:
    run_pipeline(quantized(scale, epsilon, rounds))


def test_a_level_that_changes_off_its_border_is_a_mistake() -> None:
    class Shift(Pass):
        def run(self, graph: Graph, log: PassLog) -> None:
            for node in graph.nodes:
                steps = getattr(getattr(node.op, "epilogue", None), "steps", [])
                if steps and isinstance(steps[0], ScaleBias):
                    bias = steps[0].bias + np.float32(0.25)
                    shifted = Epilogue([replace(steps[0], bias=bias), *steps[1:]])
                    node.op = node.op.with_epilogue(shifted)

    passes = tuple(Shift() if isinstance(step, MergeScaleBias) else step for step in PASSES)
    with pytest.raises(VerificationError, match="pass Shift changed"):
        run_pipeline(quantized(1, 1e-3, 3), passes=passes)


def test_a_value_that_stays_on_its_threshold_is_no_tie() -> None:
    """A comparison that turns from >= to > differs at exact zeros only, which nothing moved."""
    net = Source((1, 1, 8))
    graph = net.done(net.add("s", Sign(), net.step("v", Clamp(0.0, 9.0), "x")))
    check = ReferenceCheck(graph)
    margin = check._margins["s"]
    assert np.any(margin == 0)
    before = check._values["s"]
    after = np.where(margin == 0, -before, before).astype(np.int8)
    noise = rounding_after_steps(graph.nodes[-1], [check._values["v"]])
    with pytest.raises(VerificationError, match="of 8 elements"):
        check._compare("a pass", graph.nodes[-1], "s", (before, after), margin, noise)


def test_steps_and_comparisons_after_a_concatenation_move_into_its_operands() -> None:
    net = Source()
    a = net.add("a", Conv2D(net.rng.integers(-2, 3, (5, 3, 3, 4)).astype(np.float32), SAME), "x")
    b = net.add("b", Conv2D(net.rng.integers(-2, 3, (3, 3, 3, 4)).astype(np.float32), SAME), "x")
    k = net.add("k", Concat(), a, b)
    slope = net.rng.integers(1, 5, 8).astype(np.float32) / 4
    v = net.step("v", PRelu(slope), k)
    s = net.add("s", Sign(), v)
    d = net.add("d", Conv2D(net.signs(3, 3, 3, 8), SAME), s)
    engine = converted(net.done(d, v))
    assert kinds(engine) == ["Conv2D", "Conv2D", "Concat", "Concat", "BinaryConv2D"]


def test_a_concatenation_that_others_read_keeps_its_steps_after_it() -> None:
    net = Source()
    a = net.add("a", Conv2D(net.rng.integers(-2, 3, (5, 3, 3, 4)).astype(np.float32), SAME), "x")
    k = net.add("k", Concat(), a, "x")
    v = net.step("v", Clamp(0, 1), k)
    engine = converted(net.done(k, v))
    assert kinds(engine) == ["Conv2D", "Concat", "Elementwise"]


def test_a_batch_norm_of_little_variance_may_magnify_the_rounding_of_a_sum() -> None:
    net = Source((6, 5, 64))
    s = net.add("s", Sign(), "x")
    c = net.add("c", Conv2D(net.signs(8, 3, 3, 64) * np.float32(0.1), SAME), s)
    ones = np.ones(8, np.float32)
    n = net.add("n", BatchNorm(ones, 0.5 * ones, 0 * ones, 0 * ones, 1e-10), c)
    v = net.step("v", Clamp(0, 1), n)
    result = run_pipeline(net.done(v))
    assert steps(result.graph, "c") == ["ScaleBias", "Clamp"]
