"""LSTM, GRU and RNN: PyTorch's layers with the gates in another order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phonebit.converter.importers.onnx.builder import Array, Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.moving import permuted, reshaped, taken
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError

GATES: Final = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}
"""Where ONNX has each of PyTorch's gates: LSTM's i, f, g, o among i, o, f, g; GRU's r, z, n among
z, r, n."""
FUNCTIONS: Final = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}
SEQUENCE_LENGTHS, FIRST_STATE, FIRST_MEMORY, PEEPHOLES = 4, 5, 6, 7


def recurrent(builder: Builder, node: Node) -> list[Call]:
    """A layer in one direction or both; its sequence, last states and, of LSTM, last memories."""
    call = node.operand(0)
    if len(call.shape) != 3:
        raise UnsupportedError(f"reads a tensor of shape {call.shape}; expected three axes")
    direction = node.get("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise UnsupportedError(f"has the direction {direction!r}")
    directions, reverse = 1 + (direction == "bidirectional"), direction == "reverse"
    weights = _weights(builder, node, call.shape[2], directions)
    size = weights[1].shape[1]
    op = _op(builder, node, call.shape[0], directions)
    zeros = builder.literal(np.zeros((directions, call.shape[1], size), np.float32))
    states = [node.input(FIRST_STATE) or zeros, node.input(FIRST_MEMORY) or zeros]
    backwards = range(call.shape[0])[::-1]
    arguments: dict[str, Any] = {
        "input": taken(builder, call, backwards, 0) if reverse else call,
        "hx": states if op == "lstm" else states[0],
        "params": [builder.literal(array) for array in weights],
        "has_biases": True,
        "num_layers": 1,
        "bidirectional": directions == 2,
        "batch_first": False,
    }
    count, batch = call.shape[:2]
    shape = (count, batch, directions * size)
    several = builder.emit(op, arguments, None, shape)
    sequence = builder.emit("getitem", {"self": several, "index": 0}, None, shape)
    sequence = taken(builder, sequence, backwards, 0) if reverse else sequence
    sequence = reshaped(builder, sequence, (count, batch, directions, size))
    last = [
        builder.emit("getitem", {"self": several, "index": index}, None, (directions, batch, size))
        for index in range(1, 3 if op == "lstm" else 2)
    ]
    return [permuted(builder, sequence, [0, 2, 1, 3]), *last]


def _op(builder: Builder, node: Node, count: int, directions: int) -> str:
    """PyTorch's name of it, if it has this layer."""
    functions = node.get("activations") or FUNCTIONS.get(node.op, ["Tanh"]) * directions
    names = {"RNN": {"Tanh": "rnn_tanh", "Relu": "rnn_relu"}}.get(node.op, {})
    op = names.get(functions[0], node.op.lower())
    expected = (FUNCTIONS.get(node.op) or [functions[0] if names else ""]) * directions
    if list(functions) != expected or op == "rnn":
        raise UnsupportedError(f"has the functions {functions}; expected {FUNCTIONS.get(node.op)}")
    if node.op == "GRU" and not node.get("linear_before_reset", 0):
        raise UnsupportedError("resets the state before its product; set linear_before_reset to 1")
    if node.get("clip") or node.get("input_forget") or node.get("layout") or node.input(PEEPHOLES):
        raise UnsupportedError("has clip, input_forget, layout=1 or peepholes")
    lengths = node.input(SEQUENCE_LENGTHS)
    if lengths is not None and set(builder.integers(lengths, "lengths")) != {count}:
        raise UnsupportedError(f"has sequences of several lengths; expected {count} for all")
    return op


def _weights(builder: Builder, node: Node, channels: int, directions: int) -> list[Array]:
    """Of each direction PyTorch's weights and biases of the input and of the state."""
    order = GATES[node.op]
    inputs, states = (builder.value(node.operand(index), "weights") for index in (1, 2))
    size = states.shape[-1]
    rows = len(order) * size
    bias = np.zeros((directions, 2 * rows), np.float32)
    if node.input(3) is not None:
        bias = builder.value(node.operand(3), "biases")
    expected = (directions, rows, channels), (directions, rows, size), (directions, 2 * rows)
    if (inputs.shape, states.shape, bias.shape) != expected or not size:
        raise UnsupportedError(
            f"has weights of shapes {inputs.shape}, {states.shape}, {bias.shape}"
        )
    arrays = []
    for direction in range(directions):
        for array in (inputs[direction], states[direction], *np.split(bias[direction], 2)):
            gates = array.reshape(len(order), size, *array.shape[1:])[order]
            arrays.append(np.ascontiguousarray(gates.reshape(array.shape)))
    return arrays


RECURRENT: Final = dict.fromkeys(GATES, recurrent)
