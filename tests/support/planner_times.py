"""Analytic times and small networks for the planner's tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from phonebit.converter.ir import Graph, Window
from phonebit.converter.ops import BinaryConv2D, Concat, Elementwise, MaxPool2D
from phonebit.converter.ops.epilogue import AddTensor, Epilogue
from phonebit.converter.writer import to_bytes
from phonebit.format.contents import FileContents
from phonebit.format.reader import parse_contents
from phonebit.planner import OutputPart
from phonebit.planner.search.network_graph import NetworkGraph
from phonebit.planner.search.stages import LayerParts
from support.engine_net import SAME3, Net, sign_of


@dataclass
class Speed:
    """A processor: microseconds for starting a part, and for a thousand outputs' products.

    ``block`` channels cost as much as one of them, as with real kernels.
    """

    start_us: float
    per_thousand_us: float
    block: int = 1


@dataclass
class AnalyticTimes:
    """Times by formula; counts how many parts were asked for."""

    graph: NetworkGraph
    cpu: Speed
    gpu: Speed
    asked: int = field(default=0)

    def microseconds(self, parts: Sequence[LayerParts]) -> list[tuple[float, float]]:
        self.asked += len(parts)
        return [
            (self._of(entry.layer, entry.cpu, self.cpu), self._of(entry.layer, entry.gpu, self.gpu))
            for entry in parts
        ]

    def _of(self, index: int, part: OutputPart | None, speed: Speed) -> float:
        if part is None:
            return 0.0
        layer = self.graph.layers[index]
        channels = math.ceil((part.channel_end - part.channel_begin) / speed.block) * speed.block
        outputs = (part.row_end - part.row_begin) * layer.shape[1] * channels
        products = 1
        if layer.geometry.can_cut_channels and not layer.geometry.reads_same_channels:
            products = layer.geometry.kernel_h**2 * self.graph.tensors[layer.operands[0]].channels
        return speed.start_us + outputs * products / 1000 * speed.per_thousand_us


@dataclass
class SyncCosts:
    """A constant, and bytes at a rate."""

    sync_us: float = 0.0
    bytes_per_us: float = math.inf

    def microseconds(self, bytes_to_cpu: int, bytes_to_gpu: int) -> float:
        return self.sync_us + (bytes_to_cpu + bytes_to_gpu) / self.bytes_per_us


def contents_of(graph: Graph) -> FileContents:
    """The file of an engine graph, in memory."""
    return parse_contents(to_bytes(graph, {}))


def conv(net: Net, name: str, bits: str, channels: int, window: Window = SAME3) -> str:
    """A binary convolution with thresholds; gives its bits."""
    cin = net.graph.types[bits].shape[2]
    epilogue = Epilogue([], net.thresholds(channels, 4))
    weights = net.signs(channels, *window.kernel, cin)
    return net.op(name, BinaryConv2D(weights, window, 1, 0, epilogue), bits, value=False)


def straight(convolutions: int, channels: int = 64, size: int = 16) -> FileContents:
    """A sign, then convolutions one after the other."""
    net = Net(f"straight_{convolutions}_{channels}_{size}")
    bits = sign_of(net, net.input("x", (size, size, channels)))
    for number in range(convolutions):
        bits = conv(net, f"conv{number}", bits, channels)
    return contents_of(net.done(bits))


def forked(branches: int, channels: int = 64, size: int = 8) -> FileContents:
    """Branches of one or two convolutions between a sign and a concatenation, then one more."""
    net = Net(f"forked_{branches}_{channels}_{size}")
    bits = sign_of(net, net.input("x", (size, size, channels)))
    ends = []
    for number in range(branches):
        end = conv(net, f"branch{number}", bits, channels)
        ends.append(conv(net, f"branch{number}b", end, channels) if number % 2 else end)
    joined = net.op("join", Concat(), *ends)
    return contents_of(net.done(conv(net, "last", joined, channels, Window((1, 1)))))


def residual(blocks: int, channels: int = 64, size: int = 16) -> FileContents:
    """Blocks whose values are added to what they read, and a pool at the end."""
    net = Net(f"residual_{blocks}_{channels}_{size}")
    value = net.input("x", (size, size, channels))
    bits = sign_of(net, value)
    for number in range(blocks):
        steps = [net.scale_bias(channels), AddTensor(1)]
        epilogue = Epilogue(list(steps), np.zeros(channels, np.float32))
        op = BinaryConv2D(net.signs(channels, 3, 3, channels), SAME3, 1, 0, epilogue)
        value = net.op(f"block{number}", op, bits, value)
        bits = f"block{number}/bits"
    pooled = net.op("pool", MaxPool2D(Window((2, 2), (2, 2))), value)
    return contents_of(
        net.done(net.op("scale", Elementwise(Epilogue([net.scale_bias(channels)])), pooled))
    )


VGG16: Final = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)
"""Channels of its convolutions; 0 for a pool."""


def vgg16_records() -> FileContents:
    """Records of a network with VGG-16's layers and shapes.

    Its weights are those of a network with an eighth of the channels, which is made in no time;
    planners never look at weights.
    """
    net = Net("vgg16")
    bits = sign_of(net, net.input("x", (224, 224, 8)))
    for number, channels in enumerate(VGG16):
        if channels:
            bits = conv(net, f"conv{number}", bits, channels // 8)
        else:
            bits = net.op(f"pool{number}", MaxPool2D(Window((2, 2), (2, 2))), bits)
    for name, window in (("fc6", 7), ("fc7", 1), ("fc8", 1)):
        bits = conv(net, name, bits, 4096 // 8, Window((window, window)))
    contents = contents_of(net.done(bits))
    tensors = contents.tensors.copy()
    tensors["channels"] *= 8
    return replace(contents, tensors=tensors)
