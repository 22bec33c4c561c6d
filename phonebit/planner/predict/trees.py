"""Boosted regression trees as plain arrays: evaluated with NumPy, kept as JSON, no pickles.

LightGBM trains them (``training.py``); whoever plans with a profile needs only this.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError
from phonebit.text_files import DAMAGED

_TYPES: Final = {
    "roots": "<i4",
    "feature": "<i2",
    "threshold": "<f8",
    "left": "<i4",
    "right": "<i4",
    "value": "<f8",
}


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees; the nodes of all of them lie in one table.

    A node with ``feature[i] >= 0`` sends x to ``left[i]`` where ``x[feature[i]] <= threshold[i]``,
    else to ``right[i]``, both larger than i. A leaf has feature -1 and points to itself.

    Args:
        features: How many numbers x has.
        depth: Most decisions on a way from a root to a leaf.
        roots: First node of each tree.
        feature: Of each node.
        threshold: Likewise; not a number in leaves.
        left: Likewise.
        right: Likewise.
        value: Of leaves; 0 elsewhere.
    """

    features: int
    depth: int
    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]

    def predict(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the leaves that each row falls into.

        Args:
            x: (N, features) finite numbers.

        Returns:
            (N,).
        """
        elements = np.ascontiguousarray(x).ravel()
        row_begins = np.arange(len(x), dtype=np.intp)[:, None] * x.shape[1]
        node = np.broadcast_to(self.roots.astype(np.intp), (len(x), len(self.roots)))
        for _ in range(self.depth):
            value = elements.take(row_begins + self._columns.take(node))
            node = self._ways.take(2 * node + (value <= self.threshold.take(node)))
        total: NDArray[np.float64] = self.value.take(node).sum(axis=1)
        return total

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """Leaves decide by feature 0, which does not matter: both ways lead to themselves."""
        return np.maximum(self.feature, 0).astype(np.intp)

    @cached_property
    def _ways(self) -> NDArray[np.intp]:
        """Of node i: right at 2 i, left at 2 i + 1."""
        return np.stack([self.right, self.left], axis=1).astype(np.intp).ravel()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: arrays as base64 of little-endian numbers."""
        arrays = {
            name: base64.b64encode(getattr(self, name).astype(dtype).tobytes()).decode()
            for name, dtype in _TYPES.items()
        }
        return {"features": self.features, "depth": self.depth, **arrays}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trees:
        """The inverse.

        Raises:
            InputError: Something is missing, or the numbers are no trees.
        """
        try:
            arrays = {
                name: np.frombuffer(base64.b64decode(record[name], validate=True), dtype)
                for name, dtype in _TYPES.items()
            }
            trees = cls(int(record["features"]), int(record["depth"]), **arrays)
        except DAMAGED as error:
            raise InputError("damaged trees", where="profile", got=str(error)) from None
        problem = trees._problem()
        if problem:
            raise InputError(f"damaged trees: {problem}", where="profile")
        return trees

    def _problem(self) -> str:
        count = len(self.feature)
        node = np.arange(count)
        leaf = self.feature == -1
        sides = (self.left, self.right)
        if any(len(array) != count for array in (self.threshold, self.value, *sides)):
            return "arrays of different lengths"
        if not count or ((self.roots < 0) | (self.roots >= count)).any():
            return "roots outside of the table"
        if ((self.feature < -1) | (self.feature >= self.features)).any():
            return "features outside of the row"
        if any((side[leaf] != node[leaf]).any() for side in sides):
            return "a leaf that leads on"
        if any(((side <= node) | (side >= count))[~leaf].any() for side in sides):
            return "a node that leads back, or nowhere"
        return "" if 0 <= self.depth <= count else "a depth that cannot be"

    @classmethod
    def from_lightgbm(cls, model: Mapping[str, Any]) -> Trees:
        """The trees of ``lightgbm.Booster.dump_model()``, trained with ``use_missing=False``.

        Raises:
            InputError: A decision has another form than ``<=``.
        """
        table = _Table()
        for tree in model["tree_info"]:
            table.roots.append(len(table.rows))
            table.add(tree["tree_structure"], 0)
        columns = zip(*table.rows, strict=True)
        names = ("feature", "threshold", "left", "right", "value")
        arrays = {
            name: np.array(column, _TYPES[name])
            for name, column in zip(names, columns, strict=True)
        }
        roots = np.array(table.roots, _TYPES["roots"])
        return cls(int(model["max_feature_idx"]) + 1, table.depth, roots, **arrays)


class _Table:
    """Nodes in the order of a walk that takes a node before its sides."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.rows: list[tuple[int, float, int, int, float]] = []
        self.depth = 0

    def add(self, node: Mapping[str, Any], depth: int) -> int:
        place = len(self.rows)
        self.depth = max(self.depth, depth)
        if "split_feature" not in node:
            self.rows.append((-1, float("nan"), place, place, float(node["leaf_value"])))
            return place
        if node["decision_type"] != "<=":
            raise InputError("a tree's decision", expected="<=", got=node["decision_type"])
        self.rows.append(
            (0, 0.0, 0, 0, 0.0)
        )  # its sides' places are known only when they are there
        left = self.add(node["left_child"], depth + 1)
        right = self.add(node["right_child"], depth + 1)
        feature, threshold = int(node["split_feature"]), float(node["threshold"])
        self.rows[place] = (feature, threshold, left, right, 0.0)
        return place
