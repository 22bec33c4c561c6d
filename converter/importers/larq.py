"""Imports trained Larq and Keras models: files of Keras 2 and 3, or live model objects.

A file is read with h5py and json alone: TensorFlow is not needed and nothing in the file is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phonebit.converter.importers.keras_config import parse_model
from phonebit.converter.importers.keras_files import KerasModel, keras_major, open_keras
from phonebit.converter.importers.keras_translation import translate
from phonebit.converter.importers.keras_weights import LiveWeights
from phonebit.converter.importers.quantizers import QuantizerResolver
from phonebit.converter.ir import Graph
from phonebit.errors import ConversionError


def import_larq(
    source: str | os.PathLike[str] | Any,
    *,
    input_shape: Sequence[int] | None = None,
    custom_quantizers: Mapping[str, str] | None = None,
) -> Graph:
    """Imports a Larq or Keras model as a source graph.

    Args:
        source: Path of a whole-model ``.h5`` or ``.keras`` file, or a live Keras model.
        input_shape: (height, width, channels) of the input, for models that leave them open.
        custom_quantizers: What quantizers of your own compute, by the name under which they are
            saved: "sign" (x >= 0 -> +1, else -1), "magnitude_aware_sign" or "none". The quantizers
            of a live model need none: they are recognised by what they compute.

    Returns:
        The source graph. The value called like a layer is that layer's output; inner values are
        called "<layer>/input_quantizer", "<layer>/preactivation" and so on, layers of nested models
        "<model>/<layer>", and second and later calls of a layer "<layer>:1", "<layer>:2".

    Raises:
        UnsupportedLayerError: Layers, quantizers or activations that PhoneBit does not know; all of
            them are listed.
        ConversionError: The file is missing, damaged, holds weights only or is no Keras model.
    """
    if hasattr(source, "get_config") and hasattr(source, "layers"):
        return _import_live(source, input_shape, custom_quantizers)
    if not isinstance(source, str | os.PathLike):
        raise ConversionError(
            "cannot be imported", got=type(source).__name__, expected="a path or a Keras model"
        )
    path = Path(source)
    quantizers = QuantizerResolver(custom_quantizers)
    try:
        with open_keras(path) as model:
            return translate(model, quantizers, input_shape)
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
    model: Any, input_shape: Sequence[int] | None, custom_quantizers: Mapping[str, str] | None
) -> Graph:
    try:
        config = json.loads(model.to_json())
    except NotImplementedError as error:
        raise ConversionError(
            f"a {type(model).__name__} does not describe its layers (get_config)",
            hint="build it as a Functional or Sequential model",
        ) from error
    spec = parse_model(config)
    weights = LiveWeights(model, spec)

    def find_quantizer(path: tuple[str, ...], key: str) -> Any:
        return getattr(weights.find(path), key, None)

    quantizers = QuantizerResolver(custom_quantizers, find_quantizer)
    major = keras_major(str(config.get("keras_version", "3")))
    return translate(KerasModel(spec, weights, major), quantizers, input_shape)
