"""What bits are that the source does not name: stored, read again, and told by old files' names."""

from __future__ import annotations

import json

import numpy as np
import pytest
from graphs import Source

from phonebit.converter.convert import convert_graph
from phonebit.converter.ir import Window
from phonebit.converter.ops import Conv2D, Quantize
from phonebit.converter.origins import Hoisted, Level, Origin, Plane, hoisted, origins_in, to_json
from phonebit.converter.reader import graph_from_bytes

ORIGINS: dict[str, Origin] = {
    "q/plane1": Plane("q", 1),
    "q/bits": Plane("q", 0),
    "q/bit2": Level("q", 2),
    "s/hoisted": Hoisted("s", (0,)),
    "s/hoisted/1/hoisted/0:2": Hoisted("s", (1, 0)),
    "q/plane0/hoisted/2": Hoisted(Plane("q", 0), (2,)),
    "a/hoisted/b": Plane("x", 0),
}


def test_they_are_stored_in_the_metadata() -> None:
    metadata = json.loads(json.dumps({"origins": to_json(ORIGINS)}))
    assert origins_in(metadata, [*ORIGINS, "own"]) == ORIGINS
    assert origins_in(metadata, ["s/hoisted"]) == {"s/hoisted": Hoisted("s", (0,))}


def test_files_without_them_tell_by_their_names() -> None:
    named = {name: origin for name, origin in ORIGINS.items() if name != "a/hoisted/b"}
    assert origins_in({}, ORIGINS) == named
    assert origins_in({"origins": {}}, ORIGINS) == {}


@pytest.mark.parametrize(
    "record",
    [
        None, 7, [], {}, {"plane": 0}, {"plane": "0", "of": "q"}, {"plane": -1, "of": "q"},
        {"bit": 0, "of": ["q"]}, {"path": 0, "of": "s"}, {"path": [-1], "of": "s"},
        {"path": [0], "of": {"path": [0], "of": "s"}},
        {"path": [0], "of": {"plane": -1, "of": "q"}},
    ],
)  # fmt: skip
def test_a_record_that_is_none_tells_nothing(record: object) -> None:
    assert origins_in({"origins": {"x": record}}, ["x"]) == {}
    assert origins_in({"origins": record}, ["x"]) == {}


def test_moving_on_makes_the_path_longer() -> None:
    origins: dict[str, Origin] = {"p": Plane("q", 0)}
    origins["p2"] = hoisted(origins, "p", 1)
    assert hoisted(origins, "p2", 0) == Hoisted(Plane("q", 0), (1, 0))
    assert hoisted(origins, "sign", 2) == Hoisted("sign", (2,))


def test_a_plane_is_known_where_its_name_was_taken() -> None:
    """A layer of the source has the name that the plane would have."""
    net = Source((4, 4, 8))
    taken = net.add("q/plane0", Conv2D(np.ones((8, 1, 1, 8), np.float32), Window((1, 1))), "x")
    two = Quantize(np.float32([0.5, 1.5]), np.float32([0, 1, 2]))
    q = net.add("q", two, taken)
    weights = np.where(np.arange(64).reshape(8, 1, 1, 8) % 3, 1, -1).astype(np.float32)
    content = convert_graph(net.done(net.add("c", Conv2D(weights, Window((1, 1))), q))).content
    assert set(graph_from_bytes(content).origins.values()) == {Plane("q", 0), Plane("q", 1)}
