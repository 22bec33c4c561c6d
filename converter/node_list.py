"""A graph's nodes in execution order, which know who defines and who reads each value.

Passes ask for the nodes around a node, for each node. So that a pass takes a time that grows as the
network does, the list keeps what it is asked, and follows the changes of single nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phonebit.converter.ir import Node


class NodeList(list["Node"]):
    """The nodes of one graph.

    Nodes are put in and taken out by index or slice, and appended; the inputs of a node that is in
    the list are changed by ``rewire``.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__(nodes)
        self._readers: dict[str, dict[int, Node]] = {}
        self._present: Counter[int] = Counter()
        self._defined: Counter[str] = Counter()
        self._places: dict[str, int] = {}
        self._shift = 0
        for place, node in enumerate(self):
            self._add(node, place)

    def append(self, node: Node) -> None:
        """Puts a node after all others."""
        super().append(node)
        self._add(node, len(self) - 1)

    def __setitem__(self, place: Any, value: Any) -> None:
        """Puts one node, or those of a slice, in place of others."""
        one = not isinstance(place, slice)
        old, new = ([self[place]], [value]) if one else (self[place], list(value))
        super().__setitem__(place, value if one else new)
        for node in old:
            self._remove(node)
        first = place.start or 0 if isinstance(place, slice) else place
        for offset, node in enumerate(new):
            self._add(node, first + offset)

    def __delitem__(self, place: Any) -> None:
        """Takes out one node, or those of a slice."""
        old = self[place] if isinstance(place, slice) else [self[place]]
        super().__delitem__(place)
        for node in old:
            self._remove(node)

    def insert(self, place: Any, node: Node) -> None:
        """Puts a node in front of another."""
        self[place:place] = [node]

    def defines(self, value: str) -> bool:
        """Whether a node defines ``value``."""
        return self._defined[value] > 0

    def readers(self, value: str) -> list[Node]:
        """The nodes that read ``value``, in execution order."""
        found = list(self._readers.get(value, {}).values())
        return found if len(found) < 2 else sorted(found, key=self.place)

    def rewire(self, node: Node, inputs: list[str]) -> None:
        """Gives a node of the list other inputs."""
        for name in node.inputs:
            self._readers[name].pop(id(node), None)
        node.inputs = inputs
        for name in inputs:
            self._readers.setdefault(name, {})[id(node)] = node

    def producer(self, value: str) -> Node:
        """The node that defines ``value``.

        Raises:
            KeyError: There is none.
        """
        if self.defines(value):
            return self[self._find(value, lambda node: value in node.outputs)]
        raise KeyError(value)

    def place(self, node: Node) -> int:
        """Where this very node is.

        Raises:
            KeyError: It is not there.
        """
        if id(node) not in self._present:
            raise KeyError(node.name)
        return self._find(node.outputs[0], lambda other: other is node)

    def _find(self, value: str, fits: Callable[[Node], bool]) -> int:
        """The place of a node that fits, looked for from where ``value`` was defined once.

        That is shifted as the last one was: passes add and remove nodes on their way along a chain.
        """
        noted, count = self._places[value], len(self)
        start = min(max(noted + self._shift, 0), count)
        for distance in range(count + 1):
            for place in (start - distance, start + distance):
                if 0 <= place < count and fits(self[place]):
                    self._shift = place - noted
                    return place
        raise KeyError(value)

    def _add(self, node: Node, place: int) -> None:
        self._present[id(node)] += 1
        for name in node.outputs:
            self._defined[name] += 1
            self._places[name] = place - self._shift
        for name in node.inputs:
            self._readers.setdefault(name, {})[id(node)] = node

    def _remove(self, node: Node) -> None:
        for name in node.outputs:
            self._defined[name] -= 1
        self._present[id(node)] -= 1
        if self._present[id(node)] == 0:
            del self._present[id(node)]
            for name in node.inputs:
                self._readers[name].pop(id(node), None)
