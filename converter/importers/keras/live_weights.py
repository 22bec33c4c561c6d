"""The weights inside a live Keras model."""

from __future__ import annotations

from typing import Any

import numpy as np

from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec
from phonebit.converter.importers.keras.roles import weight_roles
from phonebit.converter.importers.keras.weights import (
    Path,
    checked,
    describe,
    position,
    short_names,
)
from phonebit.converter.ir import FloatArray
from phonebit.errors import ConversionError


class LiveWeights:
    """Weights of a model object.

    Args:
        model: Anything with ``layers``, each with ``name`` and ``get_weights()``.
        spec: The same model's configuration.
    """

    def __init__(self, model: Any, spec: ModelSpec) -> None:
        self._model = model
        self._spec = spec

    def find(self, path: Path) -> Any:
        """The live layer at ``path``, or None."""
        layer = self._model
        for name in path:
            layer = next(
                (inner for inner in getattr(layer, "layers", []) if inner.name == name), None
            )
        return layer

    def read(self, path: Path, role: str, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        spec: LayerSpec | None = None
        model: ModelSpec | None = self._spec
        for name in path:
            spec = model.by_name[name] if model else None
            model = spec.model if spec else None
        layer = self.find(path)
        if layer is None or spec is None:
            raise ConversionError(f"{describe(path)}: the live model has no such layer")
        roles = [name for name, _ in weight_roles(spec)]
        arrays = layer.get_weights()
        if len(arrays) != len(roles):
            raise ConversionError(
                f"{describe(path)}: expected weights {roles}, got {len(arrays)} arrays"
            )
        array = np.asarray(arrays[roles.index(role)], np.float32)
        return checked(array, path, role, shape)

    def names(self, path: Path) -> list[str]:
        """See WeightSource."""
        return short_names([weight.name for weight in self.find(path).weights])

    def read_own(self, path: Path, key: str | int, shape: tuple[int, ...]) -> FloatArray:
        """See WeightSource."""
        at = position(key, self.names(path), path)
        array = np.asarray(self.find(path).get_weights()[at], np.float32)
        return checked(array, path, str(key), shape)
