"""Finds everything unsupported that a model's configuration alone shows, in all layers at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec
from phonebit.converter.importers.keras.functions import FUNCTIONS
from phonebit.converter.importers.keras.lambdas import UNTRUSTED, LambdaRecorder
from phonebit.converter.importers.keras.layers import LAYERS
from phonebit.converter.importers.keras.plugin import LayerFunction
from phonebit.converter.importers.keras.pointwise import activation_problem
from phonebit.converter.importers.keras.quantizer_functions import UnsupportedQuantizerError
from phonebit.converter.importers.keras.quantizers import QuantizerResolver, callable_name
from phonebit.converter.importers.keras.weights import Path

QUANTIZER_KEYS: Final = (
    "input_quantizer",
    "kernel_quantizer",
    "depthwise_quantizer",
    "pointwise_quantizer",
    "bias_quantizer",
)
MEANT_OTHERWISE: Final = ("hard_sigmoid", "hard_tanh")
"""Functions that QKeras has under names of Keras's or Larq's."""
RECORDED: Final = ("TFOpLambda", "SlicingOpLambda")
"""Layers in which Keras 2 records the call of a TensorFlow function."""
POLICIES: Final = ("float32", "infer", "_infer")
"""Dtype policies of layers that compute in float32; old files leave it to the input's type."""
_REASONS: Final = {
    "Lambda": UNTRUSTED,
}


@dataclass
class Knowledge:
    """What is known beyond the configuration of a model.

    Attributes:
        quantizers: What its quantizers compute.
        lambdas: Records its Lambda layers; None if their code must not run.
        custom_layers: Functions for the user's own layers, by registered name or class name.
    """

    quantizers: QuantizerResolver
    lambdas: LambdaRecorder | None = None
    custom_layers: Mapping[str, LayerFunction] = field(default_factory=dict)

    def custom_layer(self, layer: LayerSpec) -> LayerFunction | None:
        """The user's function for a layer, or None."""
        named = self.custom_layers.get(layer.registered_name)
        return named or self.custom_layers.get(layer.class_name)


def unsupported_reason(layer: LayerSpec, knowledge: Knowledge) -> str | None:
    """Why the class of a layer cannot be imported, or None if it can."""
    if layer.model is not None or layer.class_name == "InputLayer":
        return None
    if layer.class_name == "Lambda" and knowledge.lambdas is not None:
        return None
    if layer.is_operation:
        name = layer.class_name
        return None if name in FUNCTIONS else f"the operation keras.ops {name} is not supported"
    if layer.class_name in RECORDED:
        function = str(layer.config.get("function"))
        return None if function in FUNCTIONS else f"the function tf.{function} is not supported"
    if layer.class_name in LAYERS:
        return None
    return _REASONS.get(
        layer.class_name,
        f"layers of class {layer.registered_name} are not supported; express it by supported "
        "layers with custom_layers (docs/converting.md), or export the model to ONNX with tf2onnx",
    )


def config_problems(
    model: ModelSpec, knowledge: Knowledge, path: Path = ()
) -> Iterator[tuple[Path, str]]:
    """(layer path, problem) of a model and the models in it."""
    for layer in model.layers:
        here = (*path, layer.name)
        if layer.model is not None:
            yield from config_problems(layer.model, knowledge, here)
            continue
        problem = _policy_problem(layer)
        if problem:
            yield here, problem
        if knowledge.custom_layer(layer) is not None:
            continue
        reason = unsupported_reason(layer, knowledge)
        if reason is not None:
            yield here, reason
            continue
        for problem in _layer_problems(layer, knowledge.quantizers, here):
            yield here, problem


def policy_name(layer: LayerSpec) -> str:
    """The dtype policy of a layer; that of a float32 layer if it has none."""
    policy = layer.config.get("dtype") or "float32"
    if not isinstance(policy, dict):
        return str(policy)
    config = policy.get("config")
    name = config.get("name") if isinstance(config, dict) else None
    return str(name or policy.get("class_name"))


def _policy_problem(layer: LayerSpec) -> str | None:
    """Why a layer computes in another type than the engine, or None."""
    # Inputs say the type of their values, and recorded functions compute in that of their operands.
    if layer.class_name == "InputLayer" or layer.is_operation or layer.class_name in RECORDED:
        return None
    name = policy_name(layer)
    if name in POLICIES:
        return None
    return (
        f"its dtype policy {name} does not compute in float32, as PhoneBit does; build the model "
        "with the policy float32, copy the weights (model.set_weights(trained.get_weights())) and "
        "convert that"
    )


def _layer_problems(layer: LayerSpec, quantizers: QuantizerResolver, path: Path) -> Iterator[str]:
    if layer.config.get("data_format") == "channels_first":
        yield "data_format='channels_first'; only channels_last is supported"
    if any(call.kwargs.get("training") is True for call in layer.calls):
        yield "called with training=True; only inference is supported"
    is_qkeras = layer.class_name.startswith("Q") and not layer.class_name.startswith("Quant")
    if is_qkeras and callable_name(layer.config.get("activation")) in MEANT_OTHERWISE:
        yield (
            f"activation {layer.config['activation']!r} of QKeras is not supported; use an "
            "Activation layer of Keras, quantized_sigmoid or quantized_tanh"
        )
    if "activation" in layer.config:
        problem = activation_problem(layer.config["activation"], quantizers, path)
        if problem:
            yield problem
    for key in QUANTIZER_KEYS:
        try:
            quantizer = quantizers.resolve(layer.config.get(key), path, key)
        except UnsupportedQuantizerError as error:
            yield f"{key}: {error}"
            continue
        if key == "input_quantizer" and quantizer.problem:
            yield f"input_quantizer: quantizer {quantizer.name}: {quantizer.problem}"
