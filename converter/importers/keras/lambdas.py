"""Lambda layers: what their Python functions compute, recorded by running them once.

A function is called with symbolic tensors, as Keras itself does when it builds a model; what it
does to them is then a model of recorded functions, which is translated like any other. The function
of a live model is there already. In a file it is marshalled Python code, which could do anything
when it runs: only a user who trusts the file can allow that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from phonebit.converter.importers.keras.call_arguments import TensorRef
from phonebit.converter.importers.keras.config import LayerSpec, ModelSpec, parse_model
from phonebit.converter.importers.keras.framework import rebuilt_lambda, recorded_call
from phonebit.converter.importers.keras.graph import Tensor, UnsupportedError
from phonebit.converter.importers.keras.weights import Path, leaf_weights
from phonebit.errors import ConversionError
from phonebit.format.records import DataType

UNTRUSTED: Final = (
    "a Lambda layer holds Python code inside the file, which is not run unless you trust it: pass "
    "trust_lambdas=True (--trust-lambdas), or express it with layers, or with tf functions such as "
    "x + y and tf.concat on Keras tensors"
)


@dataclass
class LambdaRecorder:
    """Records the functions of a model's Lambda layers.

    Attributes:
        find: (layer, its path) -> the live Lambda layer.
    """

    find: Callable[[LayerSpec, Path], Any]

    @classmethod
    def of_file(cls, keras_major: int) -> LambdaRecorder:
        """For a trusted file: the layers are rebuilt from their configuration."""
        return cls(lambda layer, _: rebuilt_lambda(layer.config, keras_major))

    def record(self, layer: LayerSpec, path: Path, inputs: list[Tensor]) -> ModelSpec:
        """The function of a Lambda layer as a model with as many inputs.

        Raises:
            UnsupportedError: The function cannot be run or recorded.
        """
        shapes = [tensor.shape for tensor in inputs]
        dtypes = ["uint8" if x.dtype == DataType.U8 else "float32" for x in inputs]
        try:
            live = self.find(layer, path)
            if live is None:
                raise ConversionError("the live model has no such layer")
            spec = parse_model(json.loads(recorded_call(live, shapes, dtypes)))
        except ConversionError as error:
            raise UnsupportedError(f"a Lambda layer: {error}") from error
        if any(leaf_weights(inner, (inner.name,)) for inner in spec.layers):
            raise UnsupportedError("a Lambda layer calls layers with weights; call them outside")
        return _renumbered(spec)


def _renumbered(spec: ModelSpec) -> ModelSpec:
    """The same model with names that do not depend on what else Keras has built before."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for layer in spec.layers:
        base = re.sub(r"_\d+$", "", layer.name)
        number = counts[base] = counts.get(base, -1) + 1
        names[layer.name] = layer.name = f"{base}_{number}" if number else base
    spec.map_refs(lambda ref: TensorRef(names[ref.layer], ref.call, ref.output))
    return ModelSpec(spec.name, spec.layers, spec.inputs, spec.outputs)
