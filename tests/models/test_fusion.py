"""How well networks fuse: kernels per inference and bytes that it moves are golden numbers.

``fusion_golden.json`` holds them. A change for the better is written down by

    PYTHONPATH=tests python -P tests/models/test_fusion.py NAME ...

and a change for the worse fails. No separate batch normalization, sign, packing, transpose or cast
may survive: whatever is neither a convolution, a pool nor a residual sum has to be named below.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phonebit.converter.convert import convert_graph
from phonebit.converter.cost import bytes_moved
from phonebit.converter.importers.sources import ImportOptions, import_source
from phonebit.converter.ir import Graph
from phonebit.converter.ops import Input

GOLDEN = Path(__file__).with_name("fusion_golden.json")
MAY_SURVIVE = {"Conv2D", "BinaryConv2D", "MaxPool2D", "AveragePool2D", "Softmax"}
ALSO = {"reactnet_mobilenet": {"Concat", "Elementwise"}}
"""ReActNet doubles its channels by concatenating two sums, and activates the result."""


def torch_graph(name: str) -> Graph:
    """A published PyTorch network with statistics as training leaves them.

    Those that it is created with keep zeros zero from layer to layer, and signs of zeros cost a
    second bit-plane.
    """
    from support.torch_networks import NETWORKS

    network = NETWORKS[name].build("random", seed=7, small=False)
    return import_source(network, ImportOptions(input_shape=(1, *NETWORKS[name].shape)))


def zoo_graph(name: str) -> Graph:
    """A network of larq-zoo with the weights that it is created with."""
    import larq_zoo

    family = larq_zoo.sota if name.startswith("QuickNet") else larq_zoo.literature
    return import_source(getattr(family, name)(weights=None), ImportOptions())


def fused(graph: Graph) -> dict[str, Any]:
    """What a network comes to in the engine."""
    engine = convert_graph(graph, check=False).engine
    kinds = Counter(
        type(node.op).__name__ for node in engine.nodes if not isinstance(node.op, Input)
    )
    return {
        "kernels": kinds.total(),
        "bytes_moved": bytes_moved(engine),
        "kinds": dict(sorted(kinds.items())),
    }


def assert_fuses(name: str, make: Callable[[str], Graph]) -> None:
    found = fused(make(name))
    assert found == json.loads(GOLDEN.read_text())[name]
    assert set(found["kinds"]) <= MAY_SURVIVE | ALSO.get(name, set())


@pytest.mark.torch
@pytest.mark.parametrize(
    "name",
    [
        "birealnet18",
        "reactnet_resnet18",
        "reactnet_mobilenet",
        pytest.param("phonebit_vgg16", marks=pytest.mark.slow),
    ],
)
def test_pytorch_networks_fuse_as_before(name: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    assert_fuses(name, torch_graph)


@pytest.mark.framework
@pytest.mark.parametrize("name", ["BiRealNet", "QuickNet"])
def test_larq_networks_fuse_as_before(name: str) -> None:
    pytest.importorskip("larq_zoo", reason="larq-zoo is not installed")
    assert_fuses(name, zoo_graph)


if __name__ == "__main__":
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
    for network in sys.argv[1:]:
        make = zoo_graph if network[0].isupper() else torch_graph
        golden[network] = fused(make(network))
    GOLDEN.write_text(json.dumps(dict(sorted(golden.items())), indent=2) + "\n")
