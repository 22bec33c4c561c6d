"""Operators that compute: layers, pools, reductions and what works element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary
from phonebit.converter.importers.onnx.rules.moving import permuted, reshaped
from phonebit.converter.importers.tflite.rules.as_onnx import (
    TO_FRONT,
    activated,
    limited,
    on_map,
    standard,
    window_options,
)
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.converter.ops.epilogue import FUNCTIONS


def _activation(builder: Builder, node: Node) -> Call:
    return limited(builder, node.operand(0), OWN_ACTIVATIONS[node.op])


def _renamed(op: str, builder: Builder, node: Node) -> Call:
    """ONNX's operator of the same operands."""
    return activated(builder, node, standard(builder, node, op, node.inputs))


def _convolution(builder: Builder, node: Node) -> Call:
    call, weight = node.operand(0), node.operand(1)
    if len(weight.shape) != 4 or len(call.shape) != 4 or 0 in weight.shape:
        raise UnsupportedError(f"has a kernel of shape {weight.shape} on an input {call.shape}")
    depthwise = node.op == "DEPTHWISE_CONV_2D"
    groups = call.shape[3] if depthwise else call.shape[3] // weight.shape[3]
    weight = permuted(builder, weight, (3, 0, 1, 2) if depthwise else TO_FRONT)
    inputs = [call, weight, node.input(2)]
    made = on_map(builder, node, "Conv", inputs, **window_options(node), group=groups)
    return activated(builder, node, made)


def pool(op: str, builder: Builder, node: Node) -> Call:
    """The largest or mean value of each window."""
    size = [node.get("FilterHeight", 0), node.get("FilterWidth", 0)]
    options = window_options(node)
    made = on_map(builder, node, op, [node.operand(0)], kernel_shape=size, **options)
    return activated(builder, node, made)


def _dense(builder: Builder, node: Node) -> Call:
    call, weight = node.operand(0), node.operand(1)
    if node.get("WeightsFormat", 0) or len(weight.shape) != 2 or 0 in weight.shape:
        raise UnsupportedError(f"has weights of shape {weight.shape}, or in another order")
    rows = math.prod(call.shape) // weight.shape[1]
    flat = reshaped(builder, call, (rows, weight.shape[1]))
    made = standard(builder, node, "Gemm", [flat, weight, node.input(2)], transB=1)
    if node.get("KeepNumDims"):
        made = reshaped(builder, made, (*call.shape[:-1], weight.shape[0]))
    return activated(builder, node, made)


def _reduced(op: str, builder: Builder, node: Node) -> Call:
    keep = int(bool(node.get("KeepDims", 0)))
    return standard(builder, node, op, node.inputs, keepdims=keep)


def _softmax(builder: Builder, node: Node) -> Call:
    call, beta = node.operand(0), node.get("Beta", 1.0)
    call = call if beta == 1 else binary(builder, "mul", call, float(np.float32(beta)))
    return standard(builder, node, "Softmax", [call])


def _leaky(builder: Builder, node: Node) -> Call:
    return standard(builder, node, "LeakyRelu", node.inputs, alpha=node.get("Alpha", 0.0))


OWN_ACTIVATIONS: Final = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
RENAMED: Final = {
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "NEG": "Neg",
    "ABS": "Abs",
    "FLOOR": "Floor",
    "CEIL": "Ceil",
    "SIGN": "Sign",
    "POW": "Pow",
    "HARD_SWISH": "HardSwish",
    "PRELU": "PRelu",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "SELECT_V2": "Where",
    "EXPAND_DIMS": "Unsqueeze",
    "ARG_MAX": "ArgMax",
    **{name: f.names.onnx for name, f in FUNCTIONS["tflite"].items() if f.names.onnx},
}
COMPUTING: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    **{name: partial(_renamed, op) for name, op in RENAMED.items()},
    **dict.fromkeys(OWN_ACTIVATIONS, _activation),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _convolution),
    "MAX_POOL_2D": partial(pool, "MaxPool"),
    "AVERAGE_POOL_2D": partial(pool, "AveragePool"),
    "MEAN": partial(_reduced, "ReduceMean"),
    "SUM": partial(_reduced, "ReduceSum"),
    "REDUCE_MAX": partial(_reduced, "ReduceMax"),
    "FULLY_CONNECTED": _dense,
    "SOFTMAX": _softmax,
    "LEAKY_RELU": _leaky,
}
