"""Layer by layer: each op of the file, fed with the source's own values, judged alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phonebit.converter.interpreter import evaluate_node
from phonebit.converter.ir import Graph, Node
from phonebit.converter.ops import Input
from phonebit.format.records import DataType
from phonebit.network import Network
from phonebit.verification.comparison import compare_bits, compare_reals, unequal
from phonebit.verification.decisions import Decisions
from phonebit.verification.layer_check import LayerCheck, Oracle
from phonebit.verification.rounding import Rounding, rounding_of
from phonebit.verification.sign_chains import sign_chains
from phonebit.verification.source_bits import Bits, MovedBits, PlaneBits, bit_sources
from phonebit.verification.source_trace import Array, SourceTrace
from phonebit.verification.stored_weights import StoredWeights


@dataclass
class Expected:
    """What an op should compute: its float values and its bits, by name.

    ``fed`` are the bits that the next layers read: the same, but of the source's own weights;
    ``levels`` are the quantized values, by their name in the source, whose planes these are;
    ``rounding`` is how much rounded weights change the source's value. ``trace`` is where values
    and bits come from.
    """

    trace: SourceTrace
    oracle: Oracle = "source"
    values: dict[str, Array] = field(default_factory=dict)
    bits: dict[str, Bits] = field(default_factory=dict)
    fed: dict[str, Bits] = field(default_factory=dict)
    levels: dict[str, Array] = field(default_factory=dict)
    rounding: float = 0.0


@dataclass
class Batch:
    """The values of one batch.

    Attributes:
        trace: the source's.
        first_sample: number of the batch's first sample, for messages.
        values: what the ops of the file are fed with, by name: the source's values; where the
            source has none, what the file made of them.
        changed: the source's quantized values with exact zeros, as the file counts them, and all
            after these as the next layers are fed with them: from there the source is replayed.
        rounded: values that the source does not have and that come from rounded weights, and the
            layer that has these.
    """

    trace: SourceTrace
    first_sample: int
    values: dict[str, Array]
    changed: dict[str, Array] = field(default_factory=dict)
    rounded: dict[str, str] = field(default_factory=dict)


class LayerChecker:
    """Compares the engine's ops with the source, over any number of batches.

    Args:
        networks: the loaded file, once a device.
        graph: the same file as an engine graph.
        source: the source graph.
        weights: those that the file stores rounded.
        tolerance: allowed difference of float values, as a share of the layer's largest value.
        is_lower: whether layers of float values run in a lower precision, as asked for.
    """

    def __init__(
        self,
        networks: Sequence[Network],
        graph: Graph,
        source: Graph,
        weights: StoredWeights,
        tolerance: float,
        is_lower: bool,
    ) -> None:
        self._networks = networks
        self._source = source
        self._nodes = [node for node in graph.nodes if not isinstance(node.op, Input)]
        self._graph = graph
        self._tolerance = tolerance
        self._is_lower = is_lower
        self._weights = weights
        shapes = {n: kind.shape for n, kind in graph.types.items() if kind.dtype == DataType.BIT}
        self._bits = bit_sources(source, shapes, graph.origins)
        self._decisions = Decisions(graph, source, sign_chains(source, self._bits))
        self.checks = [
            [LayerCheck(index, layer.name, layer.kind) for index, layer in enumerate(net.layers)]
            for net in networks
        ]

    def mark_constants(self, differing: Mapping[int, list[str]]) -> None:
        """Note at each layer, by its place, which of its constants are not the source's."""
        for checks in self.checks:
            for index, texts in differing.items():
                checks[index].constants = texts
                checks[index].mismatch = True

    def check_batch(self, inputs: dict[str, Array], trace: SourceTrace, first_sample: int) -> None:
        """Run and judge every op on one batch.

        Args:
            inputs: the engine's inputs by name.
            trace: the source's values for the same inputs.
            first_sample: number of the batch's first sample, for messages.
        """
        batch = Batch(trace, first_sample, dict(inputs))
        for index, node in enumerate(self._nodes):
            names = self._networks[0].layers[index].inputs
            operands = [batch.values[name] for name in names]
            expected = self._expected(index, node, batch)
            first: dict[str, Array] = {}
            for network, checks in zip(self._networks, self.checks, strict=True):
                results = network.run_layer(index, operands)
                check = checks[index]
                if node.name in self._weights.layers:
                    check.stored_as = self._weights.layers[node.name].stored_as
                    check.rounding = max(check.rounding, expected.rounding)
                is_lower = self._is_lower and self._has_reals(node)
                rounding = rounding_of(node, operands)
                self._judge(check, results, expected, first_sample, is_lower, rounding)
                first = first or results
                if is_lower:
                    continue  # devices differ, each in its own precision
                apart = sum(unequal(result, first[name]) for name, result in results.items())
                check.other_device += apart
                check.mismatch |= apart > 0
            if first_sample == 0:
                checks_of_layer = [checks[index] for checks in self.checks]
                self._decisions.check(
                    index, operands, expected.trace, self._tolerance, checks_of_layer
                )
            self._pass_on(node, expected, first, batch)

    def _has_reals(self, node: Node) -> bool:
        """Whether an op reads or writes float values, so that its precision can be lower."""
        names = (*node.inputs, *node.outputs)
        return any(self._graph.types[name].dtype == DataType.F32 for name in names)

    def _judge(
        self,
        check: LayerCheck,
        results: dict[str, Array],
        expected: Expected,
        first_sample: int,
        is_lower: bool,
        rounding: Rounding | None,
    ) -> None:
        check.oracle = expected.oracle
        for name, result in results.items():
            origin = (name, first_sample)
            if name in expected.bits:
                bits = expected.bits[name]
                compare_bits(check, result, bits.values, bits.margins, origin, bits.zeros, is_lower)
            else:
                values = expected.values[name]
                compare_reals(check, result, values, self._tolerance, origin, is_lower, rounding)

    def _pass_on(
        self, node: Node, expected: Expected, results: dict[str, Array], batch: Batch
    ) -> None:
        """What the layers after it are fed with."""
        for name in node.outputs:
            bits, source = expected.fed.get(name), self._bits.get(name)
            if self._is_same(name):
                batch.values[name] = batch.trace.values[name]
            elif bits is not None and source is not None:
                batch.values[name] = bits.values
                if isinstance(source, PlaneBits) and bits.zeros is not None and bits.zeros.any():
                    batch.changed[source.value] = source.counted(bits.values)
                elif isinstance(source, PlaneBits) and batch.changed:
                    # What the next layer is fed, be it the source's own or a replayed value.
                    batch.changed[source.value] = expected.levels[source.value]
            else:
                batch.values[name] = results[name]
                if self._rounded_by(node, batch):
                    batch.rounded[name] = self._rounded_by(node, batch)

    def _rounded_by(self, node: Node, batch: Batch) -> str:
        """The layer whose rounded weights are in a layer's results, itself or one before, or ""."""
        if node.name in self._weights.layers:
            return node.name
        return next((batch.rounded[name] for name in node.inputs if name in batch.rounded), "")

    def _expected(self, index: int, node: Node, batch: Batch) -> Expected:
        """The source's values; or what follows from them; or the file's own definition."""
        reads = {name for name in node.outputs if self._is_same(name)}
        reads.update(self._decisions.reads(index))
        for name in node.outputs:
            if name in self._bits:
                reads.update(self._bits[name].reads)
        trace = batch.trace
        kept = [name for name in batch.values if self._is_same(name)]  # what layers are fed
        origin = self._rounded_by(node, batch)
        rounded = self._weights.layers.get(origin)
        if batch.changed:
            wanted = reads | set(rounded.node.inputs if rounded is not None else ())
            trace = trace.replay(batch.changed, kept, wanted)
        own_weights = trace
        expected = Expected(trace)
        if rounded is not None:
            expected.oracle = "source, rounded weights"
            trace, expected.rounding = self._weights.layer_trace(origin, trace, kept, reads)
            expected.trace = trace
        unknown = []
        for name in node.outputs:
            if name in self._bits:
                source = self._bits[name]
                expected.bits[name] = expected.fed[name] = source.bits(trace)
                if rounded is not None:
                    expected.fed[name] = source.bits(own_weights)
                if isinstance(source, PlaneBits):
                    expected.levels[source.value] = own_weights.values[source.value]
                if isinstance(self._bits[name], MovedBits):
                    expected.oracle = "source, rearranged"
            elif self._is_same(name):
                expected.values[name] = trace.values[name]
            else:
                unknown.append(name)
        if unknown:
            margins: dict[str, Array] = {}
            own = evaluate_node(node, [batch.values[name] for name in node.inputs], margins)
            expected.oracle = "engine graph"
            for name in unknown:
                if own[name].dtype == np.int8:
                    expected.bits[name] = Bits(own[name], margins.get(name))
                else:
                    expected.values[name] = own[name]
        return expected

    def _is_same(self, name: str) -> bool:
        """Whether the source has this value, in the same form."""
        return self._source.types.get(name) == self._graph.types[name]
