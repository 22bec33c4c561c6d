"""The float twin of a network as a float engine would run it, in PhoneBit."""

from __future__ import annotations

from benchmarks.peers.formats.folding import fold_batch_norm
from phonebit.converter.convert import convert_graph
from phonebit.models.networks import INPUT_RANGE, NETWORKS


def float_twin(name: str) -> bytes:
    """The twin as a ``.pbit`` file that reads reals; batch normalizations are part of the weights.

    ``phonebit models NAME --form float`` keeps their scales beside the weights: the same layers, a
    little larger and slower than what the float engines of other people deploy.
    """
    graph = fold_batch_norm(NETWORKS[name]("float"))
    return convert_graph(graph, input_range=INPUT_RANGE, check=False).content
