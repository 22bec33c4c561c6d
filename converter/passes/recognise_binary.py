"""Convolutions of quantized values with two-valued weights become binary convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phonebit.converter.ir import FloatArray, Graph, Node, Window
from phonebit.converter.ops import BinaryConv2D, BinaryDepthwiseConv2D, Concat, Conv2D, Elementwise
from phonebit.converter.ops.epilogue import AddTensor, Epilogue, ScaleBias
from phonebit.converter.passes.base import (
    Pass,
    PassLog,
    fresh_value,
    refresh_types,
    replace_node,
)
from phonebit.converter.passes.binary_form import BinaryForm, binary_form
from phonebit.converter.passes.planes import Planes, planes_of
from phonebit.converter.passes.two_valued import all_ones, factor_weights, split_scale
from phonebit.format.records import DataType


class RecogniseBinary(Pass):
    """Puts convolutions into their binary form (passes/binary_form.py).

    Given::

        y = conv(bits, alpha[o] * {-1, +1}, pad_value in {-1, 0, 1})
        q = conv(offset + s * (b0 + b1), alpha[o] * {-1, +1})          # a quantizer's planes
        z = conv(floats, alpha[o] * {-1, +1})

    Result::

        y/sum = binary_conv(bits, {-1, +1}); y = y/sum * alpha + 0     # the scale only if needed
        q/planes = concat(b0, b1)                                      # twice the channels,
        q/sum = binary_conv(q/planes, the same weights twice)          # one popcount over both
        q = q/sum * (alpha * s) + sum(w) * offset
        z/sum = conv(floats, {-1, +1}); z = z/sum * alpha + 0          # weights of one bit each

    Weights of three values are two sign arrays and take the same road. What varies from pixel to
    pixel besides the integers (AdaBin's window sums, offsets at the border) comes from a small
    float convolution and is added. What stays float is noted with the reason.
    """

    rounds = True

    def run(self, graph: Graph, log: PassLog) -> None:
        """Rewrites ``graph`` in place."""
        for node in list(graph.nodes):
            if not isinstance(node.op, Conv2D) or node.value is None:
                continue
            if graph.types[node.inputs[0]].dtype == DataType.U8:
                log.not_binary[node.name] = "binary weights on an 8-bit input: exact integers"
                continue
            planes = planes_of(graph, node.inputs[0])
            if planes is None:
                self._split_real(graph, node, node.op, log)
                continue
            form = binary_form(node.op, planes)
            if isinstance(form, str):
                log.not_binary[node.name] = form
                continue
            added = _Rewrite(graph, node, node.op, planes, form).nodes()
            replace_node(graph, node, *added)
            for maps in added:
                if isinstance(maps.op, Conv2D):
                    log.not_binary[maps.name] = "what window sums and the border add"
        refresh_types(graph)

    @staticmethod
    def _split_real(graph: Graph, node: Node, op: Conv2D, log: PassLog) -> None:
        """Two-valued weights on a real-valued input: stored as bits, at least."""
        factors = split_scale(op.weights)
        if factors is None:
            log.not_binary[node.name] = "full precision: neither input nor weights are two-valued"
            return
        log.not_binary[node.name] = "binary weights on a real-valued input"
        alpha, signs = factors
        # One tap is always "two-valued"; splitting it would only cost a step.
        if op.weights[0].size == 1 or all_ones(alpha):
            return
        raw = fresh_value(graph, f"{node.value}/sum")
        step = ScaleBias(alpha, np.zeros_like(alpha))
        scale = Node(f"{node.name}/scale", Elementwise(Epilogue([step])), [raw], value=node.value)
        inner = replace(node, op=replace(op, weights=signs), value=raw)
        replace_node(graph, node, inner, scale)


@dataclass
class _Rewrite:
    """The nodes that one convolution becomes."""

    graph: Graph
    node: Node
    op: Conv2D
    planes: Planes
    form: BinaryForm

    def nodes(self) -> list[Node]:
        """In execution order; the last defines the convolution's value."""
        alpha, constant = self.form.factors.alpha, self.form.constant
        trivial = all_ones(alpha) and not constant.any() and not self.form.needs_maps
        total = self._name("sum")
        if trivial:
            return self._integers(self._value)
        # The maps come first, so that fusion lets the larger convolution add them.
        added = self._maps() if self.form.needs_maps else []
        added += self._integers(total)
        scaled = self._name("scaled") if self.form.needs_maps else self._value
        step = ScaleBias(alpha, constant)
        name = f"{self.node.name}/scale"
        added.append(Node(name, Elementwise(Epilogue([step])), [total], value=scaled))
        if self.form.needs_maps:
            name, op = f"{self.node.name}/shift", Elementwise(Epilogue([AddTensor(1)]))
            added.append(Node(name, op, [scaled, self._name("maps")], value=self._value))
        return added

    @property
    def _value(self) -> str:
        assert self.node.value is not None
        return self.node.value

    def _name(self, suffix: str) -> str:
        return fresh_value(self.graph, f"{self._value}/{suffix}")

    def _integers(self, total: str) -> list[Node]:
        """sum_ij u_i v_j conv(b_i, w_j)."""
        planes, factors = self.planes, self.form.factors
        pairs = [(plane, signs) for plane in range(planes.count) for signs in factors.signs]
        units = [planes.units[i] * unit for i in range(planes.count) for unit in factors.units]
        if len(pairs) == 1:
            return [self._convolution(self.node.name, planes.bits[0], pairs[0], total)]
        if self.op.groups == 1 and not planes.binary and not factors.has_units:
            stacked = Node(
                self._name("planes"), Concat(), [planes.bits[plane] for plane, _ in pairs]
            )
            stacked.value = stacked.name
            weights = np.concatenate([signs for _, signs in pairs], axis=3)
            return [stacked, self._convolution(self.node.name, stacked.name, (0, weights), total)]
        # Channels of a group must stay together, and planes of different units apart.
        added: list[Node] = []
        last = ""
        for index, (plane, signs) in enumerate(pairs):
            name = self.node.name if index == 0 else f"{self.node.name}/plane{index}"
            own = self._name(f"sum{index}")
            added.append(self._convolution(name, planes.bits[plane], (plane, signs), own))
            unit = units[index].astype(np.float32)
            if not all_ones(unit):
                step, counted = ScaleBias(unit, np.zeros_like(unit)), own
                own = self._name(f"weighted{index}")
                op = Elementwise(Epilogue([step]))
                added.append(Node(f"{name}/weight", op, [counted], value=own))
            if index:
                result = total if index == len(pairs) - 1 else self._name(f"partial{index}")
                op = Elementwise(Epilogue([AddTensor(1)]))
                added.append(Node(f"{name}/add", op, [own, last], value=result))
                own = result
            last = own
        return added

    def _convolution(
        self, name: str, bits: str, filters: tuple[int, FloatArray], value: str
    ) -> Node:
        """Of ``bits`` with the signs for a plane, which are padded as it is."""
        weights, pad_value = filters[1].astype(np.int8), self.form.pads[filters[0]]
        op: BinaryConv2D | BinaryDepthwiseConv2D
        channels = self.planes.offset.size
        if self.op.groups == channels == len(weights) and weights.shape[3] == 1:
            op = BinaryDepthwiseConv2D(weights, self.op.window, pad_value)
        else:
            op = BinaryConv2D(weights, self.op.window, self.op.groups, pad_value)
        return replace(self.node, name=name, op=op, inputs=[bits], value=value)

    def _maps(self) -> list[Node]:
        """What varies from pixel to pixel, from a map of channel sums and of ones.

        A 1x1 binary convolution with filters of +1 gives each pixel's channel sum over all planes;
        scaled by 0 and shifted by 1 it gives a map of ones, whose zero padding marks what lies in
        the map. One small convolution of the two maps is all that depends on the output channel.
        """
        border, beta = self.form.border, self.form.factors.beta
        columns = []
        if beta.any():
            kernel = (len(beta), *self.op.window.kernel)
            columns.append(np.broadcast_to(beta[:, None, None], kernel))
        if border is not None:
            columns.append(border)
        weights = np.stack(columns, axis=3).astype(np.float32)
        scale = np.array([1.0] * bool(beta.any()) + [0.0] * (border is not None), np.float32)
        sums, features, maps = self._name("pixel_sums"), self._name("pixels"), self._name("maps")
        return [
            *self._pixel_sums(len(scale), bool(beta.any()), sums),
            Node(features, Elementwise(Epilogue([ScaleBias(scale, 1 - scale)])), [sums], features),
            Node(maps, Conv2D(weights, self.op.window), [features], maps),
        ]

    def _pixel_sums(self, count: int, of_all: bool, value: str) -> list[Node]:
        """``count`` times each pixel's sum over all planes, or if not ``of_all``, over any."""
        planes = self.planes
        if not of_all:
            planes = replace(planes, bits=planes.bits[:1], scales=planes.scales[:1])
        ones = np.ones((count, 1, 1, planes.offset.size), np.float32)
        factors, none = factor_weights(ones), np.zeros(count, np.float32)
        assert factors is not None
        form = BinaryForm(factors, [0] * planes.count, none, None)
        node = Node(value, self.op, [], value)
        return _Rewrite(self.graph, node, Conv2D(ones, Window((1, 1))), planes, form).nodes()
