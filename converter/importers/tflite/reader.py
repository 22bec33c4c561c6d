"""A TensorFlow Lite model as calls of ATen operators, which the importer of PyTorch translates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.onnx.node_reader import CHOOSING, MAX_INPUT, NodeReader, Reading
from phonebit.converter.importers.onnx.nodes import Node
from phonebit.converter.importers.onnx.rules.quantizers import signs
from phonebit.converter.importers.onnx.tensors import MAX_ELEMENTS, check_size
from phonebit.converter.importers.tflite.files import Model, Operator, Tensor
from phonebit.converter.importers.tflite.rules import RULES
from phonebit.converter.importers.tflite.rules.larq import LARQ
from phonebit.converter.importers.tflite.rules.quantized import COPYING, QUANTIZING
from phonebit.converter.importers.torch.calls import Call
from phonebit.converter.importers.torch.element_positions import UnsupportedError
from phonebit.errors import ConversionError

Array = NDArray[Any]
WORD_BITS: Final = 32


def read_model(model: Model, input_shape: Sequence[int] | None) -> Reading:
    """Reads a model.

    Args:
        model: A parsed file.
        input_shape: Of its only input, which must be the file's; None if nothing is said.

    Raises:
        ConversionError: It is inconsistent, or its inputs' shapes are open.
    """
    return _Reader(model, input_shape).read()


class _Reader(NodeReader):
    def __init__(self, model: Model, input_shape: Sequence[int] | None) -> None:
        super().__init__()
        self._model = model
        self._given = input_shape
        self._bits: set[str] = set()

    def read(self) -> Reading:
        tensors = self._model.tensors
        for place in self._model.inputs:
            self._define(tensors[place].name, self._input(tensors[place]))
        for tensor in tensors:
            if tensor.content is not None:
                self._define(tensor.name, self._constant(tensor, tensor.content))
        for operator in self._model.operators:
            self._node(operator)
        names = [tensors[place].name for place in self._model.outputs]
        return self._finished(names, lambda call: len(call.shape) == 4)

    def _input(self, tensor: Tensor) -> Call:
        shape = tensor.shape
        if self._given is not None and tuple(self._given) != shape:
            raise ConversionError(
                "input_shape does not fit", where=repr(tensor.name), expected=shape, got=self._given
            )
        if not shape or min(shape) < 1 or math.prod(shape) > MAX_INPUT:
            raise ConversionError(
                f"input {tensor.name!r} has an open or impossible shape",
                expected=f"sizes above 0, at most {MAX_INPUT} elements",
                got=shape,
                hint="convert the model with a fixed input shape",
            )
        if tensor.is_quantized:
            raise ConversionError(
                f"input {tensor.name!r} is quantized",
                expected="float32",
                got=tensor.dtype,
                hint="convert the model with inference_input_type=tf.float32",
            )
        channels = packed_channels(self._model, tensor)
        dtype = tensor.dtype
        if channels:
            shape, dtype = (*shape[:-1], channels), "float32"
        call = Call(tensor.name, "input", None, {}, shape, dtype)
        self._program.inputs.append(call)
        if len(shape) == 4:
            self._program.channels_last.add(call)
        if not channels:
            return call
        self._bits.add(tensor.name)
        return signs(self._builder, call)

    def _constant(self, tensor: Tensor, content: Array) -> Call:
        shape, name = tensor.shape, tensor.name
        try:
            dtype = np.dtype(tensor.dtype)
        except TypeError as error:
            raise ConversionError("a tensor of no numbers", where=name, got=tensor.dtype) from error
        if min(shape, default=0) < 0 or math.prod(shape) > MAX_ELEMENTS:
            raise ConversionError(
                "a tensor of impossible size", where=name, expected=MAX_ELEMENTS, got=shape
            )
        check_size(name, math.prod(shape) * dtype.itemsize, content.size, shape)
        array = content.view(dtype.newbyteorder("<")).reshape(shape)
        call = self._builder.parameter(array, name)
        call.dtype = tensor.dtype
        if not tensor.is_quantized:
            return call
        sizes = [1] * len(shape)
        if tensor.scales.size > 1:
            if not 0 <= tensor.axis < len(shape) or shape[tensor.axis] != tensor.scales.size:
                raise ConversionError(
                    "scales that do not fit", where=name, expected=shape, got=tensor.scales.size
                )
            sizes[tensor.axis] = tensor.scales.size
        target = partial(_real, tensor.zeros.reshape(sizes), tensor.scales.reshape(sizes))
        return self._builder.emit("dequantize", {"self": call}, target, shape, "float32")

    def _node(self, operator: Operator) -> None:
        tensors = self._model.tensors
        results = [tensors[place] for place in operator.outputs if place >= 0]
        where = _path(results[0].name) if results else operator.name
        operands = [tensors[place] if place >= 0 else None for place in operator.inputs]
        names = [tensor.name for tensor in results]

        def make() -> object:
            read = [each for each in operands if each is not None]
            rule = RULES.get(operator.name)
            if rule is None or not results:
                raise UnsupportedError("is not supported")
            inputs = [self._operand(each.name if each else "", where) for each in operands]
            if operator.name not in LARQ and any(each.name in self._bits for each in read):
                raise UnsupportedError("reads bit-packed values")
            _check_quantized(operator.name, [*read, *results])
            if None in [self._values[each.name] for each in read]:
                return None
            attributes = {**operator.options, "operand": read[0] if read else None}
            attributes["result"] = results[0]
            node = Node(operator.name, "", 1, inputs, names, where, attributes)
            self._builder.begin(node)
            made = rule(self._builder, node)
            for tensor, call in zip(
                results, [made] if isinstance(made, Call) else list(made), strict=False
            ):
                self._check_shape(operator.name, tensor, call)
            return made

        self._apply(where, operator.name, names, make)

    def _check_shape(self, op: str, tensor: Tensor, call: Call | None) -> None:
        """A result must be as large as the file says, or its options were understood wrongly."""
        if call is None or call.op in CHOOSING:
            return
        shape = call.shape
        if op in LARQ and tensor.dtype == "int32":
            self._bits.add(tensor.name)
            shape = (*shape[:-1], -(-shape[-1] // WORD_BITS))
        if shape != tensor.shape:
            raise UnsupportedError(f"makes {shape} where the file has {tensor.shape}")


def packed_channels(model: Model, tensor: Tensor) -> int:
    """The bits of an input in the words of each pixel; 0 if it has none.

    Raises:
        ConversionError: Nothing says how many, or several operators say different numbers.
    """
    if tensor.dtype != "int32":
        return 0
    place = next(i for i, each in enumerate(model.tensors) if each is tensor)
    readers = [each for each in model.operators if place in each.inputs]
    if not any(each.name in LARQ for each in readers):
        return 0
    found = {int(each.options.get("channels_in", 0)) for each in readers}
    channels = found.pop() if len(found) == 1 else 0
    if -(-channels // WORD_BITS) != tensor.shape[-1]:
        raise ConversionError(
            f"input {tensor.name!r} holds packed bits, and nothing says how many",
            expected="float32, or bits that LceBconv2d reads",
            got=f"{tensor.dtype}, {tensor.shape}, read by {[each.name for each in readers]}",
            hint="begin the network with LceQuantize",
        )
    return channels


def _real(zeros: Array, scales: Array, /, self: Array) -> Array:
    """The numbers that integers stand for."""
    return (self.astype(np.float32) - zeros.astype(np.float32)) * scales


def _path(name: str) -> str:
    """What a node is called: like the first of the layers that were fused into it."""
    return ".".join(part for part in name.split(";")[0].split("/") if part)


def _check_quantized(op: str, tensors: list[Tensor]) -> None:
    """Raises an UnsupportedError if an operator computes with integers of other numbers."""
    quantized = [tensor for tensor in tensors if tensor.is_quantized]
    if not quantized or op in QUANTIZING:
        return
    kinds = {(tensor.dtype, *tensor.scales, *tensor.zeros) for tensor in quantized}
    if op not in COPYING or len(kinds) != 1:
        raise UnsupportedError(
            f"computes in {quantized[0].dtype} with a rounding of its own; convert the network "
            "without post-training quantization"
        )
