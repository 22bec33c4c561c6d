"""Passes that are cancelled, and the processors and hints that networks are loaded with."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phonebit import CancelledError, InputError, Network, PhoneBitError
from phonebit.converter.writer import to_bytes
from support.golden import integer_inputs
from support.stress_graphs import many_parts

GRAPH = many_parts(24, 96)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.pbit"
    path.write_bytes(to_bytes(GRAPH))
    return path


def test_cancel_ends_an_inference_and_no_later_one(file: Path) -> None:
    network = Network.load(file, device="cpu:scalar", threads=1)
    expected = network.forward(integer_inputs(GRAPH, 1, 3))
    long = integer_inputs(GRAPH, 200, 3)
    ended: list[type[BaseException] | None] = []

    def run() -> None:
        try:
            network.forward(long)
            ended.append(None)
        except PhoneBitError as error:
            ended.append(type(error))

    worker = threading.Thread(target=run)
    worker.start()
    while worker.is_alive():
        time.sleep(0.05)  # a cancel before the inference has begun would not concern it
        network.cancel()
    worker.join()
    assert ended == [CancelledError]
    network.cancel()
    assert_same(network.forward(integer_inputs(GRAPH, 1, 3)), expected)


def assert_same(got: Any, expected: Any) -> None:
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("hint", ["none", "performance", "power"])
def test_hints_do_not_change_results(file: Path, hint: Any) -> None:
    x = integer_inputs(GRAPH, 2, 1)
    expected = Network.load(file, device="cpu", threads=1).forward(x)
    network = Network.load(file, device="cpu", threads=3, hint=hint)
    for _ in range(3):
        assert_same(network.forward(x), expected)


def test_threads_follow_from_the_chosen_processors(file: Path) -> None:
    mine = os.sched_getaffinity(0)
    one = max(mine)
    network = Network.load(file, device="cpu", cores=[one])
    x = integer_inputs(GRAPH, 1, 1)
    expected = Network.load(file, device="cpu").forward(x)
    assert_same(network.forward(x), expected)
    assert os.sched_getaffinity(0) == mine
    assert network.threads == 1
    assert Network.load(file, device="cpu", cores=sorted(mine)).threads == len(mine)
    for kind in ("any", "big", "little"):
        assert 1 <= Network.load(file, device="cpu", cores=kind).threads <= len(mine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cores": "huge"}, r"cores: .*'big'.*'huge'"),
        ({"cores": []}, r"cores: .*\[\]"),
        ({"cores": [100000]}, "processor 100000"),
        ({"hint": "hurry"}, "hint: .*'performance'.*'hurry'"),
    ],
)
def test_unknown_processors_and_hints_are_refused(
    file: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        Network.load(file, device="cpu", **options)
