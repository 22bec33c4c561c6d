"""What a part's time follows over all sizes, before trees correct it.

Trees alone would predict nothing beyond what was measured. Two forms are fitted; of each kernel
that one is kept which predicts layers better that it has not seen (``training_trend``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import Processor
from phonebit.planner.predict.features import CPU_DISPATCH, GEOMETRY, GPU_DISPATCH
from phonebit.planner.predict.model_table import numbers

Numbers = NDArray[np.float64]

FEATURES: Final[dict[Processor, tuple[str, ...]]] = {
    Processor.CPU: GEOMETRY + CPU_DISPATCH,
    Processor.GPU: GEOMETRY + GPU_DISPATCH,
}
"""Names of what the models of a kernel look at; those of all samples look at ``GEOMETRY`` alone."""

POWERS: Final = (
    "operations", "outputs", "input_bytes", "output_bytes", "weight_bytes",
    "work_items", "waves", "work_of_item", "units", "rounds",
)  # fmt: skip
"""Features that times are roughly powers of."""

_OF_BOTH: Final = (
    (),
    ("kernel_operations",),
    ("kernel_operations", "padding_waste"),
    ("outputs",),
    ("outputs", "padding_waste"),
    ("outputs", "steps"),
    ("outputs", "step_tensors"),
    ("outputs", "writes_values"),
    ("input_bytes",),
    ("output_bytes",),
    ("weight_bytes",),
    ("rows",),
)
COSTS: Final[dict[Processor, tuple[tuple[str, ...], ...]]] = {
    Processor.CPU: (*_OF_BOTH, ("units",), ("rounds",), ("rows", "width", "taps")),
    Processor.GPU: (
        *_OF_BOTH,
        ("outputs", "words"),
        ("outputs", "word_rest"),
        ("work_items", "words"),
        ("work_items", "word_rest"),
        ("launches",),
        ("groups",),
        ("work_items",),
        ("waves",),
        ("waves", "group_items", "work_of_item"),
    ),
}
"""Products of features that cost time in proportion; the empty one is what every part costs."""


@dataclass(frozen=True)
class PowerLaw:
    """A product of powers: log(us) is linear in the logarithms of a few features.

    Fits where little is known, such as for all kernels together.

    Args:
        columns: Which features.
        weights: The constant term, then the power of each.
    """

    columns: tuple[int, ...]
    weights: tuple[float, ...]

    def logarithms(self, features: Numbers) -> Numbers:
        """Of predicted microseconds, (N,), for (N, F) features."""
        constant, *powers = self.weights
        logs: Numbers = np.log1p(features[:, self.columns]) @ np.array(powers)
        return logs + constant

    @property
    def reads(self) -> frozenset[int]:
        """Places of features that it looks at."""
        return frozenset(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"columns": list(self.columns), "weights": list(self.weights)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PowerLaw:
        """The inverse.

        Raises:
            InputError: It is something else.
        """
        columns = _places(record.get("columns"))
        return cls(columns, tuple(numbers(record.get("weights"), len(columns) + 1)))


@dataclass(frozen=True)
class CostSum:
    """A sum of costs: so much for every operation, byte, wave, and for the part itself.

    Fits a kernel better, since a part of half the rows then costs half, plus what parts cost.

    Args:
        terms: Products of features, by their places; each costs in proportion.
        costs: Microseconds of one of each, 0 or more.
        least_us: No part takes less.
    """

    terms: tuple[tuple[int, ...], ...]
    costs: tuple[float, ...]
    least_us: float

    def logarithms(self, features: Numbers) -> Numbers:
        """Of predicted microseconds, (N,), for (N, F) features."""
        us = products(features, self.terms) @ np.array(self.costs)
        logs: Numbers = np.log(np.maximum(us, self.least_us))
        return logs

    @property
    def reads(self) -> frozenset[int]:
        """Places of features that it looks at."""
        return frozenset(place for term in self.terms for place in term)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        terms = [list(term) for term in self.terms]
        return {"terms": terms, "costs": list(self.costs), "least_us": self.least_us}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CostSum:
        """The inverse.

        Raises:
            InputError: It is something else.
        """
        terms = record["terms"]
        if not isinstance(terms, list):
            raise InputError("damaged model", where="profile", expected="a list of terms")
        (least_us,) = numbers([record.get("least_us")], 1)
        costs = numbers(record.get("costs"), len(terms))
        if least_us <= 0 or min(costs, default=0.0) < 0:
            raise InputError("damaged model: a cost below 0", where="profile")
        return cls(tuple(map(_places, terms)), tuple(costs), least_us)


Trend = PowerLaw | CostSum


def trend_from_dict(record: Any) -> Trend:
    """The inverse of either's ``to_dict``.

    Raises:
        InputError: It is neither.
    """
    if not isinstance(record, dict):
        raise InputError("damaged model", where="profile", expected="a trend")
    return CostSum.from_dict(record) if "terms" in record else PowerLaw.from_dict(record)


def products(features: Numbers, terms: Sequence[Sequence[int]]) -> Numbers:
    """(N, T): each term's product of features; 1 of the empty term."""
    return np.stack([features[:, tuple(term)].prod(axis=1) for term in terms], axis=1)


def power_columns(processor: Processor, features: int) -> tuple[int, ...]:
    """Places of ``POWERS`` among the first so many features of a processor."""
    names = FEATURES[processor][:features]
    return tuple(place for place, name in enumerate(names) if name in POWERS)


def cost_terms(processor: Processor) -> tuple[tuple[int, ...], ...]:
    """``COSTS`` of a processor, as places of features."""
    names = FEATURES[processor]
    return tuple(tuple(names.index(name) for name in term) for term in COSTS[processor])


def _places(record: Any) -> tuple[int, ...]:
    if not isinstance(record, list) or not all(type(place) is int for place in record):
        raise InputError("damaged model", where="profile", expected="places of features")
    return tuple(record)
