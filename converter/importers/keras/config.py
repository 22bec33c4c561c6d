"""The topology of a Keras model, read from its JSON configuration as data.

Keras 2 and Keras 3 write the same two kinds of model (a chain, ``Sequential``, and a graph,
``Functional``) in several dialects; this module turns all of them into one form, ``ModelSpec``, and
never builds an object that the configuration names.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from phonebit.converter.importers.keras.call_arguments import (
    MAX_DEPTH,
    Call,
    TensorRef,
    decode_keras2,
    leaves,
    map_refs,
    parse_call,
)
from phonebit.errors import ConversionError

MAX_LAYERS: Final = 20_000
"""Layers of one model; ResNet-1001 has about 4,000."""


@dataclass
class LayerSpec:
    """One layer: ``class_name`` without its package, and its own model if it is a nested model."""

    name: str
    class_name: str
    config: dict[str, Any]
    calls: list[Call]
    model: ModelSpec | None = None
    is_operation: bool = False
    """A Keras 3 operation (``keras.ops``), which is a node of the graph but no layer."""
    registered_name: str = ""
    """``class_name`` with its package if it has one: "MyPackage>MyLayer"."""


@dataclass
class ModelSpec:
    """A graph of layers. ``inputs`` and ``outputs`` are tensors of its own layers.

    ``output_keys`` are what a dict of outputs calls them; empty where they are no dict.
    """

    name: str
    layers: list[LayerSpec]
    inputs: list[TensorRef]
    outputs: list[TensorRef]
    by_name: dict[str, LayerSpec] = field(default_factory=dict)
    output_keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for layer in self.layers:
            if layer.name in self.by_name:
                raise ConversionError(f"model {self.name!r}: two layers are called {layer.name!r}")
            self.by_name[layer.name] = layer

    def map_refs(self, function: Callable[[TensorRef], TensorRef]) -> None:
        """Replaces every reference to a tensor."""
        for layer in self.layers:
            for call in layer.calls:
                call.args = map_refs(call.args, function)
                call.kwargs = map_refs(call.kwargs, function)
        self.inputs = [function(ref) for ref in self.inputs]
        self.outputs = [function(ref) for ref in self.outputs]

    def ordered_calls(self) -> list[tuple[LayerSpec, int]]:
        """Every call after those it reads, otherwise in the order of the configuration."""
        ranks = [(i, c) for i, layer in enumerate(self.layers) for c in range(len(layer.calls))]
        index = {(self.layers[i].name, c): (i, c) for i, c in ranks}
        missing: dict[tuple[int, int], int] = {}
        readers: dict[tuple[int, int], list[tuple[int, int]]] = {rank: [] for rank in ranks}
        for rank in ranks:
            layer = self.layers[rank[0]]
            needed = {(ref.layer, ref.call) for ref in layer.calls[rank[1]].refs()}
            for key in needed:
                if key not in index:
                    raise ConversionError(
                        f"layer {layer.name!r} reads call {key[1]} of layer {key[0]!r}, which the "
                        f"model {self.name!r} does not have"
                    )
                readers[index[key]].append(rank)
            missing[rank] = len(needed)
        ready = [rank for rank in ranks if missing[rank] == 0]
        heapq.heapify(ready)
        order = []
        while ready:
            rank = heapq.heappop(ready)
            order.append((self.layers[rank[0]], rank[1]))
            for reader in readers[rank]:
                missing[reader] -= 1
                if missing[reader] == 0:
                    heapq.heappush(ready, reader)
        if len(order) != len(ranks):
            raise ConversionError(f"model {self.name!r}: its layers read each other in a circle")
        return order


def call_name(layer: LayerSpec, number: int) -> str:
    """How a call's output is called within its model: "<layer>", then "<layer>:1" and so on."""
    return layer.name if number == 0 else f"{layer.name}:{number}"


def parse_model(config: Any) -> ModelSpec:
    """Reads a serialised model: ``{"class_name": ..., "config": ...}``.

    Raises:
        ConversionError: if the configuration is not that of a Sequential or Functional model.
    """
    class_name, body = _class_and_config(config, "the model")
    try:
        model = _parse_body(class_name, body, depth=0)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConversionError(f"the model's configuration is damaged: {error}") from error
    if model is None:
        raise ConversionError(
            f"the model is a {class_name!r}, whose layers its configuration does not list; only "
            "Sequential and Functional models can be converted: rebuild it with "
            "tf.keras.Model(inputs, outputs) and save that"
        )
    return model


def _class_and_config(entry: Any, what: str) -> tuple[str, Any]:
    if not isinstance(entry, dict) or not isinstance(entry.get("class_name"), str):
        raise ConversionError(f"{what}: its configuration has no class_name; the file is damaged")
    return entry["class_name"].split(">")[-1], entry.get("config", {})


def _parse_body(class_name: str, body: Any, depth: int) -> ModelSpec | None:
    """The model that ``body`` describes, or None if ``body`` is the config of a plain layer."""
    if isinstance(body, list) and class_name == "Sequential":  # before Keras 2.2.3
        body = {"name": "sequential", "layers": body}
    if not isinstance(body, dict) or not isinstance(body.get("layers"), list):
        return None
    functional = "input_layers" in body and "output_layers" in body
    if not functional and class_name != "Sequential":
        return None
    if depth > MAX_DEPTH:
        raise ConversionError(f"models are nested more than {MAX_DEPTH} deep")
    if len(body["layers"]) > MAX_LAYERS:
        raise ConversionError(f"the model has {len(body['layers'])} layers; at most {MAX_LAYERS}")
    name = str(body.get("name", class_name.lower()))
    layers = [_parse_layer(entry, depth) for entry in body["layers"]]
    if not functional:
        return _chain(name, layers, body.get("build_input_shape"))
    model = ModelSpec(
        name, layers, _endpoints(body["input_layers"]), _endpoints(body["output_layers"])
    )
    if isinstance(body["output_layers"], dict):
        model.output_keys = [str(key) for key in body["output_layers"]]
    _renumber_nested_calls(model)
    return model


def _parse_layer(entry: Any, depth: int) -> LayerSpec:
    class_name, config = _class_and_config(entry, "a layer")
    model = _parse_body(class_name, config, depth + 1)
    if not isinstance(config, dict):
        config = {}
    name = entry.get("name", config.get("name", model.name if model else None))
    if not isinstance(name, str) or not name:
        raise ConversionError(f"a layer of class {class_name!r} has no name; the file is damaged")
    nodes = entry.get("inbound_nodes", [])
    if not isinstance(nodes, list):
        raise ConversionError(f"layer {name!r}: inbound_nodes is not a list; the file is damaged")
    calls = [parse_call(node, name) for node in nodes]
    if class_name == "InputLayer" and not calls:
        calls = [Call([], {})]
    keras3 = any(isinstance(node, dict) and "args" in node for node in nodes)
    module = str(entry.get("module", ""))
    is_operation = module.startswith("keras.src.ops") or (
        keras3 and model is None and "trainable" not in config
    )
    registered = entry.get("registered_name") or entry["class_name"]
    return LayerSpec(name, class_name, config, calls, model, is_operation, str(registered))


def _endpoints(value: Any) -> list[TensorRef]:
    """``input_layers`` or ``output_layers``: one [layer, node, tensor], a list or dict of them."""
    refs = list(leaves(decode_keras2(value, "model endpoints", None)))
    if not refs:
        raise ConversionError("the model configuration lists no input or no output layers")
    return refs


def _chain(name: str, layers: list[LayerSpec], build_shape: Any) -> ModelSpec:
    """A Sequential model as a graph; an input layer is put in front if the file has none."""
    if not layers:
        raise ConversionError(f"model {name!r} has no layers")
    if layers[0].class_name != "InputLayer":
        first = layers[0]
        shape = first.config.get("batch_input_shape", build_shape)
        config = {"name": f"{first.name}_input", "batch_input_shape": shape}
        layers = [LayerSpec(f"{first.name}_input", "InputLayer", config, []), *layers]
    layers[0].calls = [Call([], {})]
    for before, layer in itertools.pairwise(layers):
        layer.calls = [Call([TensorRef(before.name, 0, 0)], {})]
    return ModelSpec(
        name, layers, [TensorRef(layers[0].name, 0, 0)], [TensorRef(layers[-1].name, 0, 0)]
    )


def _renumber_nested_calls(model: ModelSpec) -> None:
    """Makes references to nested models count their listed calls from 0.

    Keras 2 gives a nested model a hidden first call (the one that built it), so that its first
    listed call has number 1; Keras 3 and lazily built models start at 0. Every listed call is read
    by somebody, hence the lowest number in use is the number of the first listed call.
    """
    used: dict[str, int] = {}
    everything = [layer.calls for layer in model.layers]
    for calls in everything:
        for call in calls:
            for ref in call.refs():
                used[ref.layer] = min(used.get(ref.layer, ref.call), ref.call)
    for ref in model.outputs:
        used[ref.layer] = min(used.get(ref.layer, ref.call), ref.call)
    nested = {layer.name for layer in model.layers if layer.model is not None}
    offsets = {name: first for name, first in used.items() if name in nested and first > 0}
    if not offsets:
        return

    def counted_from_0(ref: TensorRef) -> TensorRef:
        return TensorRef(ref.layer, ref.call - offsets.get(ref.layer, 0), ref.output)

    model.map_refs(counted_from_0)
