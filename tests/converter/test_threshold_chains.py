"""Chains of per-channel steps with special numbers: a threshold decides as the steps themselves do.

Every epilogue operation and affine operator of the lists, with slopes and scales of 0, subnormal
and huge numbers, limits that are equal or infinite, in front of a sign or a count of thresholds.
What counts is the source's arithmetic at the values on both sides of each threshold and at the ends
of the float32 range. Where that arithmetic gives no number (inf times 0), nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from graphs import Source, node_of
from numpy.typing import NDArray

from phonebit.converter.convert import Conversion, convert_graph
from phonebit.converter.interpreter import run
from phonebit.converter.ir import SMALLEST, FloatArray, Graph, Node, Operator, Window
from phonebit.converter.ops import (
    BatchNorm,
    BinaryConv2D,
    Conv2D,
    Elementwise,
    SelectChannels,
    Sign,
)
from phonebit.converter.ops.base import Affine
from phonebit.converter.ops.dequantize import Dequantize
from phonebit.converter.ops.divide import Divide
from phonebit.converter.ops.epilogue import (
    EPILOGUE_OPS,
    Clamp,
    Count,
    Epilogue,
    EpilogueOp,
    PRelu,
    ScaleBias,
    TensorOp,
)
from phonebit.converter.ops.epilogue.functions import FUNCTIONS, Round
from phonebit.converter.passes import integer_thresholds
from phonebit.devices.gpus import gpu_devices, gpu_error, gpu_runtime
from support.opencl_device import check_warnings

_runtime = gpu_runtime()

CHANNELS = 33
CHAINS = 48
CHAINS_ON_OPENCL = 8
TAPS = 40
LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
ISAS = [name for name, _, supported in _runtime.isas() if supported]
SPECIAL = np.array(
    [0, -0.0, SMALLEST, -SMALLEST, TINY, 1e-20, 0.3, -0.3, 1, -1, 2.5, -7.5, 1e20, -1e20, LARGEST],
    np.float32,
)
LIMITS = [
    (0, math.inf), (-math.inf, math.inf), (-1, 1), (2.5, 2.5), (0, 0), (-0.0, 6), (-math.inf, -0.3),
    (-SMALLEST, SMALLEST), (1e30, math.inf), (3, 1), (-LARGEST, LARGEST),
]  # fmt: skip

Rng = np.random.Generator
Make = Callable[[Rng], Operator]


def some(rng: Rng, *shape: int) -> FloatArray:
    return rng.choice(SPECIAL, shape or CHANNELS)


def not_zero(rng: Rng) -> FloatArray:
    return rng.choice(SPECIAL[SPECIAL != 0], CHANNELS)


def one(make: Callable[[Rng], EpilogueOp]) -> Make:
    return lambda rng: Elementwise(Epilogue([make(rng)]))


def clamp(rng: Rng) -> Clamp:
    return Clamp(*LIMITS[rng.integers(len(LIMITS))])


def norm(rng: Rng) -> BatchNorm:
    spread = rng.choice(np.array([0, SMALLEST, 1, 1e20], np.float32), CHANNELS)
    gamma = np.where(np.abs(some(rng)) > 1e30, 1, some(rng)).clip(-1e30, 1e30).astype(np.float32)
    arithmetic = ("keras", "torch")[rng.integers(2)]
    mean = some(rng).clip(-1e3, 1e3)
    return BatchNorm(gamma, some(rng), mean, spread, 1e-5, arithmetic)  # type: ignore[arg-type]


STEPS: dict[type[EpilogueOp] | type[Affine], Make] = {
    ScaleBias: one(lambda rng: ScaleBias(some(rng), some(rng))),
    PRelu: one(lambda rng: PRelu(np.abs(some(rng)), np.abs(some(rng)))),  # a maximum of two
    Clamp: one(clamp),
    Round: one(lambda rng: Round()),
    Count: one(lambda rng: Count(np.sort(some(rng, CHANNELS, 3), axis=1))),
    BatchNorm: norm,
    Divide: lambda rng: Divide(not_zero(rng)),
}
TWO_WAYS: list[Make] = [
    one(lambda rng: PRelu(np.full(CHANNELS, -1, np.float32))),  # abs
    one(lambda rng: PRelu(some(rng))),
    one(lambda rng: PRelu(-np.abs(some(rng)), some(rng))),
]
"""Steps that may fall and rise: no comparison with one float, but perhaps with an integer."""


def test_every_operation_that_keeps_or_turns_the_order_is_tried() -> None:
    others = {each for each in FUNCTIONS["keras"].values() if each().directions() is None}
    known = {each for each in EPILOGUE_OPS.values() if not issubclass(each, TensorOp)} - others
    affine = {each for each in Affine.__subclasses__() if each is not Dequantize}
    assert set(STEPS) == known | affine


def chain(rng: Rng, makes: list[Make], counts: bool) -> list[Operator]:
    ops = [makes[rng.integers(len(makes))](rng) for _ in range(rng.integers(1, 4))]
    count = Count(np.sort(some(rng, CHANNELS, 5), axis=1))
    return [*ops, Elementwise(Epilogue([count])) if counts else Sign()]


def add_chain(net: Source, index: int, ops: list[Operator], value: str) -> str:
    for number, op in enumerate(ops[:-1]):
        value = net.add(f"c{index}/{number}", op, value)
    return net.add(f"c{index}", ops[-1], value)


def decided(graph: Graph, inputs: dict[str, NDArray[np.float32]]) -> dict[str, FloatArray]:
    """What the source gives at the ends of its chains; NaN where some step before gives NaN."""
    with np.errstate(all="ignore"):
        values = run(graph, inputs, graph.types)
    found = {}
    for name in graph.outputs:
        steps = [values[value] for value in graph.types if value.startswith(f"{name}/")]
        lost = np.logical_or.reduce([np.isnan(step) for step in steps])
        found[name] = np.where(lost, np.float32(np.nan), values[name])
    return found


def check(expected: dict[str, FloatArray], results: list[NDArray[np.float32]]) -> None:
    for (name, array), result in zip(expected.items(), results, strict=True):
        wrong = (array != result.reshape(array.shape)) & ~np.isnan(array)
        assert not wrong.any(), (name, np.argwhere(wrong)[:5].tolist())


def around(node: Node, rng: Rng) -> FloatArray:
    """Values (A, C) on both sides of what an engine node compares with, and far away."""
    assert isinstance(node.op, Elementwise)
    sign, rows = np.ones(CHANNELS, np.float32), node.op.epilogue.threshold
    for step in node.op.epilogue.steps:
        if isinstance(step, Count):
            rows = step.thresholds.T
        else:
            assert isinstance(step, ScaleBias)
            sign = step.scale
    assert rows is not None
    at = np.clip(np.atleast_2d(rows), -LARGEST, LARGEST).astype(np.float32) * sign
    infinity = np.float32(np.inf)
    with np.errstate(over="ignore"):
        near = [at, np.nextafter(at, infinity), np.nextafter(at, -infinity)]
    ends = np.array([LARGEST, 0, SMALLEST, TINY, 1], np.float32)[:, None]
    far = rng.standard_normal((20, CHANNELS)) * 10.0 ** rng.integers(-40, 38, (20, CHANNELS))
    signed = np.repeat(np.concatenate([ends, -ends]), CHANNELS, axis=1)
    found = np.concatenate([*near, signed, far]).astype(np.float32)
    return np.clip(found, -LARGEST, LARGEST)


def without_warnings(graph: Graph) -> Conversion:
    with np.errstate(all="ignore"):  # of scales that overflow on purpose
        return convert_graph(graph, check=False)


@cache
def float_chains(count: int) -> tuple[Graph, bytes, FloatArray]:
    """Source, file and input of many chains that each read channels of their own."""
    rng = np.random.default_rng(0)
    net = Source((1, 45, count * CHANNELS))
    outputs = []
    for index in range(count):
        channels = np.arange(index * CHANNELS, (index + 1) * CHANNELS, dtype=np.int32)
        value = net.add(f"part{index}", SelectChannels(channels), "x")
        ops = chain(rng, list(STEPS.values()), counts=index % 3 == 0)
        outputs.append(add_chain(net, index, ops, value))
    graph = net.done(*outputs)
    conversion = without_warnings(graph)
    x = np.zeros((1, 1, 45, count * CHANNELS), np.float32)
    for index in range(count):
        values = around(node_of(conversion.engine, f"c{index}"), rng)
        x[0, 0, : len(values), index * CHANNELS : (index + 1) * CHANNELS] = values
    return graph, conversion.content, x


@cache
def integer_chains(count: int, bisected: bool) -> tuple[Graph, bytes, FloatArray]:
    """The same after binary convolutions, whose every sum occurs; some chains fall and rise."""
    rng = np.random.default_rng(1)
    net = Source((1, TAPS + 1, TAPS))
    bits = net.add("bits", Sign(), "x")
    outputs = []
    for index in range(count):
        weights = np.ones((CHANNELS, 1, 1, TAPS), np.float32)
        value = net.add(f"w{index}", Conv2D(weights, Window((1, 1))), bits)
        ops = chain(rng, list(STEPS.values()), counts=False)
        if index % 4 == 0 and not bisected:
            ops[-2:-1] = [ops[-2], TWO_WAYS[rng.integers(len(TWO_WAYS))](rng)]
        outputs.append(add_chain(net, index, ops, value))
    graph = net.done(*outputs)
    with pytest.MonkeyPatch.context() as patch:
        if bisected:
            patch.setattr(integer_thresholds, "MAX_EVALUATIONS", 1)
        conversion = without_warnings(graph)
    kinds = {type(node.op) for node in conversion.engine.nodes if node.name[0] == "w"}
    assert kinds == {BinaryConv2D}
    x = np.where(np.tri(TAPS + 1, TAPS, -1), np.float32(1), np.float32(-1))
    return graph, conversion.content, x[None, None]


CASES: dict[str, Callable[[int], tuple[Graph, bytes, FloatArray]]] = {
    "float": float_chains,
    "integer": lambda count: integer_chains(count, False),
    "integer, bisected": lambda count: integer_chains(count, True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("isa", ISAS)
def test_a_threshold_decides_as_the_steps_do(case: str, isa: str, tmp_path: Path) -> None:
    graph, content, x = CASES[case](CHAINS)
    path = tmp_path / "chains.pbit"
    path.write_bytes(content)
    check(decided(graph, {"x": x}), _runtime.Network(str(path), 1, f"cpu:{isa}").forward([x]))


@pytest.mark.parametrize("case", CASES)
def test_so_it_does_on_opencl(case: str, kernel_cache: str, tmp_path: Path) -> None:
    if not gpu_devices():
        pytest.skip(f"no OpenCL device: {gpu_error()}")
    graph, content, x = CASES[case](CHAINS_ON_OPENCL)
    path = tmp_path / "chains.pbit"
    path.write_bytes(content)
    network = _runtime.Network(path, device="gpu", cache_directory=kernel_cache)
    check(decided(graph, {"x": x}), network.forward([x]))
    check_warnings(network.warnings)
