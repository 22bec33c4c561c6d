"""LSTM, GRU and plain recurrent layers, unrolled: small layers for each element of the sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError, View
from phonebit.converter.importers.torch.emission import Emission, float_array
from phonebit.converter.importers.torch.layout import relayout
from phonebit.converter.importers.torch.tracked_tensors import Context, Value
from phonebit.converter.ir import FloatArray, Operator, Window
from phonebit.converter.ops import Concat, Conv2D, Elementwise, Reshape, SelectChannels
from phonebit.converter.ops.epilogue import (
    AddTensor,
    Clamp,
    Epilogue,
    EpilogueOp,
    MultiplyTensor,
    ScaleBias,
)
from phonebit.converter.ops.epilogue.functions import Sigmoid, Tanh

MAX_STEPS: Final = 256
"""Elements of a sequence."""
GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass
class _Cell:
    """One direction of one layer; values are (1, 1, channels).

    Attributes:
        emission: Receives the nodes.
        name: What they are called by.
        kind: The operator.
        recurrent: Weights (gates * size, size) of the state.
        bias: Of the recurrent product; in GRU only, others add it to the input's.
    """

    emission: Emission
    name: str
    kind: str
    recurrent: FloatArray
    bias: FloatArray

    @property
    def size(self) -> int:
        """Of the state."""
        return int(self.recurrent.shape[1])

    def emit(self, op: Operator, what: str, channels: int, *inputs: str) -> str:
        return self.emission.emit(op, inputs, (1, 1, channels), f"{self.name}/{what}")

    def step(self, step: EpilogueOp, what: str, *inputs: str) -> str:
        channels = self.emission.types[inputs[0]].shape[2]
        return self.emit(Elementwise(Epilogue([step])), what, channels, *inputs)

    def gate(self, gates: str, *numbers: int) -> str:
        """Some gates of several, side by side."""
        places = [np.arange(self.size) + number * self.size for number in numbers]
        indices = np.concatenate(places).astype(np.int32)
        return self.emit(SelectChannels(indices), "gate", indices.size, gates)

    def product(self, state: str) -> str:
        weights = np.ascontiguousarray(self.recurrent[:, None, None, :])
        return self.emit(Conv2D(weights, Window((1, 1))), "state", len(weights), state)

    def lstm(self, gates: str, state: str, memory: str) -> tuple[str, str]:
        """Gates i, f, g, o."""
        total = self.step(AddTensor(1), "gates", self.product(state), gates) if state else gates
        shares = self.step(Sigmoid(), "shares", self.gate(total, 0, 1, 3))
        new = self.step(Tanh(), "new", self.gate(total, 2))
        new = self.step(MultiplyTensor(1), "added", new, self.gate(shares, 0))
        if memory:
            kept = self.step(MultiplyTensor(1), "kept", self.gate(shares, 1), memory)
            new = self.step(AddTensor(1), "memory", kept, new)
        seen = self.step(Tanh(), "seen", new)
        return self.step(MultiplyTensor(1), "result", seen, self.gate(shares, 2)), new

    def gru(self, gates: str, state: str, _: str) -> tuple[str, str]:
        """Gates r, z, n: n = tanh(x_n + r (U_n h + b)), h = n + z (h - n)."""
        ones = np.ones_like(self.bias)
        if state:
            own = self.step(ScaleBias(ones, self.bias), "biased", self.product(state))
            sums = self.step(AddTensor(1), "sums", self.gate(gates, 0, 1), self.gate(own, 0, 1))
        else:
            count = 2 * self.size
            bias = ScaleBias(ones[:count], self.bias[:count])
            sums = self.step(bias, "sums", self.gate(gates, 0, 1))
        shares = self.step(Sigmoid(), "shares", sums)
        reset, update = self.gate(shares, 0), self.gate(shares, 1)
        if state:
            reset = self.step(MultiplyTensor(1), "reset", self.gate(own, 2), reset)
        else:
            last = self.bias[2 * self.size :]
            reset = self.step(ScaleBias(last, np.zeros_like(last)), "reset", reset)
        new = self.step(AddTensor(1), "sum", self.gate(gates, 2), reset)
        new = self.step(Tanh(), "new", new)
        minus = self.step(ScaleBias(-ones[: self.size], 0 * ones[: self.size]), "minus", new)
        change = self.step(AddTensor(1), "change", minus, state) if state else minus
        change = self.step(MultiplyTensor(1), "share", change, update)
        return self.step(AddTensor(1), "result", change, new), ""

    def rnn(self, gates: str, state: str, _: str) -> tuple[str, str]:
        """One gate, which is the state."""
        total = self.step(AddTensor(1), "sum", self.product(state), gates) if state else gates
        bent = Tanh() if self.kind == "rnn_tanh" else Clamp(0.0, float("inf"))
        return self.step(bent, "result", total), ""

    def run(self, inputs: str, count: int, reverse: bool) -> tuple[list[str], str]:
        """The states of a sequence (1, count, gates * size) in its order, and the last memory."""
        channels = len(self.recurrent)
        flat = self.emit(Reshape((1, 1, count * channels)), "sequence", count * channels, inputs)
        cell: Callable[[str, str, str], tuple[str, str]] = getattr(self, self.kind[:4].rstrip("_"))
        states, state, memory = [""] * count, "", ""
        for place in range(count)[:: -1 if reverse else 1]:
            indices = (np.arange(channels) + place * channels).astype(np.int32)
            gates = self.emit(SelectChannels(indices), f"{place}", channels, flat)
            state, memory = cell(gates, state, memory)
            states[place] = state
        return states, memory


def recurrent(context: Context, call: Call) -> list[Value]:
    """lstm, gru, rnn_tanh and rnn_relu on sequences of fixed length, from a state of zeros.

    Raises:
        UnsupportedError: The sequence is too long, packed or projected, or its first state is not
            zero.
    """
    name, directions = context.emission.name(call), 2 if call["bidirectional"] else 1
    view = _sequence(context, call)
    count, each = view.sample().shape[0], 4 if call["has_biases"] else 2
    arrays = [float_array(context.constant(p, "weight")) for p in call["params"]]
    layers = int(call["num_layers"])
    if len(arrays) != layers * directions * each:
        raise UnsupportedError("projects its state")
    last: list[str] = []
    memories: list[str] = []
    for number in range(layers * directions):
        weights = arrays[number * each :][:each]
        biases = weights[2:] if each == 4 else [np.zeros(len(weights[0]), np.float32)] * 2
        place = f"{name}/layer{number // directions}"
        reverse = number % directions == 1
        if not reverse:
            source, parts = view, []
        cell = _Cell(context.emission, place, call.op, weights[1], biases[1])
        if weights[1].shape[0] != GATES[call.op] * cell.size:
            raise UnsupportedError(f"has weights of shape {weights[1].shape}")
        shift = biases[0] if call.op == "gru" else biases[0] + biases[1]
        op = Conv2D(weights[0][:, None, None, :], Window((1, 1)), bias=shift)
        gates = context.emission.emit(op, [source.value], (1, count, len(shift)), f"{place}/input")
        states, memory = cell.run(gates, count, reverse)
        last.append(states[0 if reverse else -1])
        memories.append(memory)
        parts.append(states)
        if number % directions == directions - 1:
            joined = [state for both in zip(*parts, strict=True) for state in both]
            view = _joined(context, joined, count, directions * cell.size, place)
    return _results(context, call, view, last, memories)


def _sequence(context: Context, call: Call) -> View:
    """The sequence as a map of one row."""
    first = call["hx"] if isinstance(call["hx"], list) else [call["hx"]]
    if len(call["input"].shape) != 3 or call["params"] is None:
        raise UnsupportedError("reads a packed sequence, or one without a batch")
    for state in first:
        if np.any(context.constant(state, "first state")):
            raise UnsupportedError("begins with a state that is not zero")
    view = context.real(context.operand(call["input"]))
    if not call["batch_first"]:
        view = replace(view, indices=np.moveaxis(view.indices, 1, 0))
    if view.indices.shape[0] != context.batch:
        raise UnsupportedError(
            f"has its steps on the first axis of the network's input, {call['input'].shape}, where "
            "images are; let the network take (batch, steps, channels), as with batch_first=True"
        )
    if view.indices.shape[1] > MAX_STEPS:
        count = view.indices.shape[1]
        raise UnsupportedError(f"reads {count} elements one by one; expected at most {MAX_STEPS}")
    return relayout(context.emission, view, "channels_last", context.emission.name(call))


def _joined(context: Context, values: list[str], count: int, channels: int, name: str) -> View:
    """States as a sequence (batch, count, channels)."""
    emission, hwc = context.emission, (1, count, channels)
    value = values[0]
    if len(values) > 1:
        value = emission.emit(Concat(), values, (1, 1, count * channels), f"{name}/states")
    value = emission.emit(Reshape(hwc), [value], hwc, name)
    indices = np.arange(context.batch * count * channels).reshape(-1, count, channels)
    return View(value, hwc, indices, context.batch)


def _results(
    context: Context, call: Call, view: View, last: list[str], memories: list[str]
) -> list[Value]:
    """The sequence, the last states, and LSTM's last memories."""
    result = view
    if not call["batch_first"]:
        result = replace(view, indices=np.moveaxis(view.indices, 0, 1))
    size = context.emission.types[last[0]].shape[2]
    shape = (len(last), context.batch, size)

    def stacked(values: list[str], what: str) -> Value:
        def emit() -> View:
            name = f"{context.emission.name(call)}/{what}"
            found = _joined(context, values, len(values), size, name)
            return replace(found, indices=np.moveaxis(found.indices, 0, 1))

        return Value(shape, "float32", emit=emit)

    states = [stacked(last, "last")]
    states += [stacked(memories, "memory")] if call.op == "lstm" else []
    return [Value(result.indices.shape, "float32", result), *states]


RECURRENT: Final = dict.fromkeys(GATES, recurrent)
"""Rules by the names of PyTorch's operators."""
