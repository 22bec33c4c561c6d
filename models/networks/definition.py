"""What a network definition says of itself before its weights are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from phonebit.converter.convert import InputDtype
from phonebit.converter.cost import macs, parameter_count, total_macs
from phonebit.converter.ir import Graph, Shape
from phonebit.models.networks.builder import Form


@dataclass(frozen=True)
class NetworkFacts:
    """A network in numbers.

    Attributes:
        input_shape: (height, width, channels).
        input_dtype: what the binary network's file reads: "u8" (levels of an image) or "f32".
        output_shape: (height, width, channels).
        parameters: trained numbers, statistics of batch normalizations included.
        macs: multiply-accumulates for one image.
        binary_macs: those of them that multiply -1/+1 by -1/+1 in the binary network.
        source: the paper that it comes from.
    """

    input_shape: Shape
    input_dtype: InputDtype
    output_shape: Shape
    parameters: int
    macs: int
    binary_macs: int
    source: str

    @property
    def binary_mac_share(self) -> float:
        """Share of the multiply-accumulates that is binary, 0..1."""
        return self.binary_macs / self.macs


@dataclass(frozen=True)
class Definition:
    """A network that can be built: ``definition("binary")`` is its source graph.

    Attributes:
        layers: function that builds the graph in a form.
        input_dtype: what the binary network's file reads: "u8" where the first weights are -1 and
            +1, so that sums over an image's levels are integers; else "f32".
        source: the paper that it comes from.
    """

    layers: Callable[[Form], Graph]
    input_dtype: InputDtype
    source: str

    def __call__(self, form: Form = "binary") -> Graph:
        """The source graph with seeded weights; see ``NetworkBuilder`` for the forms."""
        return self.layers(form)

    def facts(self) -> NetworkFacts:
        """Shapes and costs, without drawing a weight."""
        graph = self.layers("outline")
        binary = sum(macs(graph, graph.producer(name)) for name in graph.expected_binary)
        return NetworkFacts(
            graph.types[graph.inputs[0]].shape,
            self.input_dtype,
            graph.types[graph.outputs[0]].shape,
            sum(parameter_count(node.op) for node in graph.nodes),
            total_macs(graph),
            binary,
            self.source,
        )
