"""A few bytes that ask for endless work or memory are refused before anything is computed."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from phonebit.budget import AT_ONCE, IN_ALL, Account, Kind, account, spend
from phonebit.converter.importers.onnx.importer import import_onnx
from phonebit.converter.importers.onnx.rules.elementwise import BINARY, UNARY
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.constant_work import operations_of
from phonebit.converter.ops.epilogue.functions import Gelu
from phonebit.errors import ConversionError, InputError
from support.onnx_models import integers, model, single

MAP = (1, 3, 8, 8)


def computed(*nodes: onnx.NodeProto, **constants: np.ndarray) -> onnx.ModelProto:
    """A model that multiplies its input by one number of a constant "k" that nodes compute."""
    tail = [
        helper.make_node("ReduceMax", ["k"], ["r"], keepdims=0),
        helper.make_node("Cast", ["r"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    return model([*nodes, *tail], {"x": MAP}, constants=constants)


def filled(dtype: type) -> onnx.NodeProto:
    one = onnx.numpy_helper.from_array(np.ones(1, dtype))
    return helper.make_node("ConstantOfShape", ["s"], ["c"], value=one)


LARGE = integers(1 << 28)
SQUARE = integers(1 << 13, 1 << 13)
RANGES = [helper.make_node("Range", [f"a{i}", "b", "d"], [f"k{i}"]) for i in range(40)]
LIMITS = {"a": np.int64(0), "b": np.int64(1 << 26), "d": np.int64(1)}
STARTS = {f"a{i}": np.int64(i) for i in range(40)}
BOMBS: dict[str, tuple[onnx.ModelProto, str]] = {
    "einsum": (
        computed(
            filled(np.float32), helper.make_node("Einsum", ["c", "c"], ["k"], equation="i,j->"),
            s=LARGE,
        ),
        "operations at once",
    ),
    "integer product": (
        computed(filled(np.int64), helper.make_node("MatMul", ["c", "c"], ["k"]), s=SQUARE),
        "operations at once",
    ),
    "product": (
        computed(filled(np.float32), helper.make_node("MatMul", ["c", "c"], ["k"]), s=SQUARE),
        "operations at once",
    ),
    "slice": (
        computed(
            filled(np.float32), helper.make_node("Slice", ["c", "b", "e"], ["k"]),
            s=LARGE, b=integers(1), e=LARGE,
        ),
        "operations at once",
    ),
    "long range": (
        computed(
            helper.make_node("Range", ["a", "b", "d"], ["k"]), **LIMITS | {"b": np.int64(1 << 28)}
        ),
        "bytes of arrays at once",
    ),
    "many ranges": (
        computed(*RANGES, helper.make_node("Add", ["k0", "k1"], ["k"]), **LIMITS, **STARTS),
        r"bytes of arrays \(",
    ),
    "sizes": (
        single("Reshape", MAP, np.ones(1 << 17, np.int64)),
        "more than 65536",
    ),
    "pad": (
        single("Pad", MAP, integers(1 << 19, 0, 0, 0, 0, 0, 0, 0)),
        "y/.*operations at once",
    ),
    "pool": (
        single("MaxPool", MAP, kernel_shape=[4096, 4096], pads=[4095] * 4),
        "more than 1e[+]12 operations",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_little_that_asks_for_much_is_refused_at_once(name: str) -> None:
    made, message = BOMBS[name]
    begin = time.process_time()
    with pytest.raises(ConversionError, match=message):
        import_onnx(made)
    assert time.process_time() < begin + 1


@pytest.mark.parametrize("op", [*UNARY, *BINARY, "gelu"])
def test_a_step_at_the_limit_takes_a_moment(op: str) -> None:
    """Ctrl-C is seen between two steps: the limit counts time, of NumPy's slowest function, too."""
    numbers = np.arange(1 << 18, dtype=np.float32) % 1000 / 77 + 0.5
    target = (UNARY | BINARY).get(op) or (lambda self: Gelu().apply(self, []))
    operand = Call("c", "parameter", numbers, {}, numbers.shape, "float32", constant=True)
    names = ["self", "exponent" if op == "pow" else "other"][: 2 if op in BINARY else 1]
    call = Call("k", op, target, dict.fromkeys(names, operand), numbers.shape, "float32")
    begin = time.process_time()
    call.apply(dict.fromkeys(names, numbers))
    took_s = time.process_time() - begin
    assert took_s * AT_ONCE[Kind.OPERATIONS] / operations_of(call) < 2, "0.3 s, if undisturbed"


def test_an_endless_range_is_none() -> None:
    made = computed(
        helper.make_node("Range", ["a", "b", "d"], ["k"]),
        a=np.float32(0), b=np.float32(np.inf), d=np.float32(1),
    )  # fmt: skip
    with pytest.raises(ConversionError, match="goes from 0 to inf"):
        import_onnx(made)


def test_parts_of_constants_are_those_of_numpy() -> None:
    values = np.arange(7, dtype=np.float32)
    for begin, end, step in [(1, 6, 2), (6, 0, -2), (-1, -8, -1), (5, 2, 1), (-3, 99, 1)]:
        part = values[begin:end:step] if end >= -7 else values[begin::step]
        if not part.size:
            continue
        nodes = [
            helper.make_node("Slice", ["c", "b", "e", "a", "s"], ["k"]),
            helper.make_node("Add", ["x", "k"], ["y"]),
        ]
        given = {"c": values, "b": integers(begin), "e": integers(end), "a": integers(0)}
        made = model(nodes, {"x": (1, len(part))}, constants=given | {"s": integers(step)})
        (node,) = [node for node in import_onnx(made).nodes if node.inputs]
        np.testing.assert_array_equal(node.op.epilogue.steps[0].bias, part)


def test_an_account_adds_up_and_counts_before() -> None:
    own = Account(InputError)
    with pytest.raises(InputError, match="x: asks for too many operations at once"):
        own.spend(Kind.OPERATIONS, AT_ONCE[Kind.OPERATIONS] + 1, "x")
    own = Account()
    with pytest.raises(ConversionError, match=r"too many bytes of text \(expected at most"):
        for _ in range(1 + IN_ALL[Kind.TEXT] // AT_ONCE[Kind.TEXT]):
            own.spend(Kind.TEXT, AT_ONCE[Kind.TEXT])


def test_what_is_read_inside_has_one_account() -> None:
    maximum, step = IN_ALL[Kind.TEXT], AT_ONCE[Kind.TEXT]
    with account(), pytest.raises(ConversionError, match="too many bytes of text"):
        for _ in range(1 + maximum // step):
            with account():
                spend(Kind.TEXT, step)
    for _ in range(1 + maximum // step):  # each alone
        spend(Kind.TEXT, step)
