"""Imports trained Larq and Keras models: files of Keras 2 and 3, or live model objects.

A file is read as HDF5 and JSON alone: TensorFlow is not needed and nothing in the file is run,
unless the user trusts its Lambda layers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phonebit.converter.importers.errors import interruptible
from phonebit.converter.importers.keras.checks import Knowledge
from phonebit.converter.importers.keras.config import parse_model
from phonebit.converter.importers.keras.files import KerasModel, keras_major, open_keras
from phonebit.converter.importers.keras.lambdas import LambdaRecorder
from phonebit.converter.importers.keras.live_weights import LiveWeights
from phonebit.converter.importers.keras.plugin import LayerFunction
from phonebit.converter.importers.keras.quantizers import QuantizerResolver
from phonebit.converter.importers.keras.translation import translate
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError


@interruptible()
def import_larq(
    source: str | os.PathLike[str] | Any,
    *,
    input_shape: Sequence[int] | None = None,
    custom_quantizers: Mapping[str, str] | None = None,
    custom_layers: Mapping[str, LayerFunction] | None = None,
    trust_lambdas: bool = False,
) -> Graph:
    """Imports a Larq or Keras model as a source graph.

    Args:
        source: Path of a whole-model ``.h5`` or ``.keras`` file, or a live Keras model.
        input_shape: (height, width, channels) of the input, for models that leave them open.
        custom_quantizers: What quantizers of your own compute, by the name under which they are
            saved: "sign" (x >= 0 -> +1, else -1), "none" or another of ``keras_kinds.KINDS``. The
            quantizers of a live model need none: they are recognised by what they compute.
        custom_layers: Functions that express layers of your own by PhoneBit's, by registered name
            ("MyPackage>MyLayer") or class name (converter/importers/keras/plugin.py).
        trust_lambdas: Run the Python code that Lambda layers in the file hold, to record what it
            computes. It could do anything: for files from people whom you trust only. A live
            model's Lambda layers are always recorded.

    Returns:
        The source graph. The value called like a layer is that layer's output; inner values are
        called "<layer>/input_quantizer", "<layer>/preactivation" and so on, layers of nested models
        "<model>/<layer>", and second and later calls of a layer "<layer>:1", "<layer>:2".

    Raises:
        UnsupportedLayerError: Layers, quantizers or activations that PhoneBit does not know; all of
            them are listed.
        ConversionError: The file is missing, damaged, holds weights only or is no Keras model.
    """
    custom_layers = dict(custom_layers or {})
    if hasattr(source, "get_config") and hasattr(source, "layers"):
        return _import_live(source, input_shape, custom_quantizers, custom_layers)
    if not isinstance(source, str | os.PathLike):
        raise ConversionError(
            "cannot be imported", got=type(source).__name__, expected="a path or a Keras model"
        )
    path = Path(source)
    quantizers = QuantizerResolver(custom_quantizers)
    try:
        with open_keras(path) as model:
            lambdas = LambdaRecorder.of_file(model.keras_major) if trust_lambdas else None
            return translate(model, Knowledge(quantizers, lambdas, custom_layers), input_shape)
    except ConversionError as error:
        if error.where is not None:
            raise
        raise type(error)(
            error.problems,
            where=str(path),
            expected=error.expected,
            got=error.got,
            hint=error.hint,
        ) from error


def _import_live(
    model: Any,
    input_shape: Sequence[int] | None,
    custom_quantizers: Mapping[str, str] | None,
    custom_layers: Mapping[str, LayerFunction],
) -> Graph:
    try:
        config = json.loads(model.to_json())
    except NotImplementedError as error:
        raise ConversionError(
            f"a {type(model).__name__} does not describe its layers (get_config)",
            hint="build it as a Functional or Sequential model",
        ) from error
    except (TypeError, ValueError) as error:
        raise ConversionError(
            f"Keras cannot describe the model: {error}",
            hint="what Lambda layers and quantizers refer to must be numbers, text or functions",
        ) from error
    spec = parse_model(config)
    weights = LiveWeights(model, spec)

    def find_quantizer(path: tuple[str, ...], key: str) -> Any:
        return getattr(weights.find(path), key, None)

    quantizers = QuantizerResolver(custom_quantizers, find_quantizer)
    lambdas = LambdaRecorder(lambda _, path: weights.find(path))
    major = keras_major(str(config.get("keras_version", "3")))
    knowledge = Knowledge(quantizers, lambdas, custom_layers)
    return translate(KerasModel(spec, weights, major), knowledge, input_shape)
