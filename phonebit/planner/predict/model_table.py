"""Models by name: of a kernel or a family of layers, and one for those that were not measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from phonebit.errors import InputError
from phonebit.planner.plan.execution_plan import Processor

ALL: Final = "*"
"""Name of the model of all of a processor's samples."""

Model = TypeVar("Model")


@dataclass(frozen=True)
class ModelTable(Generic[Model]):
    """Models of one processor.

    Args:
        models: By kernel or family; ``ALL`` is among them, learnt from all samples together: it
            serves what has too few samples of its own.
    """

    models: Mapping[str, Model]

    def find(self, name: str) -> Model:
        """The model of a kernel or family, or that of all samples."""
        return self.models.get(name) or self.models[ALL]

    def to_dict(self, record_of: Callable[[Model], Any]) -> dict[str, Any]:
        """JSON-ready form."""
        return {name: record_of(model) for name, model in sorted(self.models.items())}

    @classmethod
    def from_dict(cls, record: Any, model_of: Callable[[Any], Model]) -> ModelTable[Model]:
        """The inverse.

        Raises:
            InputError: It is not a table of models, or the one of all samples is missing.
        """
        if not isinstance(record, dict) or ALL not in record:
            raise InputError(f"no table of models with '{ALL}' in it", where="profile: predictors")
        return cls({name: model_of(model) for name, model in record.items()})


def table_of(
    models: Mapping[Processor, ModelTable[Model]], processor: Processor
) -> ModelTable[Model]:
    """A processor's models.

    Raises:
        InputError: It was not measured.
    """
    if processor not in models:
        name = processor.name.lower()
        hint = f"collect samples with --device {name} or gpu+cpu"
        raise InputError(f"the profile knows nothing of the {name}", where="profile", hint=hint)
    return models[processor]


def numbers(record: Any, count: int) -> list[float]:
    """A list of finite numbers of a JSON file.

    Raises:
        InputError: It is something else.
    """
    is_list = isinstance(record, list) and len(record) == count
    if not is_list or not all(
        isinstance(value, int | float) and math.isfinite(value) for value in record
    ):
        raise InputError(
            "damaged model", where="profile", expected=f"{count} numbers", got=repr(record)[:60]
        )
    return [float(value) for value in record]
