"""Convolutions, dense layers, normalisations and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from phonebit.converter.importers.onnx.builder import Builder
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.elementwise import binary
from phonebit.converter.importers.onnx.rules.moving import permuted, reshaped
from phonebit.converter.importers.onnx.rules.windows import output_size, pads_of, window_of
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError


def convolution(builder: Builder, node: Node) -> Call:
    """Conv of one, two or three axes."""
    call, weight, bias = node.operand(0), node.operand(1), node.input(2)
    if len(weight.shape) != len(call.shape) or len(call.shape) not in (3, 4, 5):
        raise UnsupportedError(f"has a kernel of shape {weight.shape} on an input {call.shape}")
    kernel, strides, dilation = window_of(node, weight.shape[2:], maximum=3)
    if kernel != weight.shape[2:]:
        raise UnsupportedError(f"says kernel_shape {kernel}, but its kernel is {weight.shape[2:]}")
    pads = pads_of(node, call.shape[2:], kernel, strides, dilation)
    groups = int(node.get("group", 1))
    if groups < 1 or weight.shape[1] * groups != call.shape[1] or weight.shape[0] % groups:
        raise UnsupportedError(
            f"has a kernel of shape {weight.shape} in {groups} groups on {call.shape[1]} channels"
        )
    size = output_size(call.shape[2:], kernel, strides, dilation, pads)
    arguments: dict[str, Any] = {
        "input": call,
        "weight": weight,
        "bias": bias,
        "stride": list(strides),
        "padding": [0],
        "dilation": list(dilation),
        "groups": groups,
    }
    axes = len(kernel)
    if axes < 3:
        arguments["pads"] = as_map_pads(pads)
    elif pads[:axes] == pads[axes:]:
        arguments["padding"] = list(pads[:axes])
    else:
        raise UnsupportedError(f"has pads {pads}; expected the same on both sides of each axis")
    return builder.emit(f"conv{axes}d", arguments, None, (call.shape[0], weight.shape[0], *size))


def transposed_convolution(builder: Builder, node: Node) -> Call:
    """ConvTranspose of one or two axes; the cut at the end follows from the result's size."""
    call, weight = node.operand(0), node.operand(1)
    if len(weight.shape) != len(call.shape) or len(call.shape) not in (3, 4):
        raise UnsupportedError(f"has a kernel of shape {weight.shape} on an input {call.shape}")
    kernel, strides, dilation = window_of(node, weight.shape[2:])
    pads, more = pads_of(node, call.shape[2:], kernel, strides, dilation), [0] * len(kernel)
    more, groups = list(node.get("output_padding") or more), int(node.get("group", 1))
    if node.get("output_shape") or node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise UnsupportedError("leaves its pads open; expected pads instead of output_shape")
    if kernel != weight.shape[2:] or len(more) != len(kernel) or groups < 1:
        raise UnsupportedError(f"has kernel_shape {kernel}, but its kernel is {weight.shape}")
    if weight.shape[0] != call.shape[1] or weight.shape[0] % groups:
        raise UnsupportedError(f"has a kernel of shape {weight.shape} in {groups} groups")
    size = [
        (n - 1) * stride + (taps - 1) * step + 1 + extra - pads[axis] - pads[axis + len(kernel)]
        for axis, (n, stride, taps, step, extra) in enumerate(
            zip(call.shape[2:], strides, kernel, dilation, more, strict=True)
        )
    ]
    if min(size) < 1:
        raise UnsupportedError(f"has a result of size {size}")
    arguments = {
        "input": call,
        "weight": weight,
        "bias": node.input(2),
        "stride": list(strides),
        "padding": list(pads[: len(kernel)]),
        "dilation": list(dilation),
        "groups": groups,
    }
    shape = (call.shape[0], weight.shape[1] * groups, *size)
    return builder.emit(f"conv_transpose{len(kernel)}d", arguments, None, shape)


def as_map_pads(pads: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) of ONNX's pads, all beginnings in front of all ends."""
    if len(pads) == 2:
        return 0, pads[0], 0, pads[1]
    return pads[0], pads[1], pads[2], pads[3]


def gemm(builder: Builder, node: Node) -> Call:
    """General matrix product: alpha * A' B' + beta * C with constant B and C."""
    call, weight, bias = node.operand(0), node.operand(1), node.input(2)
    if node.get("transA", 0):
        call = permuted(builder, call, [1, 0])
    if not node.get("transB", 0):
        weight = permuted(builder, weight, [1, 0])
    if len(call.shape) != 2 or len(weight.shape) != 2 or call.shape[1] != weight.shape[1]:
        raise UnsupportedError(f"has factors of shapes {call.shape} and {weight.shape}")
    weight = _scaled(builder, weight, node.get("alpha", 1.0))
    if bias is not None:
        bias = _scaled(builder, bias, node.get("beta", 1.0))
        if math.prod(bias.shape) not in (1, weight.shape[0]) or bias.shape[-1:] == ():
            bias = reshaped(builder, bias, (1,)) if math.prod(bias.shape) == 1 else None
            if bias is None:
                raise UnsupportedError("has a bias that is no number for each column")
    arguments = {"input": call, "weight": weight, "bias": bias}
    return builder.emit("linear", arguments, None, (call.shape[0], weight.shape[0]))


def _scaled(builder: Builder, call: Call, factor: float) -> Call:
    if factor == 1:
        return call
    literal = builder.literal(np.array(factor, np.float32))
    return binary(builder, "mul", call, literal)


def matmul(builder: Builder, node: Node) -> Call:
    """The product of two tensors of two axes or more."""
    first, second = node.operand(0), node.operand(1)
    one, other = first.shape, second.shape
    try:
        lead = np.broadcast_shapes(one[:-2], other[:-2])
    except ValueError:
        lead = ()
    ranks = min(len(one), len(other))
    if ranks < 2 or one[-1] != other[-2] or len(lead) + 2 < max(len(one), len(other)):
        raise UnsupportedError(f"has factors of shapes {one} and {other}")
    shape = (*lead, one[-2], other[-1])
    arguments = {"self": first, "other": second}
    return builder.emit("matmul", arguments, lambda self, other: self @ other, shape)


def einsum(builder: Builder, node: Node) -> Call:
    """Einsum of two tensors, or of one."""
    tensors = [node.operand(number) for number in range(len(node.inputs))]
    equation = str(node.get("equation", "")).replace(" ", "")
    terms, arrow, result = equation.partition("->")
    labels = terms.split(",")
    ranks = [len(tensor.shape) for tensor in tensors]
    if not arrow or [len(term) for term in labels] != ranks or set(result) - set("".join(labels)):
        raise UnsupportedError(f"has the equation {equation!r} for tensors of {ranks} axes")
    sizes: dict[str, int] = {}
    for term, tensor in zip(labels, tensors, strict=True):
        for label, size in zip(term, tensor.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise UnsupportedError(f"has sizes {sizes[label]} and {size} for {label!r}")
    shape = [sizes[label] for label in result]
    arguments = {"equation": equation, "tensors": tensors}
    return builder.emit(
        "einsum", arguments, lambda equation, tensors: np.einsum(equation, *tensors), shape
    )


def batch_norm(builder: Builder, node: Node) -> list[Call | None]:
    """BatchNormalization by stored statistics."""
    call = node.operand(0)
    if node.get("training_mode", 0) or len([o for o in node.outputs if o]) > 1:
        raise UnsupportedError("is in training mode; export the network in eval()")
    arguments: dict[str, Any] = {
        "input": call,
        "weight": node.operand(1),
        "bias": node.operand(2),
        "running_mean": node.operand(3),
        "running_var": node.operand(4),
        "training": False,
        "eps": node.get("epsilon", 1e-5),
    }
    op = "_native_batch_norm_legit_no_training"
    several = builder.emit(op, arguments, None, call.shape)
    return [builder.emit("getitem", {"self": several, "index": 0}, None, call.shape)]


def softmax(builder: Builder, node: Node) -> Call:
    """Softmax and LogSoftmax; before opset 13 over all axes from one on."""
    call = node.operand(0)
    axis = int(node.get("axis", -1 if node.version >= 13 else 1))
    rank = len(call.shape)
    if not -rank <= axis < rank:
        raise UnsupportedError(f"works along axis {axis} of a tensor of shape {call.shape}")
    axis %= rank
    if node.version < 13 and math.prod(call.shape[axis + 1 :]) != 1:
        raise UnsupportedError(f"works along several axes of a tensor of shape {call.shape}")
    op = "log_softmax" if node.op == "LogSoftmax" else "softmax"
    return builder.emit(op, {"self": call, "dim": axis}, None, call.shape)


LAYERS: Final[dict[str, Callable[[Builder, Node], Any]]] = {
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "Gemm": gemm,
    "MatMul": matmul,
    "Einsum": einsum,
    "BatchNormalization": batch_norm,
    "Softmax": softmax,
    "LogSoftmax": softmax,
}
