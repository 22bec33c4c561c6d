"""The plug-in hook for Keras layers of your own: express them by PhoneBit's layers.

A function for each layer class receives a ``CustomLayer`` and returns the layer's output
(docs/converting.md has an example)::

    def scale_channels(layer: CustomLayer) -> Tensor:
        (x,) = layer.inputs
        return layer.scale_bias(x, layer.weight("scale", (x.channels,)))

    CUSTOM_LAYERS = {"MyPackage>ScaleChannels": scale_channels}
"""

from __future__ import annotations

import math
import os
import runpy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phonebit.converter.importers.keras.convolutions import contiguous, sliding_window
from phonebit.converter.importers.keras.graph import LayerContext, Tensor, UnsupportedError
from phonebit.converter.importers.keras.pointwise import function_of_call
from phonebit.converter.ir import FloatArray, Operator, Window
from phonebit.converter.ops import (
    AveragePool2D,
    BatchNorm,
    Concat,
    Conv2D,
    Elementwise,
    MaxPool2D,
    Pad,
    Quantize,
    Reshape,
    SelectChannels,
    Sign,
    Softmax,
)
from phonebit.converter.ops.epilogue import (
    FUNCTIONS,
    AddTensor,
    Clamp,
    Epilogue,
    EpilogueOp,
    MultiplyTensor,
    PRelu,
    ScaleBias,
)
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

LayerFunction = Callable[["CustomLayer"], Tensor | Sequence[Tensor]]
"""Expresses one call of a layer and returns its output or outputs."""

Pair = int | tuple[int, int]


def load_plugin(path: str | os.PathLike[str]) -> dict[str, LayerFunction]:
    """Runs a Python file and returns its ``CUSTOM_LAYERS``.

    Args:
        path: A file that defines a dict CUSTOM_LAYERS: registered names ("MyPackage>MyLayer") or
            class names ("MyLayer") to functions of a CustomLayer.

    Raises:
        ConversionError: The file cannot be read, fails, or defines no such dict.
    """
    try:
        found = runpy.run_path(str(Path(path))).get("CUSTOM_LAYERS")
    except Exception as error:  # the user's code
        raise ConversionError(
            f"the plug-in fails: {type(error).__name__}: {error}", where=str(path)
        ) from error
    good = isinstance(found, dict) and all(
        isinstance(name, str) and callable(function) for name, function in found.items()
    )
    if not good:
        raise ConversionError(
            "the plug-in defines no layers",
            where=str(path),
            expected='CUSTOM_LAYERS = {"MyPackage>MyLayer": function, ...}',
            got=type(found).__name__,
        )
    return dict(found or {})


class CustomLayer:
    """One call of a layer of the user's own: what it has, and the layers to express it by.

    Tensors have a ``shape`` without the batch (Keras's, channels last) and ``channels``. Arrays are
    in Keras's axis order: kernels (height, width, in, out), depthwise (height, width, channels, m).

    Attributes:
        name: The layer's name, with those of the models around it.
        config: Its configuration (``get_config``), read-only.
        inputs: The tensors that it is called with.
    """

    def __init__(self, context: LayerContext, inputs: Sequence[Tensor]) -> None:
        self._context = context
        self._steps: dict[str, int] = {}
        self.name = context.name
        self.config: Mapping[str, Any] = MappingProxyType(dict(context.config))
        self.inputs = tuple(context.real(x) for x in inputs)

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the inputs, without the batch."""
        return [x.shape for x in self.inputs]

    @property
    def weight_names(self) -> list[str]:
        """Names of the layer's weights in the order of ``get_weights``.

        In ``.keras`` archives, which keep no names, "0", "1" and so on.
        """
        return self._context.weights.names(self._context.path)

    def weight(self, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """A weight by its name or its position in ``get_weights``; float32 of this shape.

        Raises:
            ConversionError: The layer has no such weight, or one of another shape.
        """
        return self._context.weights.read_own(self._context.path, key, shape)

    # --- layers with weights ----------------------------------------------------------------------

    def conv2d(
        self,
        x: Tensor,
        kernel: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        strides: Pair = 1,
        padding: str = "valid",
        dilation: Pair = 1,
        groups: int = 1,
        pad_value: float = 0.0,
    ) -> Tensor:
        """Convolution; kernel (height, width, in / groups, out), bias (out,), Keras's padding."""
        weights = np.asarray(kernel, np.float32).transpose(3, 0, 1, 2)
        return self._convolution(
            "conv2d", x, weights, bias, groups, (strides, padding, dilation, pad_value)
        )

    def depthwise_conv2d(
        self,
        x: Tensor,
        kernel: ArrayLike,
        *,
        bias: ArrayLike | None = None,
        strides: Pair = 1,
        padding: str = "valid",
        dilation: Pair = 1,
        pad_value: float = 0.0,
    ) -> Tensor:
        """Convolution of each channel by itself; kernel (height, width, channels, multiplier)."""
        array = np.asarray(kernel, np.float32)
        weights = contiguous(array.transpose(2, 3, 0, 1)).reshape(-1, *array.shape[:2], 1)
        settings = (strides, padding, dilation, pad_value)
        return self._convolution("depthwise_conv2d", x, weights, bias, x.channels, settings)

    def dense(self, x: Tensor, kernel: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
        """Dense layer over the last axis; kernel (channels, units), bias (units,)."""
        weights = np.asarray(kernel, np.float32).T.reshape(-1, 1, 1, x.channels)
        op = Conv2D(contiguous(weights), Window((1, 1)), bias=self._bias(bias, len(weights)))
        return self._emit("dense", op, [x], (*x.shape[:-1], len(weights)))

    def batch_norm(
        self,
        x: Tensor,
        *,
        gamma: ArrayLike = 1.0,
        beta: ArrayLike = 0.0,
        mean: ArrayLike = 0.0,
        variance: ArrayLike = 1.0,
        epsilon: float = 1e-3,
    ) -> Tensor:
        """(x - mean) * (gamma / sqrt(variance + epsilon)) + beta, with numbers as scale_bias."""
        scale, shift = self._channels(gamma, x), self._channels(beta, x)
        statistics = self._channels(mean, x), self._channels(variance, x)
        op = BatchNorm(scale, shift, *statistics, epsilon)
        return self._emit("batch_norm", op, [x], x.shape)

    def scale_bias(self, x: Tensor, scale: ArrayLike = 1.0, bias: ArrayLike = 0.0) -> Tensor:
        """X * scale + bias; one number for all channels or one for each."""
        step = ScaleBias(self._channels(scale, x), self._channels(bias, x))
        return self._step("scale_bias", x, step)

    # --- quantizers and activations ---------------------------------------------------------------

    def sign(self, x: Tensor, threshold: float = 0.0) -> Tensor:
        """+1 where x >= threshold, else -1."""
        return self._emit("sign", Sign(threshold), [x], x.shape, DataType.BIT)

    def quantize(self, x: Tensor, thresholds: ArrayLike, values: ArrayLike) -> Tensor:
        """values[number of thresholds that x reaches]; n ascending thresholds, n + 1 values."""
        op = Quantize(np.asarray(thresholds, np.float32), np.asarray(values, np.float32))
        return self._emit("quantize", op, [x], x.shape)

    def relu(self, x: Tensor) -> Tensor:
        """max(x, 0)."""
        return self.clamp(x, 0.0, math.inf)

    def clamp(self, x: Tensor, low: float, high: float) -> Tensor:
        """min(max(x, low), high)."""
        return self._step("clamp", x, Clamp(low, high))

    def prelu(self, x: Tensor, slope: ArrayLike) -> Tensor:
        """X where x >= 0, else x * slope; one slope for all channels or one for each."""
        return self._step("prelu", x, PRelu(self._channels(slope, x)))

    def function(self, x: Tensor, name: str, **arguments: object) -> Tensor:
        """A function without weights by its name in TensorFlow: "sigmoid", "tanh", "round"."""
        if name not in FUNCTIONS["keras"]:
            known = ", ".join(sorted(FUNCTIONS["keras"]))
            raise UnsupportedError(f"function {name!r} is not supported; known: {known}")
        return self._step(name, x, function_of_call(name, arguments))

    def sigmoid(self, x: Tensor) -> Tensor:
        """1 / (1 + exp(-x))."""
        return self.function(x, "sigmoid")

    def tanh(self, x: Tensor) -> Tensor:
        """Hyperbolic tangent."""
        return self.function(x, "tanh")

    def softmax(self, x: Tensor) -> Tensor:
        """Softmax over the channels."""
        return self._emit("softmax", Softmax(), [x], x.shape)

    # --- several tensors --------------------------------------------------------------------------

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """X + y; y of the same shape or of one number for each channel."""
        return self._step("add", x, AddTensor(1), y)

    def multiply(self, x: Tensor, y: Tensor | ArrayLike) -> Tensor:
        """X * y; y a tensor as in ``add``, or an array that broadcasts to the shape of x."""
        if isinstance(y, Tensor):
            return self._step("multiply", x, MultiplyTensor(1), y)
        factors = np.broadcast_to(np.asarray(y, np.float32), x.shape).reshape(-1)
        return self._step("multiply", x, PRelu(factors.copy(), factors.copy()))

    def concat(self, tensors: Sequence[Tensor]) -> Tensor:
        """Concatenation along the channels."""
        shape = (*tensors[0].shape[:-1], sum(x.channels for x in tensors))
        bits = all(x.dtype == DataType.BIT for x in tensors)
        dtype = DataType.BIT if bits else DataType.F32
        return self._emit("concat", Concat(), list(tensors), shape, dtype)

    # --- shapes and windows -----------------------------------------------------------------------

    def select_channels(self, x: Tensor, indices: Sequence[int]) -> Tensor:
        """Channel c of the result is channel indices[c] of x, or zeros where that is -1."""
        op = SelectChannels(np.asarray(indices, np.int32))
        return self._emit("select_channels", op, [x], (*x.shape[:-1], len(indices)))

    def max_pool(
        self, x: Tensor, size: Pair, strides: Pair | None = None, padding: str = "valid"
    ) -> Tensor:
        """Maximum over windows; strides as the size unless given."""
        window, shape = self._window(x, _pair(size), (strides or size, padding, 1))
        return self._emit("max_pool", MaxPool2D(window), [x], (*shape, x.channels), x.dtype)

    def average_pool(
        self, x: Tensor, size: Pair, strides: Pair | None = None, padding: str = "valid"
    ) -> Tensor:
        """Mean over windows, padding left out; strides as the size unless given."""
        window, shape = self._window(x, _pair(size), (strides or size, padding, 1))
        return self._emit("average_pool", AveragePool2D(window), [x], (*shape, x.channels))

    def pad(self, x: Tensor, pads: tuple[int, int, int, int], value: float = 0.0) -> Tensor:
        """``value`` around the map; pads are (top, left, bottom, right)."""
        height, width, channels = x.hwc
        shape = (height + pads[0] + pads[2], width + pads[1] + pads[3], channels)
        return self._emit("pad", Pad(pads, value), [x], shape)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in one to three axes; shape without the batch."""
        if not 1 <= len(shape) <= 3 or math.prod(shape) != math.prod(x.shape):
            raise UnsupportedError(f"reshapes {x.shape} to {tuple(shape)}")
        result = Tensor(x.value, tuple(shape))
        return self._emit("reshape", Reshape(result.hwc), [x], result.shape, x.dtype)

    # --- how nodes are made -----------------------------------------------------------------------

    def _emit(
        self,
        kind: str,
        op: Operator,
        inputs: list[Tensor],
        shape: tuple[int, ...],
        dtype: DataType = DataType.F32,
    ) -> Tensor:
        number = self._steps[kind] = self._steps.get(kind, 0) + 1
        name = kind if number == 1 else f"{kind}{number}"
        return self._context.emit(op, inputs, shape, suffix=name, inner=name, dtype=dtype)

    def _step(self, kind: str, x: Tensor, step: EpilogueOp, *others: Tensor) -> Tensor:
        for y in others:
            if y.hwc not in (x.hwc, (1, 1, x.channels)):
                raise UnsupportedError(f"{kind} of shapes {x.shape} and {y.shape}")
        return self._emit(kind, Elementwise(Epilogue([step])), [x, *others], x.shape)

    def _convolution(
        self,
        kind: str,
        x: Tensor,
        weights: FloatArray,
        bias: ArrayLike | None,
        groups: int,
        settings: tuple[Pair, str, Pair, float],
    ) -> Tensor:
        window, size = self._window(x, weights.shape[1:3], settings[:3])
        count = len(weights)
        op = Conv2D(contiguous(weights), window, groups, settings[3], self._bias(bias, count))
        return self._emit(kind, op, [x], (*size, count))

    @staticmethod
    def _window(
        x: Tensor, kernel: tuple[int, ...], settings: tuple[Pair, str, Pair]
    ) -> tuple[Window, tuple[int, ...]]:
        strides, padding, dilation = settings
        return sliding_window(padding, x, kernel, _pair(strides), _pair(dilation))

    @staticmethod
    def _bias(bias: ArrayLike | None, channels: int) -> FloatArray | None:
        return None if bias is None else np.asarray(bias, np.float32).reshape(channels)

    @staticmethod
    def _channels(values: ArrayLike, x: Tensor) -> FloatArray:
        array = np.asarray(values, np.float32)
        if array.size not in (1, x.channels):
            raise UnsupportedError(f"{array.size} numbers for {x.channels} channels")
        return np.broadcast_to(array.reshape(-1), (x.channels,)).copy()


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value
