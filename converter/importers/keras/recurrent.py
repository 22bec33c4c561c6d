"""LSTM, GRU and SimpleRNN in ONNX's terms, in one direction or both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.keras.graph import UnsupportedError, integers
from phonebit.converter.importers.keras.quantizers import callable_name
from phonebit.converter.importers.keras.roles import CELL, wrapped
from phonebit.converter.importers.keras.shared import Layer, Rule
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.ir import FloatArray

KINDS: Final = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}
GATES: Final = {"LSTM": [0, 3, 1, 2], "GRU": [0, 1, 2], "RNN": [0]}
"""Which of Keras's gates are ONNX's: LSTM's i, o, f, c are among i, f, c, o."""
MERGING: Final = {"sum": "Add", "mul": "Mul", "ave": "Add"}


def recurrent(class_name: str, layer: Layer) -> list[Call]:
    """One layer in one direction."""
    return _direction(layer, class_name, layer.config, CELL)


def bidirectional(layer: Layer) -> list[Call]:
    """Bidirectional: one layer in each direction, whose results are merged."""
    results = [
        _direction(layer, class_name, config, f"{group}/{CELL}")
        for group, class_name, config in wrapped(layer.config)
    ]
    (ahead, *states), (backward, *other_states) = results
    if len(ahead.shape) == 3:  # what went backwards begins with the last step
        backward = layer.onnx(
            "Slice", backward, starts=[-1], ends=[-(1 << 30)], axes=[1], steps=[-1]
        )
    mode = layer.config.get("merge_mode", "concat")
    if mode is None:
        return [ahead, backward, *states, *other_states]
    if mode == "concat":
        merged = layer.onnx("Concat", ahead, backward, axis=len(ahead.shape) - 1)
    elif mode in MERGING:
        merged = layer.onnx(MERGING[mode], ahead, backward)
        merged = layer.onnx("Div", merged, 2.0) if mode == "ave" else merged
    else:
        raise UnsupportedError(f"merge_mode={mode!r}")
    return [merged, *states, *other_states]


def _direction(layer: Layer, class_name: str, config: Mapping[str, Any], group: str) -> list[Call]:
    """The sequence or the last state, then the states if they are asked for."""
    call, op = layer.input, KINDS.get(class_name)
    if op is None:
        raise UnsupportedError(f"wraps a {class_name}; expected one of {', '.join(KINDS)}")
    if len(call.shape) != 3:
        raise UnsupportedError(f"its input has shape {call.shape[1:]}; expected (steps, features)")
    for key in ("stateful", "time_major"):
        if config.get(key):
            raise UnsupportedError(f"{key}=True; only sequences that begin with zeros work")
    steps = layer.onnx("Transpose", call, perm=[1, 0, 2])
    if config.get("go_backwards"):
        steps = layer.onnx("Slice", steps, starts=[-1], ends=[-(1 << 30)], axes=[0], steps=[-1])
    sequence, *states = layer.results(
        op,
        steps,
        *_weights(layer, op, config, call.shape[2], group),
        outputs=("sequence", "state", "memory"),
        linear_before_reset=int(config.get("reset_after", class_name == "GRU")),
        activations=_functions(config, op),
    )
    states = [layer.onnx("Squeeze", state, axes=[0]) for state in states]
    result = states[0]
    if config.get("return_sequences"):
        result = layer.onnx(
            "Squeeze", layer.onnx("Transpose", sequence, perm=[2, 0, 1, 3]), axes=[2]
        )
    return [result, *states] if config.get("return_state") else [result]


def _weights(
    layer: Layer, op: str, config: Mapping[str, Any], features: int, group: str
) -> list[FloatArray]:
    """Weights of the input and of the state and their biases, as ONNX has them."""
    (units,) = integers(config, "units", 1, 0)
    order = GATES[op]
    rows = len(order) * units

    def gates(array: FloatArray) -> FloatArray:
        parts = array.reshape(*array.shape[:-1], len(order), units)[..., order, :]
        return parts.reshape(array.shape)

    kernel = gates(layer.weight(f"{group}/kernel", (features, rows))).T
    state = gates(layer.weight(f"{group}/recurrent_kernel", (units, rows))).T
    bias = np.zeros((2, rows), np.float32)
    if config.get("use_bias", True):
        both = op == "GRU" and config.get("reset_after", True)
        stored = layer.weight(f"{group}/bias", (2, rows) if both else (rows,))
        bias[: 2 if both else 1] = gates(stored)
    return [kernel[None], state[None], bias.reshape(1, -1)]


def _functions(config: Mapping[str, Any], op: str) -> list[str]:
    """The functions of a layer's gates by ONNX's names."""
    state, gate = (
        str(callable_name(config.get(key) or default)).title()
        for key, default in (("activation", "tanh"), ("recurrent_activation", "sigmoid"))
    )
    return {"LSTM": [gate, state, state], "GRU": [gate, state], "RNN": [state]}[op]


RECURRENT: Final[dict[str, Rule]] = {
    **{name: partial(recurrent, name) for name in KINDS},
    "Bidirectional": bidirectional,
}
"""Rules by the names of Keras's classes."""
