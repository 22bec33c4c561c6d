"""Class names of a data set matched with the classes of a network."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from phonebit.errors import InputError

NUMBER: Final = re.compile("[0-9]{1,9}")
SHOWN = 5
"""Unknown names in a message."""


@dataclass(frozen=True)
class ClassNames:
    """What the classes of a network are called.

    Attributes:
        count: classes of the network.
        labels: their names; none where the file has none.
        file: the network's path, for messages.
    """

    count: int
    labels: Sequence[str]
    file: str

    def match(self, names: Collection[str], where: str) -> ClassMatch:
        """Find the class of each name of a data set.

        The names are the file's labels, also in other spelling; or else numbers of classes; or else
        as many as there are classes, which are then in the order of their names.

        Args:
            names: of the data set; repeated ones count once.
            where: the data set, for messages.

        Raises:
            InputError: if they are none of these.
        """
        known = {_plain(label): index for index, label in enumerate(self.labels)}
        known |= {label: index for index, label in enumerate(self.labels)}
        unknown = sorted(name for name in set(names) if _find(known, name) is None)
        if not unknown:
            indices = {name: _find(known, name) for name in names}
            return ClassMatch({n: i for n, i in indices.items() if i is not None}, "labels")
        numbers = {name: int(name) for name in names if NUMBER.fullmatch(name)}
        if len(numbers) == len(set(names)) and max(numbers.values()) < self.count:
            return ClassMatch(numbers, "numbers")
        if len(unknown) == len(set(names)) == self.count:
            return ClassMatch({name: i for i, name in enumerate(sorted(set(names)))}, "order")
        shown = ", ".join(repr(name) for name in unknown[:SHOWN])
        more = len(unknown) - SHOWN
        raise InputError(
            "these are no classes of the network",
            where=where,
            expected=f"the labels of {self.file}, {self._labels_text()}; or numbers below "
            f"{self.count}; or {self.count} names, which are then in the order of the classes",
            got=f"{shown} and {more} more" if more > 0 else shown,
            hint="rename them, or convert the network with --labels",
        )

    def _labels_text(self) -> str:
        if not self.labels:
            return "which has none"
        rest = ", ..." if len(self.labels) > SHOWN else ""
        return "e.g. " + ", ".join(repr(label) for label in self.labels[:SHOWN]) + rest

    def name(self, index: int) -> str:
        """A class's label, or "class N"."""
        return self.labels[index] if index < len(self.labels) else f"class {index}"


@dataclass(frozen=True)
class ClassMatch:
    """Which class each name stands for, and how that was found."""

    index: dict[str, int]
    by: Literal["labels", "numbers", "order"]


def _find(known: dict[str, int], name: str) -> int | None:
    return known.get(name, known.get(_plain(name)))


def _plain(name: str) -> str:
    """``T-Shirt``, ``t_shirt`` and ``t shirt`` are one name."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
