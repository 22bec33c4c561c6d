"""Operators and epilogue operations are found by number and by name, and say all that they must."""

from __future__ import annotations

from enum import IntEnum

import pytest

from phonebit.converter.importers.keras.functions import FUNCTIONS as KERAS_FUNCTIONS
from phonebit.converter.importers.keras.pointwise import ACTIVATIONS
from phonebit.converter.importers.torch.arithmetic import ARITHMETIC
from phonebit.converter.ops import OPERATORS
from phonebit.converter.ops.base import Numbered
from phonebit.converter.ops.epilogue import EPILOGUE_OPS, FUNCTIONS
from phonebit.converter.ops.epilogue.functions import Gelu
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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_importers_know_every_function_by_its_name(name: str) -> None:
    assert {f"math.{name}", f"nn.{name}", name.title()} <= KERAS_FUNCTIONS.keys()
    assert (name in ACTIVATIONS) == FUNCTIONS[name].is_activation
    assert name in ARITHMETIC
    assert FUNCTIONS[name].of_call({}) == FUNCTIONS[name]()


def test_rounding_to_decimals_is_refused() -> None:
    with pytest.raises(ValueError, match="2 decimals"):
        FUNCTIONS["round"].of_call({"decimals": 2})


@pytest.mark.parametrize("approximate", [False, True, "none", "tanh"])
def test_gelu_has_the_form_that_is_asked_for(approximate: bool | str) -> None:
    form = FUNCTIONS["gelu"].of_call({"approximate": approximate})
    assert form == Gelu(approximate in (True, "tanh"))
    assert form.kind == (StepKind.GELU_TANH if form.approximate else StepKind.GELU)


def test_a_gelu_of_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="approximate='fast'"):
        FUNCTIONS["gelu"].of_call({"approximate": "fast"})
