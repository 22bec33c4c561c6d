"""The framework's own activations of a Keras model, named as the importer names its values.

``phonebit verify`` feeds them to the engine layer by layer, so that each layer is judged alone. Of
the modules that import Keras models only this one runs the framework, and it imports it only inside
its functions.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phonebit.converter.importers.hdf5 import is_hdf5, open_hdf5
from phonebit.converter.importers.keras.call_arguments import TensorRef
from phonebit.converter.importers.keras.config import (
    LayerSpec,
    ModelSpec,
    call_name,
    parse_model,
)
from phonebit.converter.importers.keras.files import open_keras
from phonebit.converter.importers.keras.framework import (
    installed_keras,
    lambda_class,
    rebuilt_lambda,
)
from phonebit.converter.importers.keras.layers import IGNORED
from phonebit.converter.importers.keras.pointwise import is_linear
from phonebit.converter.importers.keras.roles import RECURRENT
from phonebit.converter.importers.keras.weights import leaves
from phonebit.errors import ConversionError, InputError

Array = NDArray[Any]
Values = dict[tuple[str, int], list[Any]]
"""Framework tensors of a model by layer name and call number."""


def load_keras(
    path: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    *,
    trust_lambdas: bool = False,
) -> Any:
    """Loads a file with the generation of Keras that wrote it.

    Unlike the importer this lets the framework build objects from the file. Files that carry Python
    code (Lambda layers) are refused before the framework sees them, unless they are trusted.

    Args:
        path: A whole-model ``.h5`` or ``.keras`` file.
        custom_objects: Classes and functions of your own that the model uses.
        trust_lambdas: Let Keras run the code of Lambda layers.

    Returns:
        The live model, not compiled.

    Raises:
        ConversionError: The file cannot be read, holds code, or its framework is not installed.
    """
    path = Path(path)
    with open_keras(path) as model:
        if not trust_lambdas:
            _refuse_code(model.spec, path)
        major = model.keras_major
        own = _qkeras_objects(model.spec, path)
    try:
        keras = installed_keras(major)
    except ConversionError as error:
        raise ConversionError(error.problems, where=str(path), hint=error.hint) from error
    objects = {"Lambda": lambda_class(keras), **own, **(custom_objects or {})}
    if major == 3:
        return keras.saving.load_model(
            path, custom_objects=objects, compile=False, safe_mode=not trust_lambdas
        )
    with suppress(ImportError):
        import larq_zoo  # noqa: F401  (registers what its networks are made of)
    if is_hdf5(path):
        return _load_by_parts(keras, path, objects)
    return keras.models.load_model(
        str(path), custom_objects=objects, compile=False, safe_mode=not trust_lambdas
    )


def _qkeras_objects(model: ModelSpec, path: Path) -> dict[str, Any]:
    """What a model of QKeras is made of, if it is one."""
    classes = {inner.class_name for layer in model.layers for inner in leaves(layer)}
    if not any(name.startswith("Q") and not name.startswith("Quant") for name in classes):
        return {}
    objects: dict[str, Any] = {}
    try:
        import_module("qkeras.utils")._add_supported_quantized_objects(objects)
    except ImportError as error:
        raise ConversionError(
            f"QKeras is not installed: {error}", where=str(path), hint="pip install qkeras"
        ) from error
    return objects


def _load_by_parts(keras: Any, path: Path, custom_objects: Mapping[str, Any]) -> Any:
    """Builds a ``.h5`` model from its configuration and loads its weights.

    Functions are looked up first, because tf-keras 2.16 cannot read back what it writes itself, and
    a model of a class of its own that is a graph of layers is built as such.
    """

    def functions(value: Any) -> Any:
        if isinstance(value, list):
            return [functions(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind, inner = value.get("class_name"), value.get("config")
        if kind == "function" and isinstance(inner, str):
            return keras.utils.get_registered_object(inner, custom_objects) or inner
        if kind == "Lambda" and isinstance(inner, dict):
            code = rebuilt_lambda(inner, 2)
            ready = {"function": code.function, "arguments": code.arguments}
            return {**value, "config": {"name": inner["name"], **ready}}
        return {key: functions(item) for key, item in value.items()}

    with open_hdf5(path) as file:
        config = functions(json.loads(str(file.attributes["model_config"])))
    if "input_layers" in config["config"]:
        config["class_name"] = "Functional"
    model = keras.layers.deserialize(config, custom_objects, use_legacy_format=True)
    model.load_weights(str(path))
    return model


def _refuse_code(model: ModelSpec, path: Path) -> None:
    for layer in model.layers:
        if layer.model is not None:
            _refuse_code(layer.model, path)
        elif layer.class_name == "Lambda" or "__lambda__" in json.dumps(layer.config):
            raise ConversionError(f"layer {layer.name!r} holds Python code", where=str(path))


def keras_activations(
    source: Any,
    inputs: Array | Mapping[str, Array],
    *,
    custom_objects: Mapping[str, Any] | None = None,
    trust_lambdas: bool = False,
) -> dict[str, Array]:
    """Runs a Keras model and returns the output of every layer.

    Args:
        source: A live model, or the path of one (see ``load_keras``).
        inputs: One batch for each input by name, or the only one; (N, H, W, C) or in Keras's shape.
        custom_objects: Classes and functions of your own, for loading.
        trust_lambdas: See ``load_keras``.

    Returns:
        Arrays of shape (N, H, W, C) by the value names of the imported graph: all layer outputs,
        "<layer>/input_quantizer" (int8 where all are -1 or +1) and "<layer>/preactivation", and
        "<layer>/output0" and so on of a layer with several outputs. Further inner steps of a
        layer, which the framework does not show, are missing. Layers that the importer drops, such
        as Dropout, are there under their own names too.

    Raises:
        InputError: An input is missing or has the wrong shape.
        ConversionError: See ``load_keras``.
    """
    model = source
    if isinstance(source, str | os.PathLike):
        model = load_keras(source, custom_objects, trust_lambdas=trust_lambdas)
    spec = parse_model(json.loads(model.to_json()))
    results: dict[str, Array] = {}
    given = [_input(layer, inputs) for layer in _input_layers(spec)]
    for layer, array in zip(_input_layers(spec), given, strict=True):
        results[layer.name] = _nhwc(array)
    _run_model(model, spec, "", given, results)
    return results


def _input_layers(spec: ModelSpec) -> list[LayerSpec]:
    return [spec.by_name[ref.layer] for ref in spec.inputs]


def _input(layer: LayerSpec, inputs: Array | Mapping[str, Array]) -> Array:
    array = inputs.get(layer.name) if isinstance(inputs, Mapping) else inputs
    shape = layer.config.get("batch_shape", layer.config.get("batch_input_shape"))
    if array is None or not isinstance(shape, list):
        raise InputError("no array for this input", where=layer.name)
    dims = [
        n if d is None else d
        for d, n in zip(shape[1:], array.shape[-len(shape) + 1 :], strict=True)
    ]
    if array.size != len(array) * int(np.prod(dims)):
        raise InputError("wrong shape", where=layer.name, expected=("N", *dims), got=array.shape)
    return array.reshape(len(array), *dims)


def _nhwc(value: Any) -> Array:
    array = np.asarray(value)
    shape = (1, 1, *array.shape[1:])[-max(3, array.ndim - 1) :]
    return array.reshape(len(array), math.prod(shape[:-2]), *shape[-2:])


def _run_model(
    model: Any, spec: ModelSpec, prefix: str, inputs: list[Any], results: dict[str, Array]
) -> list[Any]:
    """Executes a model call by call, and the models inside it in the same way."""
    live = {layer.name: layer for layer in getattr(model, "operations", model.layers)}
    values: Values = {}
    for ref, tensor in zip(spec.inputs, inputs, strict=True):
        values[ref.layer, ref.call] = [tensor]
    for layer, number in spec.ordered_calls():
        if (layer.name, number) in values:
            continue
        name = prefix + call_name(layer, number)
        call = layer.calls[number]
        args = [_single(_resolved(argument, values)) for argument in call.args]
        kwargs = {key: _resolved(value, values) for key, value in call.kwargs.items()}
        kwargs.pop("mask", None)
        if layer.model is not None:
            tensors = [values[ref.layer, ref.call][ref.output] for ref in call.refs()]
            values[layer.name, number] = _run_model(
                live[layer.name], layer.model, f"{name}/", tensors, results
            )
            continue
        # What does nothing at inference may be active unless it is told so.
        ignored = layer.class_name in IGNORED and not layer.is_operation
        output = args[0] if ignored else live[layer.name](*args, **kwargs)
        several = isinstance(output, list | tuple)
        values[layer.name, number] = outputs = list(output) if several else [output]
        for i, value in enumerate(outputs):
            results[f"{name}/output{i}" if len(outputs) > 1 else name] = _nhwc(value)
        results.update(_inner_values(live[layer.name], layer, name, args))
    return [values[ref.layer, ref.call][ref.output] for ref in spec.outputs]


def _inner_values(live: Any, layer: LayerSpec, name: str, args: list[Any]) -> dict[str, Array]:
    """What goes on inside a quantized layer, or one with an activation argument."""
    inner: dict[str, Array] = {}
    quantizer: Callable[[Any], Any] | None = getattr(live, "input_quantizer", None)
    if quantizer is not None:
        value = _nhwc(quantizer(args[0]))
        signs = np.all(np.abs(value) == 1)
        inner[f"{name}/input_quantizer"] = value.astype(np.int8) if signs else value
    whole = layer.class_name in ("Activation", *RECURRENT)
    if not whole and not is_linear(layer.config.get("activation")):
        activation = live.activation
        live.activation = None
        try:
            inner[f"{name}/preactivation"] = _nhwc(live(*args))
        finally:
            live.activation = activation
    return inner


def _single(value: Any) -> Any:
    """Keras 2 writes one tensor as a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _resolved(value: Any, values: Values) -> Any:
    if isinstance(value, TensorRef):
        return values[value.layer, value.call][value.output]
    if isinstance(value, list):
        return [_resolved(item, values) for item in value]
    if isinstance(value, dict) and value.get("class_name") == "__ellipsis__":
        return Ellipsis
    if isinstance(value, dict) and value.get("class_name") == "__slice__":
        return slice(*(value["config"][key] for key in ("start", "stop", "step")))
    if isinstance(value, dict):
        return {key: _resolved(item, values) for key, item in value.items()}
    return value
