"""Finds everything unsupported that a model's configuration alone shows, in all layers at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phonebit.converter.importers.keras_config import LayerSpec, ModelSpec
from phonebit.converter.importers.keras_functions import FUNCTIONS
from phonebit.converter.importers.keras_layers import LAYERS
from phonebit.converter.importers.keras_pointwise import activation_problem
from phonebit.converter.importers.keras_weights import Path, describe
from phonebit.converter.importers.quantizers import QuantizerResolver, UnsupportedQuantizerError

QUANTIZER_KEYS: Final = (
    "input_quantizer",
    "kernel_quantizer",
    "depthwise_quantizer",
    "pointwise_quantizer",
)
_REASONS: Final = {
    "Lambda": "a Lambda layer is Python code inside the file, which is never run; express it with "
    "layers, or with tf functions such as x + y and tf.concat on Keras tensors",
    "SlicingOpLambda": "slicing a tensor is not supported",
    "TFOpLambda": "",
    "QuantConv1D": "one-dimensional convolutions are not supported; use a QuantConv2D of height 1",
    "Conv1D": "one-dimensional convolutions are not supported; use a Conv2D of height 1",
}


def unsupported_reason(layer: LayerSpec) -> str | None:
    """Why the class of a layer cannot be imported, or None if it can."""
    if layer.model is not None or layer.class_name == "InputLayer":
        return None
    if layer.is_operation:
        name = layer.class_name
        return None if name in FUNCTIONS else f"the operation keras.ops {name} is not supported"
    if layer.class_name == "TFOpLambda":
        function = str(layer.config.get("function"))
        return None if function in FUNCTIONS else f"the function tf.{function} is not supported"
    if layer.class_name in LAYERS:
        return None
    return _REASONS.get(layer.class_name, f"layers of class {layer.class_name} are not supported")


def config_problems(
    model: ModelSpec, quantizers: QuantizerResolver, path: Path = ()
) -> Iterator[tuple[Path, str]]:
    """(layer path, problem) of a model and the models in it."""
    for layer in model.layers:
        here = (*path, layer.name)
        if layer.model is not None:
            yield from config_problems(layer.model, quantizers, here)
            continue
        reason = unsupported_reason(layer)
        if reason is not None:
            yield here, f"{describe(here)}: {reason}"
            continue
        for problem in _layer_problems(layer, quantizers, here):
            yield here, f"{describe(here)}: {problem}"


def _layer_problems(layer: LayerSpec, quantizers: QuantizerResolver, path: Path) -> Iterator[str]:
    if layer.config.get("data_format") == "channels_first":
        yield "data_format='channels_first'; only channels_last is supported"
    if any(call.kwargs.get("training") is True for call in layer.calls):
        yield "called with training=True; only inference is supported"
    if "activation" in layer.config:
        problem = activation_problem(layer.config["activation"], quantizers)
        if problem:
            yield problem
    for key in QUANTIZER_KEYS:
        try:
            kind = quantizers.kind(layer.config.get(key), path, key)
        except UnsupportedQuantizerError as error:
            yield f"{key}: {error}"
            continue
        if key == "input_quantizer" and kind == "magnitude_aware_sign":
            yield "input_quantizer: magnitude_aware_sign scales by the mean of each batch"
