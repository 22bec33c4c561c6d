"""Operators and epilogue operations are found by number and by name, and say all that they must."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pytest

from phonebit.converter.importers.keras.functions import FUNCTIONS as KERAS_FUNCTIONS
from phonebit.converter.importers.keras.pointwise import ACTIVATIONS
from phonebit.converter.importers.onnx.rules import STANDARD
from phonebit.converter.importers.tflite.rules.computing import COMPUTING
from phonebit.converter.importers.torch.arithmetic import ARITHMETIC
from phonebit.converter.ops import OPERATORS
from phonebit.converter.ops.base import Numbered
from phonebit.converter.ops.epilogue import EPILOGUE_OPS
from phonebit.converter.ops.epilogue.functions import Function, Gelu, Round
from phonebit.converter.records import RecordReader, RecordWriter
from phonebit.format.records import OpKind, StepKind


class Kind(IntEnum):
    FIRST = 1
    SECOND = 2


def test_every_number_of_the_format_has_its_class() -> None:
    assert OPERATORS.keys() == set(OpKind)
    assert EPILOGUE_OPS.keys() == set(StepKind)


def test_a_class_that_lacks_a_member_is_named_by_its_number() -> None:
    class Base(Numbered):
        pass

    class Whole(Base):
        kinds = (Kind.FIRST,)

        def write(self, record: RecordWriter) -> None: ...

        @classmethod
        def read(cls, record: RecordReader) -> Whole:
            return cls()

    class Forgetful(Base):
        kinds = (Kind.SECOND,)

        def write(self, record: RecordWriter) -> None: ...

    with pytest.raises(TypeError, match="SECOND"):
        Base.by_kind(Kind)

    class Second(Forgetful):
        @classmethod
        def read(cls, record: RecordReader) -> Second:
            return cls()

    assert Base.by_kind(Kind) == {Kind.FIRST: Whole, Kind.SECOND: Second}

    class Third(Second):
        pass

    with pytest.raises(TypeError, match="Base"):
        Base.by_kind(Kind)


@pytest.mark.parametrize("function", Function.__subclasses__(), ids=lambda each: each.__name__)
def test_importers_know_every_function_by_its_names(function: type[Function]) -> None:
    names = function.names
    keras = names.keras
    assert {f"math.{keras}", f"nn.{keras}", keras.title()} <= KERAS_FUNCTIONS.keys()
    assert (keras in ACTIVATIONS) == function.is_activation
    assert names.torch in ARITHMETIC
    assert names.onnx is None or names.onnx in STANDARD
    assert names.tflite is None or names.tflite in COMPUTING
    assert function.of_call({}) == function()


@pytest.mark.parametrize("function", Function.__subclasses__(), ids=lambda each: each.__name__)
def test_monotone_functions_never_fall(function: type[Function]) -> None:
    v = np.linspace(-20, 20, 4001, dtype=np.float32)
    results = function().apply(v, [])
    assert function.is_monotone == bool((np.diff(results) >= -1e-6).all())


@pytest.mark.torch
@pytest.mark.parametrize("function", Function.__subclasses__(), ids=lambda each: each.__name__)
def test_names_are_those_of_the_frameworks(function: type[Function]) -> None:
    onnx = pytest.importorskip("onnx")
    tflite = pytest.importorskip("tflite")
    torch = pytest.importorskip("torch")
    names = function.names
    assert hasattr(torch.ops.aten, names.torch)
    assert hasattr(torch.ops.aten, f"{names.torch}_") == function.has_inplace
    if names.onnx is not None:
        assert not onnx.defs.get_schema(names.onnx).attributes
    assert names.tflite is None or hasattr(tflite.BuiltinOperator, names.tflite)


def test_rounding_to_decimals_is_refused() -> None:
    with pytest.raises(ValueError, match="2 decimals"):
        Round.of_call({"decimals": 2})


@pytest.mark.parametrize("approximate", [False, True, "none", "tanh"])
def test_gelu_has_the_form_that_is_asked_for(approximate: bool | str) -> None:
    form = Gelu.of_call({"approximate": approximate})
    assert form == Gelu(approximate in (True, "tanh"))
    assert form.kind == (StepKind.GELU_TANH if form.approximate else StepKind.GELU)


def test_a_gelu_of_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="approximate='fast'"):
        Gelu.of_call({"approximate": "fast"})
