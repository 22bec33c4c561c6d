"""Boosted regression trees as plain arrays: evaluated with NumPy, kept as JSON, no pickles.

LightGBM trains them (``training.py``); whoever plans with a profile needs only this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.errors import InputError


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of trees; the nodes of all of them lie in one table, each before its sides.

    A node with ``feature[i] >= 0`` sends x to ``i + 1`` where ``x[feature[i]] <= number[i]``, else
    to ``right[i]``. A leaf has feature -1, and its value is ``number[i]``.

    Args:
        roots: First node of each tree.
        feature: Of each node.
        number: Of each node.
        right: Of each node that is no leaf.

    Raises:
        InputError: The arrays are no such table: evaluation would read outside of it, or not end.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    number: NDArray[np.float64]
    right: NDArray[np.int32]

    def __post_init__(self) -> None:
        count = len(self.feature)
        inner = np.flatnonzero(self.feature >= 0)
        if not len(self.number) == len(self.right) == count:
            raise InputError("damaged trees: arrays of different lengths")
        if not count or ((self.roots < 0) | (self.roots >= count)).any():
            raise InputError("damaged trees: roots outside of the table")
        right = self.right[inner]
        if ((right <= inner) | (right >= count)).any():
            raise InputError("damaged trees: a node that leads back, or nowhere")

    def predict(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the leaves that each row falls into: (N,), of (N, features) finite numbers."""
        elements = np.ascontiguousarray(x).ravel()
        row_begins = np.arange(len(x), dtype=np.intp)[:, None] * x.shape[1]
        node = np.broadcast_to(self.roots.astype(np.intp), (len(x), len(self.roots)))
        column = self.feature.take(node)
        while (column >= 0).any():
            value = elements.take(row_begins + np.maximum(column, 0))
            node = self._ways.take(2 * node + (value <= self.number.take(node)))
            column = self.feature.take(node)
        total: NDArray[np.float64] = self.number.take(node).sum(axis=1)
        return total

    @cached_property
    def _ways(self) -> NDArray[np.intp]:
        """Of node i: right at 2 i, left at 2 i + 1; both ways of a leaf lead to itself."""
        own = np.arange(len(self.feature))
        sides = np.stack([self.right, own + 1], axis=1)
        return np.where(self.feature[:, None] < 0, own[:, None], sides).astype(np.intp).ravel()

    @classmethod
    def from_lightgbm(cls, model: Mapping[str, Any]) -> Trees:
        """The trees of ``lightgbm.Booster.dump_model()``, trained with ``use_missing=False``."""
        roots: list[int] = []
        nodes: list[tuple[int, float, int]] = []
        for tree in model["tree_info"]:
            roots.append(len(nodes))
            nodes += _nodes(tree["tree_structure"], len(nodes))
        feature, number, right = zip(*nodes, strict=True)
        return cls(
            np.array(roots, np.int32),
            np.array(feature, np.int16),
            np.array(number, np.float64),
            np.array(right, np.int32),
        )


def _nodes(node: Mapping[str, Any], place: int) -> list[tuple[int, float, int]]:
    """Feature, number and right side of a node and of all below it; the first one is at a place."""
    if "split_feature" not in node:
        return [(-1, node["leaf_value"], place)]
    if node["decision_type"] != "<=":
        raise InputError("a tree's decision", expected="<=", got=node["decision_type"])
    left = _nodes(node["left_child"], place + 1)
    behind = place + 1 + len(left)
    own = (node["split_feature"], node["threshold"], behind)
    return [own, *left, *_nodes(node["right_child"], behind)]
